/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What ab/profile_plugin.c uses of QEMU's plugin interface, as Debian 12 has no qemu-plugin.h.
 * PLUGIN_API says which version is meant: 1 (QEMU 4.2 and later), 2 (9.0 and later) or 7 (11.1
 * and later), between which nothing changed that is used.
 */
#ifndef QEMU_PLUGIN_H
#define QEMU_PLUGIN_H

#include <linux/types.h>
#include <stddef.h>

#define EXPORTED	__attribute__((visibility("default")))

/* QEMU looks for these two. */
extern EXPORTED int qemu_plugin_version;
EXPORTED int qemu_plugin_install(__u64 id, const void *info, int argc, char **argv);

enum { QEMU_PLUGIN_CB_NO_REGS };
enum { QEMU_PLUGIN_INLINE_ADD_U64 };
/* Reads alone cannot be asked for: QEMU 7.2 takes them for writes. */
enum { QEMU_PLUGIN_MEM_RW = 3 };

struct qemu_plugin_tb;
struct qemu_plugin_insn;

size_t qemu_plugin_tb_n_insns(const struct qemu_plugin_tb *block);
struct qemu_plugin_insn *qemu_plugin_tb_get_insn(const struct qemu_plugin_tb *block, size_t i);
__u64 qemu_plugin_insn_vaddr(const struct qemu_plugin_insn *instruction);
void qemu_plugin_register_vcpu_insn_exec_cb(struct qemu_plugin_insn *instruction,
					    void (*executed)(unsigned int cpu, void *data),
					    int registers, void *data);
void qemu_plugin_register_vcpu_mem_cb(struct qemu_plugin_insn *instruction,
				      void (*accessed)(unsigned int cpu, __u32 how,
						       __u64 address, void *data),
				      int registers, int accesses, void *data);

#if PLUGIN_API == 1

void qemu_plugin_register_vcpu_insn_exec_inline(struct qemu_plugin_insn *instruction,
						int operation, void *counter, __u64 value);

#elif PLUGIN_API == 2 || PLUGIN_API == 7

struct qemu_plugin_scoreboard;

struct qemu_plugin_u64 {
	struct qemu_plugin_scoreboard *scoreboard;
	size_t offset;
};

struct qemu_plugin_scoreboard *qemu_plugin_scoreboard_new(size_t size);
void *qemu_plugin_scoreboard_find(struct qemu_plugin_scoreboard *scoreboard, unsigned int cpu);
void qemu_plugin_register_vcpu_insn_exec_inline_per_vcpu(struct qemu_plugin_insn *instruction,
							 int operation,
							 struct qemu_plugin_u64 counter,
							 __u64 value);

#else
#error "PLUGIN_API is none that is known here: 1, 2 and 7 are"
#endif

#if PLUGIN_API < 7
void qemu_plugin_register_vcpu_tb_trans_cb(__u64 id,
					   void (*translated)(__u64 id,
							      struct qemu_plugin_tb *block));
#else
void qemu_plugin_register_vcpu_tb_trans_cb(__u64 id,
					   void (*translated)(struct qemu_plugin_tb *block,
							      void *data), void *data);
#endif

#endif /* QEMU_PLUGIN_H */
