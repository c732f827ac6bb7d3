#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
#
# The selftests on hosts that give it little, or disturb it: it passes or skips, ends
# when it is told to, and leaves nothing behind.

. check/lib.sh

toggle=$(realpath "${1-build/mprotect_toggle}")
churn=$(realpath "${2-build/mmap_churn}")
mark=HOSTS_T=$$
export "${mark?}" MPROTECT_TOGGLE_SIZE_MB=8 MPROTECT_TOGGLE_CYCLES=2 MPROTECT_TOGGLE_ROUNDS=1 \
	MMAP_CHURN_STEPS=64 MMAP_CHURN_ROUNDS=1

# For users that may not come here: an open file needs no path.
exec 8< "$toggle" 7< "$churn"

# prints_results STATUS COMMAND...: the command exits so, and no test fails; what it
# prints is left in $tmp/results
prints_results()
{
	wanted=$1
	shift
	"$@" > "$tmp/results" 2>&1
	status=$?
	grep -v '^# \(state\|round\|cost\)' "$tmp/results"
	echo "exit $status, not $wanted"
	[ $status -eq "$wanted" ] && ! grep -q '^not ok' "$tmp/results"
}

# skipped REASON [NAME]: so were all results, or those of that name
skipped()
{
	grep "^ok .*${2-}" "$tmp/results" > "$tmp/skipped"
	cat "$tmp/skipped"
	[ -s "$tmp/skipped" ] && ! grep -qv " # SKIP $1\$" "$tmp/skipped"
}

# The processes that were started from here. They have the mark, as this shell has
# not: it got it after it was started.
ours()
{
	grep -lzx "$mark" /proc/[0-9]*/environ 2> /dev/null | sed 's|/proc/||; s|/environ||'
}

# The test programs among them; a process that is gone but not yet waited for has no
# environment any more.
programs()
{
	for pid in $(ours); do
		case $(readlink "/proc/$pid/exe") in
		"$toggle"|"$churn") echo "$pid" ;;
		esac
	done
}

none_is_left()
{
	for _ in $(seq 50); do
		[ -z "$(programs)" ] && return
		sleep 0.1
	done
	for pid in $(programs); do
		tr "\0" " " < "/proc/$pid/cmdline"
		echo
		kill -9 "$pid"
	done
	return 1
}

# start ROUNDS VARIANT: starts its cost as $pid, and returns in mid-round
start()
{
	: > "$tmp/started"
	MPROTECT_TOGGLE_ROUNDS=$1 MPROTECT_TOGGLE_CYCLES=100 \
		"$toggle" -r mprotect_toggle."$2".cost > "$tmp/started" 2>&1 &
	pid=$!
	until grep -q '^# round' "$tmp/started"; do
		kill -0 $pid || return
		sleep 0.1
	done
}

# Of mmap_churn.
start_churn()
{
	: > "$tmp/started"
	MMAP_CHURN_ROUNDS=1000 MMAP_CHURN_STEPS=1600 \
		"$churn" -r mmap_churn.shared.cost > "$tmp/started" 2>&1 &
	pid=$!
	until grep -q '^# round' "$tmp/started"; do
		kill -0 $pid || return
		sleep 0.1
	done
}

churn_ends_with() # SIGNAL STATUS
{
	start_churn && [ "$(programs | wc -l)" -ge 3 ] && kill -"$1" $pid &&
		exits "$2" wait $pid && none_is_left
}

# ends_with SIGNAL STATUS VARIANT: soon, by that signal, and with all its children
ends_with()
{
	start 1000 "$3" && [ "$(programs | wc -l)" -ge 3 ] && kill -"$1" $pid &&
		exits "$2" wait $pid && none_is_left
}

# Stopped as a whole, and continued.
survives_a_stop()
{
	start 100 shared_dirty
	stopped=$(programs)
	# shellcheck disable=SC2086 # numbers
	kill -STOP $stopped
	sleep 1
	# shellcheck disable=SC2086 # numbers
	kill -CONT $stopped
	exits 0 wait $pid
	status=$?
	cat "$tmp/started"
	[ $status -eq 0 ] && [ "$(echo "$stopped" | wc -l)" -ge 3 ]
}

churn_twice_passes()
{
	"$churn" > "$tmp/first" 2>&1 &
	pid=$!
	prints_results 0 "$churn" && exits 0 wait $pid && ! grep '^not ok' "$tmp/first"
}

two_pass()
{
	"$toggle" -v shared_dirty -v shared_thp > "$tmp/first" 2>&1 &
	pid=$!
	prints_results 0 "$toggle" -v shared_dirty -v shared_thp && exits 0 wait $pid && ! grep '^not ok' "$tmp/first"
}

fails_loudly()
{
	"$@" > "$tmp/noise" 2>&1
	status=$?
	echo "exit $status"
	[ $status -eq 1 ]
}

into_full_disk()
{
	"$toggle" -v shared_dirty > /dev/full
}

into_nothing()
{
	"$toggle" -v shared_dirty >&-
}

without_stdin()
{
	prints_results 0 "$toggle" -v private_cow <&-
}

# any_limit NAME COMMAND...: whatever the limit is, no test gets into trouble
any_limit()
{
	which=$1
	shift
	for mb in 4 16 24 26 27 28 29 30 31 32 34 36; do
		echo "$which of $mb MB"
		prlimit --"$which"=${mb}000000 "$@" > "$tmp/limited" 2>&1
		status=$?
		[ $status -eq 0 ] || [ $status -eq 4 ] || break
	done
	cat "$tmp/limited"
	[ "$status" -eq 0 ]
}

cat > "$tmp/hide" <<-'EOT'
mount -t tmpfs none "$1" && shift && exec "$@"
EOT

# hiding FOLDER COMMAND...: which alone sees the folder empty
hiding()
{
	unshare -m sh "$tmp/hide" "$@"
}

leaves_tmp_empty()
{
	hiding /tmp sh -c "/proc/self/fd/8 -t cost -t partial && ls -A /tmp >&3" 3> "$tmp/list"
	status=$?
	cat "$tmp/list"
	[ $status -eq 0 ] && [ ! -s "$tmp/list" ]
}

# A memory cgroup below ours, or below the root, of either version.
make_cgroup()
{
	own=$(sed -n 's/^[0-9]*:memory://p; s/^0:://p' /proc/self/cgroup | head -n 1)
	awk '/ - cgroup2 / || / - cgroup .*memory/ { print $5 }' /proc/self/mountinfo > "$tmp/mounts"
	while read -r mount; do
		for above in "$mount$own" "$mount"; do
			cgroup=$above/mprotect_toggle.$$
			mkdir "$cgroup" 2> /dev/null || continue
			for limit in memory.max memory.limit_in_bytes; do
				[ -w "$cgroup/$limit" ] && return
			done
			rmdir "$cgroup"
		done
	done < "$tmp/mounts"
	cgroup=
	return 1
}

# in_cgroup BYTES COMMAND...: and the OOM killer is not woken
in_cgroup()
{
	echo "$1" > "$cgroup/$limit" || return
	shift
	sh -c 'echo $$ > "$0/cgroup.procs" && exec "$@"' "$cgroup" "$@"
	status=$?
	grep 'oom_kill ' "$cgroup/memory.events" "$cgroup/memory.oom_control" 2> /dev/null |
		grep -v 'oom_kill 0$' && return 99
	return $status
}

at_exit()
{
	# shellcheck disable=SC2046 # numbers
	kill -9 $(programs) 2> /dev/null
	if [ -n "$cgroup" ]; then
		until rmdir "$cgroup" 2> /dev/null || [ ! -d "$cgroup" ]; do
			sleep 0.1
		done
	fi
}

# as_root WHAT COMMAND...: a test point that takes rights
as_root()
{
	if [ "$(id -u)" -eq 0 ]; then
		ok "$@"
	else
		skip "$1" "not root"
	fi
}

cgroup=
limit=
cpu=$(taskset -cp $$ | sed 's/.*: //; s/[-,].*//')

mkdir "$tmp/here"
cd "$tmp/here" || exit

# Kernels that lose the dirty bits of private_thp fail it, whatever the host is.
ok "passes" prints_results 0 "$toggle" -V private_thp
ok "passes without stdin" without_stdin
ok "passes with an empty environment" prints_results 0 env -i "$toggle" -V private_thp -t page_state
ok "passes where dead children are ignored" prints_results 0 \
	env --ignore-signal=CHLD "$toggle" -V private_thp -t page_state
ok "two at a time pass" two_pass
ok "passes after a stop in mid-run" survives_a_stop
as_root "passes when not root" prints_results 0 setpriv --reuid=65534 --regid=65534 \
	--clear-groups /proc/self/fd/8 -V private_thp -T other_cpus
as_root "tells then that folios are not verified" grep -q ' folio=unverified' "$tmp/results"

ok "passes on one CPU" prints_results 0 taskset -c "$cpu" "$toggle" -v private -v shared_thp
ok "has no other CPU then" skipped "only one CPU to run on" other_cpus

ok "skips without address space" prints_results 4 prlimit --as=20000000 "$toggle"
ok "tells so" skipped "address space limited by RLIMIT_AS"
ok "passes with any address space" any_limit as "$toggle" -v private_cow
ok "passes with no private memory" prints_results 0 prlimit --data=20000000 "$toggle" -T cost
ok "skips what is private then" skipped "private memory limited by RLIMIT_DATA" 'mprotect_toggle.*\.private'
ok "passes with any private memory" any_limit data "$toggle" -v private_cow

as_root "skips with few processes" prints_results 4 setpriv --reuid=65533 --clear-groups \
	prlimit --nproc=3 /proc/self/fd/8
as_root "tells so" grep -x "1..0 # SKIP too few processes allowed" "$tmp/results"
as_root "skips without /proc" prints_results 4 hiding /proc "$toggle"
as_root "tells so" skipped "no smaps or pagemap in /proc"
as_root "passes without /sys" prints_results 0 hiding /sys "$toggle" -T other_cpus
as_root "has no huge pages then" skipped "no transparent huge pages in this kernel" thp
as_root "leaves nothing in /tmp" leaves_tmp_empty

ok "mmap_churn: passes" prints_results 0 "$churn"
ok "mmap_churn: passes with an empty environment" prints_results 0 env -i "$churn" -T cost
ok "mmap_churn: two at a time pass" churn_twice_passes
as_root "mmap_churn: passes when not root" prints_results 0 setpriv --reuid=65534 --regid=65534 \
	--clear-groups /proc/self/fd/7
ok "mmap_churn: passes on one CPU" prints_results 0 taskset -c "$cpu" "$churn"
ok "mmap_churn: passes with any address space" any_limit as env MMAP_CHURN_SLOTS=64 "$churn" -T cost
ok "mmap_churn: passes with any private memory" any_limit data env MMAP_CHURN_SLOTS=64 "$churn" -T cost
ok "mmap_churn: passes where the address space is used from below" prints_results 0 \
	prlimit --stack=unlimited "$churn"
as_root "mmap_churn: passes without /proc" prints_results 0 hiding /proc "$churn"
as_root "mmap_churn: skips the page state then" skipped "no smaps or pagemap in /proc" page_state
as_root "mmap_churn: passes without /sys" prints_results 0 hiding /sys "$churn"

if [ "$(id -u)" -eq 0 ] && make_cgroup; then
	ok "skips in a small memory cgroup" prints_results 4 in_cgroup 20M "$toggle"
	ok "tells so" skipped "not enough memory within the memory cgroup limit"
	ok "mmap_churn: passes in a small memory cgroup" prints_results 0 in_cgroup 20M "$churn"
	ok "mmap_churn: skips what does not fit" \
		skipped "not enough memory within the memory cgroup limit" map_and_fault
	ok "skips the cost of what does not fit" prints_results 0 in_cgroup 60M \
		env MPROTECT_TOGGLE_SIZE_MB=64 "$toggle" -v shared_dirty
	ok "tells so" skipped "not enough memory within the memory cgroup limit" cost
else
	skip "skips in a small memory cgroup" "no memory cgroup can be made here"
fi

ok "ends on SIGTERM" ends_with TERM 143 shared_dirty
ok "ends on SIGKILL" ends_with KILL 137 shared_dirty
ok "ends on SIGINT" ends_with INT 130 private_cow
ok "ends on SIGHUP" ends_with HUP 129 private
ok "mmap_churn: ends on SIGTERM" churn_ends_with TERM 143
ok "mmap_churn: ends on SIGINT" churn_ends_with INT 130
ok "mmap_churn: ends on SIGKILL" churn_ends_with KILL 137
ok "fails if its results cannot be written" fails_loudly into_full_disk
ok "fails if its results go nowhere" fails_loudly into_nothing
ok "leaves no file behind" [ -z "$(ls -A "$tmp/here")" ]

done_testing
