# SPDX-License-Identifier: GPL-2.0
#
# Builds the selftests outside of a kernel tree, by the rules of that tree:
#
#   make               build, into build/
#   make run_tests     build, and run by the kernel's own runner
#   make check         test all that is here; installs what that takes, on Debian
#   make check-mutants break a kernel in many ways, and see that a test tells
#   make check-kernels run the tests in many kernels
#   make check-hosts   run the tests on hostile machines, in QEMU
#   make deps          install what the build takes, on Debian
#   make clean         remove build/ (with KSRC=: only what was built)
#
# KSRC= names a kernel source tree, which is only read; without it tree/get
# fetches one. CC=, LLVM=1, CROSS_COMPILE=, ARCH=, USERCFLAGS=, USERLDFLAGS= and
# V=1 are those of the kernel.

PROGRAMS := mprotect_toggle mmap_churn
HELPERS := page_state memory_room environment rounds

OUTPUT := $(CURDIR)/build
HOSTCC := cc

all:

ifeq ($(KSRC),)

all run_tests:
	+@KSRC=$$(tree/get) && $(MAKE) --no-print-directory KSRC="$$KSRC" $@

clean:
	$(RM) -r $(OUTPUT)

else

SELFTESTS := $(abspath $(KSRC))/tools/testing/selftests
ifeq ($(wildcard $(SELFTESTS)/lib.mk),)
$(error KSRC=$(KSRC) is no kernel source tree)
endif

# As in the tree's mm/Makefile, but for -Wextra. The harness is a system header
# here, so that only our own files are judged by it.
CFLAGS = -Wall -Wextra -O2 $(KHDR_INCLUDES) $(TOOLS_INCLUDES)
CFLAGS += -isystem $(SELFTESTS)/mm -isystem $(SELFTESTS)
CFLAGS += -Wunreachable-code -U_FORTIFY_SOURCE
LDLIBS = -lrt -lpthread -lm

TEST_GEN_PROGS := $(PROGRAMS)
LOCAL_HDRS := $(wildcard *.h) $(OUTPUT)/flags
EXTRA_CLEAN := $(OUTPUT)/vm_util.o $(OUTPUT)/flags $(OUTPUT)/run

include $(SELFTESTS)/lib.mk

$(TEST_GEN_PROGS): $(HELPERS:=.c) $(OUTPUT)/vm_util.o

# Not our file: built without our warnings.
$(OUTPUT)/vm_util.o: $(SELFTESTS)/mm/vm_util.c $(OUTPUT)/flags
	$(call msg,CC,,$@)
	$(Q)$(CC) $(filter-out -W%,$(CFLAGS)) -c $< -o $@

# Another compiler, flag or tree builds everything anew.
BUILT_BY := $(strip $(LINK.c) $(LDLIBS))
ifneq ($(BUILT_BY),$(file < $(OUTPUT)/flags))
$(shell mkdir -p $(OUTPUT))
$(file > $(OUTPUT)/flags,$(BUILT_BY))
endif

# The runner looks for settings below its own folder: lay out by links what the
# kernel's "make install" lays out by copies. As in the kernel, a test that
# fails does not fail make.
define RUN_TESTS
	mkdir -p $(OUTPUT)/run/mm; \
	ln -sfn $(SELFTESTS)/kselftest $(SELFTESTS)/run_kselftest.sh $(OUTPUT)/run; \
	ln -sfn $(CURDIR)/settings $(TEST_GEN_PROGS) $(OUTPUT)/run/mm; \
	printf 'mm:%s\n' $(PROGRAMS) > $(OUTPUT)/run/kselftest-list.txt; \
	$(OUTPUT)/run/run_kselftest.sh || [ $$? -eq 1 ]
endef

endif

# The comparing tool's own program needs no kernel tree.
build/compare: $(wildcard ab/compare*.[ch])
	@mkdir -p $(@D)
	$(HOSTCC) -Wall -Wextra -O2 -o $@ $(filter %.c,$^) -lm

# The plugin of ab/profile, for the versions of QEMU's interface in which something changed.
build/profile_plugin-%.so: ab/profile_plugin.c ab/qemu_plugin.h ab/told.h
	@mkdir -p $(@D)
	$(HOSTCC) -Wall -Wextra -O2 -shared -fPIC -fvisibility=hidden -DPLUGIN_API=$* -o $@ $<

# Debian packages, asked for by name: "deps" what building and running takes,
# "check" and "kernel" what testing takes.
deps:
	@check/deps build

check:
	@check/deps check
	+@$(MAKE) --no-print-directory all
	prove -j$$(nproc) check

check-mutants:
	@check/deps kernel
	check/mutants/run

# Without an emulator of arm64 those rows fail, and say so.
check-kernels:
	@check/deps kernel
	check/kernels

check-hosts:
	@check/deps kernel
	+@check/hosts $(if $(KSRC),-t $(KSRC))

.PHONY: all run_tests check check-mutants check-kernels check-hosts deps clean
.NOTPARALLEL:
