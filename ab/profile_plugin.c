// SPDX-License-Identifier: GPL-2.0
/*
 * A plugin for QEMU that counts, instruction by instruction, what a guest with one CPU executes
 * in each phase of a cycle. Its arguments:
 *
 *	out=FILE		where the counts go
 *	phase=NAME@ADDRESS	a phase begins at this address, that of its function
 *	edge=ADDRESS		any phase ends at this one: the clock is read
 *
 * Addresses are hexadecimal, and in the static program that is measured. Without arguments the
 * plugin does nothing, which tells that QEMU takes it. Into FILE go these lines:
 *
 *	symbols NUMBER		the guest's PID 1 has told so many, from /proc/kallsyms
 *	phase NAME		a phase has ended; what was executed in it follows
 *	FUNCTION COUNT		so many instructions; user_space has one line
 *	edge			the clock was read
 */
#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "qemu_plugin.h"
#include "told.h"

#define MAX_PHASES	8

/* Symbols of our own. */
enum { USER_SPACE, UNKNOWN, NR_FIXED };

/*
 * Instructions of the kernel that were ever executed: 300 thousand in a boot of a Debian kernel.
 * Their counters come in chunks, which never move, as translated code adds to them.
 */
#define CHUNK		4096
#define MAX_CHUNKS	512
#define HASH_BITS	22

#if PLUGIN_API == 1

static void *new_counters(void)
{
	return calloc(CHUNK, sizeof(__u64));
}

static const __u64 *counted(void *counters)
{
	return counters;
}

static void count(struct qemu_plugin_insn *instruction, void *counters, unsigned int i)
{
	qemu_plugin_register_vcpu_insn_exec_inline(instruction, QEMU_PLUGIN_INLINE_ADD_U64,
						   (__u64 *)counters + i, 1);
}

#else

/* A scoreboard has as much for each CPU, of which there is one. */
static void *new_counters(void)
{
	return qemu_plugin_scoreboard_new(CHUNK * sizeof(__u64));
}

static const __u64 *counted(void *counters)
{
	return qemu_plugin_scoreboard_find(counters, 0);
}

static void count(struct qemu_plugin_insn *instruction, void *counters, unsigned int i)
{
	const struct qemu_plugin_u64 counter = { counters, i * sizeof(__u64) };

	qemu_plugin_register_vcpu_insn_exec_inline_per_vcpu(instruction,
							    QEMU_PLUGIN_INLINE_ADD_U64,
							    counter, 1);
}

#endif

EXPORTED int qemu_plugin_version = PLUGIN_API;

struct chunk {
	void *counters;
	__u64 addresses[CHUNK];
	__u64 before[CHUNK];		/* what was counted when the phase began */
	__u32 symbols[CHUNK];		/* numbers, of the functions; set once these are known */
};

struct phase {
	const char *name;
	__u64 address;
};

struct symbol {
	__u64 address;
	char type;
	const char *name;
	__u64 count;			/* in the phase that ends */
};

static struct chunk *chunks[MAX_CHUNKS];
static __u32 nr_instructions;
static __u32 hash_table[1 << HASH_BITS];	/* numbers of instructions, from 1 */

static char *text;		/* what PID 1 told so far */
static size_t length, room;
static struct symbol *symbols;	/* in order, behind those of USER_SPACE and UNKNOWN */
static __u32 nr_symbols;

static struct phase phases[MAX_PHASES];
static unsigned int nr_phases;
static const struct phase *running;
static __u64 edge;
static FILE *out;

/* From a thread of QEMU's, where nothing else ends it all. */
static void fail(const char *what)
{
	fprintf(stderr, "profile_plugin: %s\n", what);
	_exit(1);
}

static void flush(void)
{
	if (fflush(out))
		fail(strerror(errno));
}

/* Of symbols in one place the last names it: one without "_", a global one, by preference. */
static int compare_symbols(const void *a, const void *b)
{
	static const char types[] = "wWtT";
	const struct symbol *x = a, *y = b;

	if (x->address != y->address)
		return x->address < y->address ? -1 : 1;
	if ((*x->name == '_') != (*y->name == '_'))
		return *x->name == '_' ? -1 : 1;
	if (x->type != y->type)
		return strchr(types, x->type) < strchr(types, y->type) ? -1 : 1;
	return strcmp(x->name, y->name);
}

/* The last symbol that is not above the address. */
static __u32 find_symbol(__u64 address)
{
	__u32 low = UNKNOWN, high = nr_symbols, middle;

	if (!address)
		return USER_SPACE;
	while (high > low + 1) {
		middle = low + (high - low) / 2;
		if (symbols[middle].address <= address)
			low = middle;
		else
			high = middle;
	}
	return low;
}

/* Takes "ADDRESS TYPE NAME", and "[MODULE]" behind it, for a symbol if it is one of code. */
static void add_symbol(char *line)
{
	char *name = strchr(line, ' '), *module;
	struct symbol *symbol = &symbols[nr_symbols];

	if (!name || !name[1] || !strchr("wWtT", name[1]) || name[2] != ' ')
		return;
	symbol->address = strtoull(line, NULL, 16);
	symbol->type = name[1];
	symbol->name = name + 3;
	module = strchr(symbol->name, '\t');
	if (module)
		memmove(module, module + 1, strlen(module));
	if (symbol->address)
		nr_symbols++;
}

/* All has been told. */
static void read_symbols(void)
{
	size_t lines = 0, i;
	char *line;

	for (i = 0; i < length; i++)
		lines += text[i] == '\n';
	symbols = calloc(lines + NR_FIXED, sizeof(*symbols));
	if (!symbols)
		fail(strerror(ENOMEM));
	symbols[USER_SPACE].name = "user_space";
	symbols[UNKNOWN].name = "[unknown]";
	nr_symbols = NR_FIXED;
	for (line = strtok(text, "\n"); line; line = strtok(NULL, "\n"))
		add_symbol(line);
	qsort(symbols + NR_FIXED, nr_symbols - NR_FIXED, sizeof(*symbols), compare_symbols);

	for (i = 0; i < nr_instructions; i++)
		chunks[i / CHUNK]->symbols[i % CHUNK] =
			find_symbol(chunks[i / CHUNK]->addresses[i % CHUNK]);
	fprintf(out, "symbols %u\n", nr_symbols - NR_FIXED);
	flush();
}

static __u32 new_instruction(__u64 address)
{
	__u32 chunk = nr_instructions / CHUNK;

	if (nr_instructions == CHUNK * MAX_CHUNKS)
		fail("the guest executes too many different instructions");
	if (!chunks[chunk]) {
		chunks[chunk] = calloc(1, sizeof(**chunks));
		if (!chunks[chunk])
			fail(strerror(ENOMEM));
		chunks[chunk]->counters = new_counters();
		if (!chunks[chunk]->counters)
			fail(strerror(ENOMEM));
	}
	chunks[chunk]->addresses[nr_instructions % CHUNK] = address;
	chunks[chunk]->symbols[nr_instructions % CHUNK] = find_symbol(address);
	return nr_instructions++;
}

/* Code that is translated again goes on counting where it was. */
static __u32 find_instruction(__u64 address)
{
	__u64 slot = address * 0x9e3779b97f4a7c15 >> (64 - HASH_BITS);
	__u32 i;

	for (; hash_table[slot]; slot = (slot + 1) % (1 << HASH_BITS)) {
		i = hash_table[slot] - 1;
		if (chunks[i / CHUNK]->addresses[i % CHUNK] == address)
			return i;
	}
	i = new_instruction(address);
	hash_table[slot] = i + 1;
	return i;
}

static void print_phase(void)
{
	__u32 i;

	for (i = 0; i < nr_instructions; i++) {
		const struct chunk *chunk = chunks[i / CHUNK];

		symbols[chunk->symbols[i % CHUNK]].count +=
			counted(chunk->counters)[i % CHUNK] - chunk->before[i % CHUNK];
	}
	fprintf(out, "phase %s\n", running->name);
	for (i = 0; i < nr_symbols; i++) {
		if (symbols[i].count)
			fprintf(out, "%s %llu\n", symbols[i].name, symbols[i].count);
		symbols[i].count = 0;
	}
	running = NULL;
}

static void at_edge(unsigned int cpu, void *data)
{
	(void)cpu;
	(void)data;
	if (running)
		print_phase();
	fputs("edge\n", out);
	flush();
}

static void at_phase(unsigned int cpu, void *data)
{
	__u32 i;

	(void)cpu;
	if (running)
		print_phase();
	if (!symbols)
		return;
	for (i = 0; i < nr_instructions; i += CHUNK)
		memcpy(chunks[i / CHUNK]->before, counted(chunks[i / CHUNK]->counters),
		       sizeof(chunks[i / CHUNK]->before));
	running = data;
}

/* What no text has in it ends the text. */
static void at_access(unsigned int cpu, __u32 how, __u64 address, void *data)
{
	(void)cpu;
	(void)how;
	(void)data;
	if (address < TOLD || address - TOLD >= TOLD_SIZE || symbols)
		return;
	if (length == room) {
		room = room ? 2 * room : 1 << 20;
		text = realloc(text, room);
		if (!text)
			fail(strerror(ENOMEM));
	}
	text[length++] = address - TOLD;
	if (address == TOLD)
		read_symbols();
}

static void instrument_user_space(struct qemu_plugin_insn *instruction, __u64 address)
{
	unsigned int i;

	if (!symbols)
		qemu_plugin_register_vcpu_mem_cb(instruction, at_access, QEMU_PLUGIN_CB_NO_REGS,
						 QEMU_PLUGIN_MEM_RW, NULL);
	if (address == edge)
		qemu_plugin_register_vcpu_insn_exec_cb(instruction, at_edge,
						       QEMU_PLUGIN_CB_NO_REGS, NULL);
	for (i = 0; i < nr_phases; i++)
		if (address == phases[i].address)
			qemu_plugin_register_vcpu_insn_exec_cb(instruction, at_phase,
							       QEMU_PLUGIN_CB_NO_REGS,
							       &phases[i]);
}

static void instrument(struct qemu_plugin_tb *block)
{
	size_t i, nr = qemu_plugin_tb_n_insns(block);

	for (i = 0; i < nr; i++) {
		struct qemu_plugin_insn *instruction = qemu_plugin_tb_get_insn(block, i);
		__u64 address = qemu_plugin_insn_vaddr(instruction);
		bool is_kernel = address >> 63;
		__u32 number = find_instruction(is_kernel ? address : 0);

		if (!is_kernel)
			instrument_user_space(instruction, address);
		count(instruction, chunks[number / CHUNK]->counters, number % CHUNK);
	}
}

#if PLUGIN_API < 7

static void at_translation(__u64 id, struct qemu_plugin_tb *block)
{
	(void)id;
	instrument(block);
}

static void register_translation(__u64 id)
{
	qemu_plugin_register_vcpu_tb_trans_cb(id, at_translation);
}

#else

static void at_translation(struct qemu_plugin_tb *block, void *data)
{
	(void)data;
	instrument(block);
}

static void register_translation(__u64 id)
{
	qemu_plugin_register_vcpu_tb_trans_cb(id, at_translation, NULL);
}

#endif

static bool read_address(const char *text, __u64 *address)
{
	char *end;

	*address = strtoull(text, &end, 16);
	return *address && !*end;
}

static bool read_argument(char *argument)
{
	char *at;

	if (!strncmp(argument, "out=", 4)) {
		out = fopen(argument + 4, "w");
		return out;
	}
	if (!strncmp(argument, "edge=", 5))
		return read_address(argument + 5, &edge);
	at = strchr(argument, '@');
	if (strncmp(argument, "phase=", 6) || !at || nr_phases == MAX_PHASES)
		return false;
	*at = '\0';
	phases[nr_phases].name = argument + 6;
	return read_address(at + 1, &phases[nr_phases++].address);
}

EXPORTED int qemu_plugin_install(__u64 id, const void *info, int argc, char **argv)
{
	int i;

	(void)info;
	for (i = 0; i < argc; i++) {
		if (!read_argument(argv[i])) {
			fprintf(stderr, "profile_plugin: cannot use %s\n", argv[i]);
			return -1;
		}
	}
	if (out)
		register_translation(id);
	return 0;
}
