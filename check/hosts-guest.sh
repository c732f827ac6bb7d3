# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=dash
#
# The part of check/hosts that runs in the guest, as root, by busybox: makes the
# machine hostile in one way after the other, runs the tests in it, and judges what
# they say. Prints, beside what the tests print, a line for each row:
#
#   hosts-row: ROW|what must happen|what happened|passed or failed|seconds

set -u

thp=/sys/kernel/mm/transparent_hugepage
memory=/sys/fs/cgroup/memory
log=/tmp/log

# What tests may say where memory is short or in pieces.
swaps="the machine is short of memory and swaps"
no_memory="not enough free memory"
no_pmd="no PMD-mapped huge pages to be had"
no_huge="no huge pages mapped this way to be had"
no_64k="no folios of 64 KiB to be had"
no_thp="no transparent huge pages in this kernel"
no_smaps="no smaps or pagemap in /proc"
no_discard="MADV_PAGEOUT does not discard lazily freed pages"
no_pin="no right to choose the CPU"
cgroup_limit="not enough memory within the memory cgroup limit"

# row NAME MUST COMMAND...: a row of the table. The command calls told and wrong.
row()
{
	name=$1 must=$2 happened="" verdict=passed
	shift 2
	case $name in
	*$only*) ;;
	*) return ;;
	esac
	must_skip="" may_skip=""
	echo "hosts-begin: $name"
	began=$(now)
	beside end_tests_after "${limit:-600}"
	"$@"
	no_test_is_left
	put_back
	happened=$(printf '%.200s' "${happened#, }")
	echo "hosts-row: $name|$must|$happened|$verdict|$(($(now) - began))"
}

now()
{
	cut -d . -f 1 /proc/uptime
}

told()
{
	happened="$happened, $1"
}

wrong()
{
	told "$1"
	verdict=failed
}

# must_skip PATTERN REASON: tests with names like that skip for this reason
must_skip()
{
	must_skip="$must_skip$1=$2;"
}

# may_skip REASON...: any test may
may_skip()
{
	for reason; do
		may_skip="$may_skip$reason;"
	done
}

# set_to VALUE FILE: until the end of the row
set_to()
{
	sed 's/.*\[\(.*\)\].*/\1/' "$2" > /tmp/value
	echo "echo $(cat /tmp/value) > $2" >> /tmp/put-back
	echo "$1" 2> /dev/null > "$2" || wrong "$2 does not take $1"
}

# beside COMMAND...: runs until the end of the row
beside()
{
	"$@" > /tmp/beside &
	echo "kill -9 $!; wait $!" >> /tmp/put-back
}

# For a row that hangs.
end_tests_after() # SECONDS
{
	sleep "$1"
	# shellcheck disable=SC2046 # numbers
	kill $(programs)
}

put_back()
{
	eval "$(tac /tmp/put-back)"
	: > /tmp/put-back
}

# tests_of FILE: a word a result, and what is wrong with them
tests_of()
{
	awk -v must="$must_skip" -v may="$may_skip" '
	/^1\.\.[0-9]+$/ { planned = substr($0, 4) }
	# When it is known before any test is run.
	sub(/^1\.\.0 # SKIP /, "") {
		nothing = $0
		bad = index(";" may, ";" $0 ";") ? "" : ", skips (" $0 ")"
	}
	!/^(not )?ok / { next }
	{
		seen++
		name = $0
		sub(/^(not )?ok [0-9]+ /, "", name)
		reason = ""
		if (i = index(name, " # SKIP ")) {
			reason = substr(name, i + 8)
			name = substr(name, 1, i - 1)
		}
	}
	/^not ok/ { bad = bad ", not ok " name; next }
	{
		count[reason != ""]++
		rules = split(must, rule, ";") - 1
		for (i = rules; i > 0; i--)
			if (match(name, substr(rule[i], 1, index(rule[i], "=") - 1)))
				break
		if (i > 0) {
			wanted = substr(rule[i], index(rule[i], "=") + 1)
			if (reason != wanted)
				bad = bad ", " name " says \"" reason "\""
		} else if (reason != "" && !index(";" may, ";" reason ";"))
			bad = bad ", " name " skips (" reason ")"
	}
	END {
		printf "%d ok, %d skip", count[0], count[1]
		if (nothing == "" && (!seen || seen != planned))
			printf "; of %d tests %d told", planned, seen
		if (length(bad) > 300)
			bad = substr(bad, 1, 300) "..."
		print (bad == "" ? "" : ";" substr(bad, 2))
	}' "$1"
}

# judge STATUS FILE: of a run that exited so. It must have been $wanted, 0 if not set.
judge()
{
	tests=$(tests_of "$2")
	happens="exit $1: $tests"
	[ "$1" -ne "${wanted:-0}" ] || happens=$tests
	case $happens in
	exit*|*\;*)
		wrong "$happens"
		# All of it, to look at.
		sed 's|^|  : |' "$2"
		;;
	*) told "$happens" ;;
	esac
}

# passes COMMAND...: no test fails, and none skips that need not
passes()
{
	"$@" > $log 2>&1
	judge $? $log
}

# Both programs do, behind a command if there is one.
both_pass()
{
	passes "$@" /test/mprotect_toggle
	passes "$@" /test/mmap_churn
}

# both_skip REASON COMMAND...: all tests skip for this reason
both_skip()
{
	must_skip . "$1"
	shift
	wanted=4
	both_pass "$@"
	wanted=0
}

programs()
{
	pidof mprotect_toggle mmap_churn
}

# Whoever ends is given time to.
no_test_is_left()
{
	for _ in $(seq 100); do
		programs > /dev/null || return 0
		sleep 0.1
	done
	wrong "left $(programs | wc -w) processes"
	# shellcheck disable=SC2046 # numbers
	kill -9 $(programs)
}

# await COMMAND...: until it holds, a minute long
await()
{
	for _ in $(seq 600); do
		"$@" && return
		sleep 0.1
	done
	wrong "waited in vain for: $*"
	return 1
}

# Policies of huge pages

plain()
{
	both_pass
	grep -q '^# cost' $log || wrong "no figures"
}

thp()
{
	set_to "$1" $thp/enabled
	both_pass
}

# Of no concern to private memory.
shmem()
{
	set_to "$1" $thp/shmem_enabled
	passes /test/mprotect_toggle -v shared_dirty -v shared_none -v shared_thp -v shared_thp_pte
	passes /test/mmap_churn -v shared
}

shmem_denied()
{
	must_skip 'toggle.shared_thp' "$no_pmd"
	shmem deny
}

every_size()
{
	for size in "$thp"/hugepages-*; do
		# The smallest folios are for shared memory only.
		for policy in enabled shmem_enabled; do
			[ ! -e "$size/$policy" ] || set_to always "$size/$policy"
		done
	done
	both_pass
}

ksm()
{
	set_to 1 /sys/kernel/mm/ksm/run
	set_to 0 /sys/kernel/mm/ksm/sleep_millisecs
	set_to 10000 /sys/kernel/mm/ksm/pages_to_scan
	both_pass /test/confine -k
	[ "$(cat /sys/kernel/mm/ksm/full_scans)" -gt 0 ] || wrong "KSM did not get round once"
}

# Memory that is short, moving or in pieces

mb_of() # NAME in /proc/meminfo
{
	awk -v name="$1:" '$1 == name { print int($2 / 1024) }' /proc/meminfo
}

hog() # WHAT MIB
{
	: > /tmp/beside
	beside /test/memory-hog "$@"
	await grep -q ready /tmp/beside
}

swap_on()
{
	echo 1G > /sys/block/zram0/disksize
	mkswap /dev/zram0 > /dev/null
	swapon /dev/zram0
	echo "swapoff /dev/zram0; echo 1 > /sys/block/zram0/reset" >> /tmp/put-back
}

swapped_pages()
{
	awk '$1 == "pswpout" { print $2 }' /proc/vmstat
}

# runs_once COMMAND: passes, once it does not skip all, which takes no time
runs_once()
{
	for _ in $(seq 50); do
		"$@" > $log 2>&1
		status=$?
		[ $status -eq 4 ] || break
	done
	judge "$status" $log
}

swapping()
{
	may_skip "$swaps" "$no_memory" "$no_pmd" "$no_huge" "$no_64k" "$no_discard"
	swap_on
	before=$(swapped_pages)
	hog press $(($(mb_of MemTotal) + 128))
	runs_once /test/mprotect_toggle
	runs_once /test/mmap_churn
	[ "$(swapped_pages)" -gt "$before" ] || wrong "nothing was swapped"
}

drop_and_compact()
{
	while :; do
		echo 3 > /proc/sys/vm/drop_caches
		echo 1 > /proc/sys/vm/compact_memory
	done
}

compacting()
{
	may_skip "$no_pmd" "$no_huge" "$no_64k" "$no_discard"
	beside drop_and_compact
	both_pass
}

fragmented()
{
	may_skip "$no_pmd" "$no_huge" "$no_64k"
	ulimit -n 4096
	hog fragment $(($(mb_of MemAvailable) - 24))
	cat /proc/buddyinfo
	passes /test/mprotect_toggle
	grep -q "SKIP $no_pmd" $log || wrong "there are huge pages"
	passes /test/mmap_churn
}

# A cgroup of so many MB, which the row runs in from here on.
small_cgroup()
{
	mkdir -p /sys/fs/cgroup
	mount -t cgroup2 none /sys/fs/cgroup 2> /dev/null
	echo +memory > /sys/fs/cgroup/cgroup.subtree_control
	mkdir -p $memory
	echo "$1M" > $memory/memory.max
}

# in_cgroup MB COMMAND...
in_cgroup()
{
	small_cgroup "$1"
	shift
	# shellcheck disable=SC2016 # for the other shell
	sh -c 'echo $$ > '$memory'/cgroup.procs && exec "$@"' - "$@"
}

not_one_killed()
{
	grep -q '^oom_kill 0$' $memory/memory.events || wrong "the OOM killer came"
	rmdir $memory
}

cgroup_below()
{
	both_skip "$cgroup_limit" in_cgroup 16
	not_one_killed
}

cgroup_below_cost()
{
	must_skip 'toggle\..*\.cost' "$cgroup_limit"
	passes in_cgroup 60 env MPROTECT_TOGGLE_SIZE_MB=64 /test/mprotect_toggle -T other_cpus
	not_one_killed
}

# Whatever the limit is: a test passes, or skips for the reason given.
any_cgroup()
{
	may_skip "$cgroup_limit"
	limits=0
	for mb in 20 24 26 28 32 34 36 40 56; do
		any_limit in_cgroup $mb
	done
	told "$limits runs passed or skipped"
	not_one_killed
}

# any_limit COMMAND...: tests that need more and less memory, at a limit
any_limit()
{
	for program in \
		"mprotect_toggle -r mprotect_toggle.private_cow.contents \
		 -r mprotect_toggle.private_thp.page_state -r mprotect_toggle.private_cow.cost" \
		"mmap_churn -r mmap_churn.map_and_fault.page_state -r mmap_churn.shared.cost"; do
		# shellcheck disable=SC2086 # several words
		"$@" /test/$program > $log 2>&1
		status=$?
		tests=$(tests_of $log)
		case $status,$tests in
		[04],*\;*|[!04]*)
			wrong "$* ${program%% *}: exit $status: $tests"
			sed 's|^|  : |' $log
			;;
		*) limits=$((limits + 1)) ;;
		esac
	done
}

# Limits of a process

limit_below() # LIMIT=BYTES REASON
{
	both_skip "$2" /test/confine -l "$1"
}

any_memory() # LIMIT REASON
{
	may_skip "$2"
	limits=0
	for mb in 4 12 16 18 19 20 22 24 28 40; do
		any_limit /test/confine -l "$1=${mb}000000"
	done
	told "$limits runs passed or skipped"
}

# The program takes a process, each test two, and some tests more.
few_processes()
{
	may_skip "too few processes allowed"
	limits=0
	for processes in 1 2 3 4 5 6; do
		any_limit /test/confine -l nproc=$processes -u
	done
	told "$limits runs passed or skipped"
}

no_overcommit()
{
	set_to 2 /proc/sys/vm/overcommit_memory
	both_pass
}

# Those who are not root leave some for root.
little_to_commit()
{
	may_skip "not enough memory within the overcommit limit"
	limits=0
	for mb in 12 20 24 26 28 32 36 40 48; do
		committed=$(awk '$1 == "Committed_AS:" { print $2 }' /proc/meminfo)
		echo $((committed + mb * 1024)) > /proc/sys/vm/overcommit_kbytes
		echo 2 > /proc/sys/vm/overcommit_memory
		any_limit "$@"
		echo 0 > /proc/sys/vm/overcommit_memory
	done
	echo 0 > /proc/sys/vm/overcommit_kbytes
	echo 50 > /proc/sys/vm/overcommit_ratio
	told "$limits runs passed or skipped"
}

not_root()
{
	both_pass /test/confine -u
	passes /test/confine -u /test/mprotect_toggle -r mprotect_toggle.private_thp_pte.cost
	grep -q ' folio=unverified' $log || wrong "folios seem to be verified"
}

# Parts of a system that are not there

# A root folder with the programs and nothing else but what the row mounts.
other_root()
{
	mkdir -p /other
	mount -t tmpfs none /other
	mkdir /other/test /other/proc /other/sys /other/dev /other/tmp
	cp /test/mprotect_toggle /test/mmap_churn /test/confine /other/test
	echo "umount -l /other" >> /tmp/put-back
	for folder; do
		mount -o bind "/$folder" "/other/$folder"
		echo "umount -l /other/$folder" >> /tmp/put-back
	done
}

hidden_processes()
{
	mount -o remount,hidepid=2 /proc
	echo "mount -o remount,hidepid=0 /proc" >> /tmp/put-back
	/test/confine -u /test/busybox test -e /proc/1/status && wrong "/proc hides nothing"
	both_pass /test/confine -u
}

no_proc()
{
	other_root sys dev
	must_skip 'toggle|churn\..*page_state' "$no_smaps"
	must_skip 'sparse' "no status in /proc"
	wanted=4
	passes chroot /other /test/mprotect_toggle
	wanted=0
	passes chroot /other /test/mmap_churn
}

no_sys()
{
	other_root proc dev
	must_skip 'thp' "$no_thp"
	must_skip 'private_cow_part' "$no_thp"
	both_pass chroot /other
}

read_only()
{
	other_root proc sys dev
	mount -o remount,ro /other
	touch /other/file 2> /dev/null && wrong "the root file system is not read-only"
	both_pass chroot /other
}

# System calls that are denied, CPUs

denied()
{
	both_pass /test/confine -d "$1"
}

no_userfaultfd()
{
	must_skip 'uffd_wp' "no userfaultfd in this kernel, or no right to use it"
	denied userfaultfd
}

no_affinity()
{
	must_skip 'other_cpus|stays_clean' "$no_pin"
	denied sched_setaffinity
}

one_cpu()
{
	must_skip 'other_cpus' "only one CPU to run on"
	both_pass taskset "$1"
}

# Where results go

# fails_loudly COMMAND...: exits with 1
fails_loudly()
{
	"$@" 2> $log
	status=$?
	if [ $status -eq 1 ]; then
		told "exit 1"
	else
		wrong "exit $status"
	fi
}

stdout_full()
{
	fails_loudly /test/mprotect_toggle -v shared_dirty > /dev/full
	fails_loudly /test/mmap_churn -v shared > /dev/full
}

stdout_closed()
{
	fails_loudly /test/mprotect_toggle -v shared_dirty >&-
	fails_loudly /test/mmap_churn -v shared >&-
}

stdin_and_stderr_closed()
{
	for program in mprotect_toggle mmap_churn; do
		/test/$program <&- > $log 2>&-
		judge $? $log
	done
}

# Signals

# start PROGRAM VARIANT: its cost with so many rounds that it does not end, as $pid;
# returns in mid-round
start()
{
	: > $log
	MPROTECT_TOGGLE_ROUNDS=${rounds:-1000} MPROTECT_TOGGLE_CYCLES=20 \
		MMAP_CHURN_ROUNDS=${rounds:-1000} MMAP_CHURN_STEPS=1600 \
		"/test/$1" -r "$1.$2.cost" > $log 2>&1 &
	pid=$!
	await grep -q '^# round' $log
}

# ends_by NUMBER PROGRAM VARIANT: and no other process of it lives on
ends_by()
{
	start "$2" "$3" || return
	[ "$(programs | wc -w)" -ge 3 ] || wrong "not in mid-run"
	kill "-$1" $pid
	wait $pid
	status=$?
	if [ $status -eq $((128 + $1)) ]; then
		told "signal $1"
	else
		wrong "exit $status"
	fi
	no_test_is_left
}

killed() # NUMBER
{
	ends_by "$1" mprotect_toggle shared_dirty
	ends_by "$1" mprotect_toggle private_cow
	ends_by "$1" mmap_churn shared
}

# Longer than a round may do nothing.
stopped()
{
	for program in "mprotect_toggle private_cow" "mmap_churn shared"; do
		# shellcheck disable=SC2086 # two words
		rounds=20 start $program || return
		# shellcheck disable=SC2046 # numbers
		kill -STOP $(programs)
		sleep 20
		# shellcheck disable=SC2046 # numbers
		kill -CONT $(programs)
		wait $pid
		judge $? $log
	done
}

# Many at once, and many in a row

busy_loop()
{
	while :; do :; done
}

# In two CPUs' time, with the defaults.
slow()
{
	unset MPROTECT_TOGGLE_SIZE_MB MPROTECT_TOGGLE_CYCLES MPROTECT_TOGGLE_ROUNDS \
		MMAP_CHURN_SLOTS MMAP_CHURN_STEPS MMAP_CHURN_ROUNDS
	for _ in $(seq 4); do
		beside busy_loop
	done
	both_pass
}

two_at_once()
{
	for program in mprotect_toggle mmap_churn; do
		/test/$program > /tmp/first 2>&1 &
		pid=$!
		passes /test/$program
		wait $pid
		judge $? /tmp/first
	done
}

# What is taken from the machine, once it has given up what it can, in KiB.
taken()
{
	# The logs are in memory, too.
	rm -f $log /tmp/churn
	echo 3 > /proc/sys/vm/drop_caches
	echo 1 > /proc/sys/vm/compact_memory
	# Each CPU has counted for itself.
	echo 1 > /proc/sys/vm/stat_refresh
	awk '$1 == "MemTotal:" { total = $2 } $1 == "MemFree:" { print total - $2 }' /proc/meminfo
}

field() # NAME in /proc/meminfo
{
	awk -v name="$1:" '$1 == name { print $2 }' /proc/meminfo
}

# All kinds of memory, in few tests.
in_a_row()
{
	small_knobs 2 64
	failures=0
	for i in $(seq 200); do
		/test/mprotect_toggle -r mprotect_toggle.shared_thp.page_state \
			-r mprotect_toggle.private_thp_pte.cost -r mprotect_toggle.private_mthp.enforced \
			-r mprotect_toggle.shared_dirty.write_tracking_uffd_wp \
			-r mprotect_toggle_cow.private_cow.contents > $log 2>&1
		status=$?
		tests=$(tests_of $log)
		/test/mmap_churn -r mmap_churn.map_and_fault.page_state -r mmap_churn.shared.cost \
			> /tmp/churn 2>&1
		status=$status$?
		tests=$tests$(tests_of /tmp/churn)
		case $status$tests in
		00*\;*|[!0]*|0[!0]*)
			failures=$((failures + 1))
			[ $failures -gt 3 ] || wrong "run $i: exit $status: $tests"
			sed 's|^|  : |' $log /tmp/churn
			;;
		esac
		[ $((i % 20)) -ne 0 ] || echo "hosts-runs: $i"
		if [ "$i" -eq 50 ]; then
			taken=$(taken) slab=$(field Slab) shmem=$(field Shmem)
		fi
	done
	told "$failures of 200 failed"
	grown=$(($(taken) - taken)) slab=$(($(field Slab) - slab)) shmem=$(($(field Shmem) - shmem))
	growth="in 150 runs memory grew by $grown KiB, slab by $slab, shmem by $shmem"
	# One page a run would be 600 KiB. Free pages of the CPUs' own come and go, too: 400 to
	# 2184 KiB were seen.
	if [ $grown -ge 4000 ] || [ $slab -ge 300 ] || [ $shmem -ge 300 ]; then
		wrong "$growth"
	else
		told "$growth"
	fi
}

# So that a row takes seconds; more for rows in which the number of pages matters.
small_knobs()
{
	export MPROTECT_TOGGLE_SIZE_MB="$1" MPROTECT_TOGGLE_CYCLES=2 MPROTECT_TOGGLE_ROUNDS=1 \
		MMAP_CHURN_SLOTS="$2" MMAP_CHURN_STEPS=64 MMAP_CHURN_ROUNDS=1
}

policies()
{
	row "nothing hostile" "passes" plain
	row "THP always" "passes" thp always
	row "THP madvise" "passes" thp madvise
	row "THP never" "passes" thp never
	for value in always within_size advise never force; do
		row "shmem_enabled $value" "passes" shmem $value
	done
	row "shmem_enabled deny" "shared huge pages skip, the rest passes" shmem_denied
	row "every mTHP size always" "passes" every_size
	row "KSM merges everything" "passes" ksm
}

memory()
{
	row "zram swap under pressure" "passes, or skips for want of memory" swapping
	row "drop_caches and compact_memory in a loop" "passes, or skips for want of large folios" compacting
	row "fragmented memory" "passes, or skips for want of large folios" fragmented
	row "cgroup limit below the mapping" "skips, no OOM kill" cgroup_below
	row "cgroup limit below the size of cost" "cost skips, no OOM kill" cgroup_below_cost
	row "any cgroup limit" "passes or skips, no OOM kill" any_cgroup
	row "overcommit_memory 2" "passes" no_overcommit
	row "any room to commit" "passes or skips" little_to_commit
	row "any room to commit, not root" "passes or skips" little_to_commit /test/confine -u
}

process()
{
	row "RLIMIT_AS below the mapping" "skips" \
		limit_below as=16000000 "address space limited by RLIMIT_AS"
	row "any RLIMIT_AS" "passes or skips" any_memory as "address space limited by RLIMIT_AS"
	row "RLIMIT_DATA below the mapping" "skips" \
		limit_below data=12000000 "private memory limited by RLIMIT_DATA"
	row "any RLIMIT_DATA" "passes or skips" any_memory data "private memory limited by RLIMIT_DATA"
	row "any RLIMIT_NPROC" "passes or skips" few_processes
	row "not root" "passes, folios unverified" not_root
	row "/proc with hidepid=2, not root" "passes" hidden_processes
	row "no /proc" "what needs it skips" no_proc
	row "no /sys" "huge pages skip, the rest passes" no_sys
	row "read-only root file system" "passes" read_only
	row "no userfaultfd (seccomp)" "its tests skip, the rest passes" no_userfaultfd
	row "no sched_setaffinity (seccomp)" "tests that pin skip, the rest passes" no_affinity
	row "CPU 0 only" "other_cpus skips, the rest passes" one_cpu 1
	row "CPU 1 only" "other_cpus skips, the rest passes" one_cpu 2
}

ends()
{
	row "stdout full" "fails" stdout_full
	row "stdout closed" "fails" stdout_closed
	row "stdin and stderr closed" "passes" stdin_and_stderr_closed
	row "SIGSTOP, 20 s, SIGCONT in mid-run" "passes" stopped
	row "SIGTERM in mid-run" "ends by signal 15, no child left" killed 15
	row "SIGINT in mid-run" "ends by signal 2, no child left" killed 2
	row "SIGKILL in mid-run" "ends by signal 9, no child left" killed 9
	row "two at once" "passes" two_at_once
}

slowness()
{
	limit=1500
	row "default run, 4 busy loops beside" "passes, in time" slow
}

repeats()
{
	limit=1500
	row "200 runs in a row" "passes, nothing grows" in_a_row
}

PATH=/bin
export PATH
[ $# -ge 1 ] || exit 2
group=$1 only=${2-}
/test/busybox mkdir -p /bin /etc
/test/busybox --install -s /bin
[ -e /dev/full ] || mknod -m 666 /dev/full c 1 7
: > /tmp/put-back
case $group in
memory) small_knobs 8 256 ;;
*) small_knobs 2 64 ;;
esac
"$group"
echo "hosts-end: $group"
