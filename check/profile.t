#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
#
# ab/profile: the functions that a known change went into, and what its parts make of input
# that is known to the last digit.

. check/lib.sh

# All that ab/profile must remove is below this.
export TMPDIR="$tmp/tmp"
mkdir "$TMPDIR"

means()
{
	awk -v phases=down,up -v warmup_rounds=1 -v rounds=1 -v cycles=4 "$@" \
		-f ab/profile_means.awk "$tmp/counts" "$tmp/counts" > "$tmp/unsorted" &&
		sort "$tmp/unsorted" > "$tmp/means"
}

# A cycle of two phases, as the plugin writes it.
cycle() # DOWN UP FUNCTION
{
	printf '%s\n' edge "phase down" "walk $1" "$3 1" edge "phase up" "walk $2" "user_space 3" edge
}

# Of the second round the last four cycles are recorded, and the two in their middle chosen,
# by each phase and by the cycle. What is not a whole cycle is none.
counts()
{
	echo "symbols 9"
	for up in 1 1 1 1 1; do
		cycle 7777 $up warming_up
	done
	printf '%s\n' edge "phase down" "prepare 1" "phase up" "prepare 1" edge
	cycle 6666 1 unrecorded
	cycle 100 10 split.isra.0
	printf '%s\n' "phase up" "stray 1" edge
	cycle 900 20 interrupted
	cycle 110 50 split.cold
	cycle 120 30 split
	printf '%s\n' edge "phase down" "ended 1"
}

cat > "$tmp/expected-means" <<'EOT'
cycle split 1.0000
cycle user_space 3.0000
cycle walk 155.0000
down split 1.0000
down user_space 0.0000
down walk 115.0000
up user_space 3.0000
up walk 25.0000
EOT

tells_cycles_apart()
{
	counts > "$tmp/counts"
	means -v parts=no && grep -v " 0.0000$" "$tmp/expected-means" | same - "$tmp/means"
}

keeps_parts()
{
	means -v parts=yes && grep "^down split.cold 0.5000$" "$tmp/means" &&
		grep "^down split 0.5000$" "$tmp/means"
}

# A round with a cycle too many.
uneven_rounds()
{
	cycle 1 1 more >> "$tmp/counts"
	exits 1 means -v parts=no
}

# Two kernels, of which the second has twice the pages.
cat > "$tmp/lines" <<'EOT'
kernel 1 old
unit page
units 1 10 15
printed 1 cycle 100.50
printed 1 down 60.00
count 1 cycle walk 500.0000
count 1 cycle user_space 40.0000
count 1 cycle gone 60.0000
count 1 cycle same 390.0000
count 1 cycle tiny 5.0000
count 1 cycle tinier 4.9000
count 1 down walk 600.0000
kernel 2 new
unit page
units 2 20 15
printed 2 cycle 200.00
printed 2 down 50.00
count 2 cycle walk 3000.0000
count 2 cycle user_space 80.0000
count 2 cycle same 780.0000
count 2 cycle tiny 2.0000
count 2 cycle added 138.0000
count 2 down walk 1000.0000
EOT

table()
{
	awk -v by_phase=no -v threshold=0.5 -v test=mprotect_toggle -v variant=private "$@" \
		-f ab/profile_table.awk "$tmp/lines" > "$tmp/table"
}

cat > "$tmp/expected-table" <<'EOT'
private, cycle: instructions per page, middle half of 15 cycles

function                        old        new     change
walk                          50.00     150.00    +100.00
added                          0.00       6.90      +6.90
gone                           6.00       0.00      -6.00
tiny                           0.50       0.10      -0.40
same                          39.00      39.00      +0.00
other                          0.49       0.00      -0.49
user space                     4.00       4.00      +0.00
total                         99.99     200.00    +100.01
printed by the test          100.50     200.00     +99.50
total against that          -0.51 %    +0.00 %

In order of the largest change between any two kernels; the last column is the
last kernel against the first.
Instructions are counted: cache misses, TLB misses and stalls are not seen.
EOT

prints_table()
{
	table -v format=text && same "$tmp/expected-table" "$tmp/table"
}

prints_phases()
{
	table -v format=text -v by_phase=yes && cat "$tmp/table" &&
		[ "$(grep -c "^private, " "$tmp/table")" -eq 1 ] &&
		grep "^private, down:" "$tmp/table" &&
		grep "^walk  *60.00  *50.00  *-10.00$" "$tmp/table"
}

cat > "$tmp/expected-folded" <<'EOT'
old;down;walk 600
new;down;walk 1000
EOT

prints_folded()
{
	table -v format=folded && same "$tmp/expected-folded" "$tmp/table"
}

# value PHASE KEY COLUMN, of the JSON in $tmp/json; a key that is no other is a function
cat > "$tmp/value.py" <<'EOT'
import json, sys
phase, key, column = sys.argv[2], sys.argv[3], int(sys.argv[4])
profile = json.load(open(sys.argv[1]))
phase = next(p for p in profile["phases"] if p["phase"] == phase)
functions = {f["function"]: f["instructions"] for f in phase["functions"]}
print({**phase, **functions}[key][column - 1])
EOT

value()
{
	PYTHONDONTWRITEBYTECODE=1 python3 "$tmp/value.py" "$tmp/json" "$@"
}

# between LOW HIGH PHASE KEY COLUMN
between()
{
	low=$1 high=$2
	shift 2
	number=$(value "$@") || return
	echo "$* is $number, not from $low to $high"
	awk "BEGIN { exit !($number >= $low && $number <= $high) }"
}

prints_json()
{
	table -v format=json && cp "$tmp/table" "$tmp/json" && between 6 6 cycle gone 1 &&
		between 0 0 cycle gone 2 && between 50 50 down total 2 &&
		between 200 200 cycle printed 2
}

profile()
{
	ab/profile --json -o "$tmp/logs" "$@" > "$tmp/json" 2> "$tmp/stderr"
	status=$?
	cat "$tmp/stderr"
	return $status
}

# The functions that 6.17 put in the place of one.
shows_change()
{
	between 260 281 cycle change_protection 1 && between 0 1 cycle change_protection 2 &&
		between 317 340 cycle prot_commit_flush_ptes 2 &&
		between 230 247 cycle change_pte_range 2 && between 63 69 cycle vm_normal_page 2 &&
		between 5.9 6.1 cycle native_set_pte 1 && between 5.9 6.1 cycle native_set_pte 2 &&
		between 3.9 4.5 cycle user_space 1 && between 3.9 4.5 cycle user_space 2
}

halves_it()
{
	between 130 141 protect change_protection 1 && between 130 141 restore change_protection 1 &&
		between 158 170 protect prot_commit_flush_ptes 2 &&
		between 3.9 4.1 touch user_space 2
}

# Every phase, and the cycle, of every kernel.
agrees() # PERCENT KERNELS PHASE...
{
	percent=$1 kernels=$2
	shift 2
	for phase; do
		for column in $(seq "$kernels"); do
			printed=$(value "$phase" printed "$column") || return
			between "$(awk "BEGIN { print $printed * (1 - $percent / 100) }")" \
				"$(awk "BEGIN { print $printed * (1 + $percent / 100) }")" \
				"$phase" total "$column" || return
		done
	done
}

# No function of the same kernel differs by more than half an instruction.
repeats()
{
	PYTHONDONTWRITEBYTECODE=1 python3 -c '
import json, sys
rows = [(abs(f["instructions"][1] - f["instructions"][2]), f["function"])
	for phase in json.load(open(sys.argv[1]))["phases"] for f in phase["functions"]]
print(len(rows), max(rows))
sys.exit(len(rows) < 50 or max(rows)[0] > 0.5)' "$tmp/json"
}

# Names are those of functions, not of places in them, and none is unknown.
names_functions()
{
	grep -o '"function": "[^"]*"' "$tmp/json" | sort -u > "$tmp/functions"
	grep '"do_syscall_64"' "$tmp/functions" && grep '"user_space"' "$tmp/functions" &&
		! grep -e '\.' -e unknown -e __pfx_ "$tmp/functions"
}

# A QEMU whose plugin interface is another.
unknown_interface()
{
	mkdir -p "$tmp/bin"
	cat > "$tmp/bin/qemu-system-x86_64" <<-'EOT'
	#!/bin/sh
	[ "$1" != --version ] || { echo "QEMU emulator version 99.1"; exit; }
	echo "qemu-system-x86_64: this QEMU supports only a minimum version of 88" >&2
	exit 1
	EOT
	chmod +x "$tmp/bin/qemu-system-x86_64"
	refuses 125 "version 99.1 has no plugin interface that is known here .*minimum version of 88" \
		env PATH="$tmp/bin:$PATH" ab/profile 7.3
}

# A Ctrl-C when the plugin has begun to write.
interrupted()
{
	setsid perl -e "\$SIG{INT} = 'DEFAULT'; exec @ARGV" \
		ab/profile -o "$tmp/interrupted" 7.3 > "$tmp/stdout" 2> "$tmp/stderr" &
	pid=$!
	until grep -qs "^symbols" "$TMPDIR"/*/0.counts; do
		kill -0 $pid 2> /dev/null || break
		sleep 0.1
	done
	kill -s INT -- -$pid
	wait $pid
	status=$?
	cat "$tmp/stderr" "$tmp/stdout"
	echo "exit $status"
	[ $status -eq 130 ] && nothing_is_left
}

# fails PATTERN SIZE ARGUMENT...: a profile of a mapping of so many MiB that ends so
fails()
{
	pattern=$1 size=$2
	shift 2
	env MPROTECT_TOGGLE_SIZE_MB="$size" ab/profile -o "$tmp/fails" "$@" 7.3 \
		> "$tmp/stdout" 2> "$tmp/stderr"
	status=$?
	cat "$tmp/stderr" "$tmp/stdout"
	echo "exit $status"
	[ $status -eq 125 ] && [ ! -s "$tmp/stdout" ] && tail -n 1 "$tmp/stderr" | grep "$pattern"
}

# PID 1 is not told to tell symbols, as if it had none.
without_symbols()
{
	qemu=$(command -v qemu-system-x86_64)
	cat > "$tmp/bin/qemu-system-x86_64" <<-EOT
	#!/bin/bash
	exec "$qemu" "\${@/ab_plugin=yes}"
	EOT
	PATH="$tmp/bin:$PATH" fails "7.3 tells no symbols: is it without CONFIG_KALLSYMS" 2
}

ok "-h" exits 0 ab/profile -h
ok "refuses to do without a kernel" refuses 2 "takes kernels" ab/profile
ok "refuses an unknown option" refuses 2 "no option -z" ab/profile -z 7.3
ok "refuses an unknown long option" refuses 2 "no option --part" ab/profile --part 7.3
ok "refuses an option without its value" refuses 2 "-v takes a value" ab/profile -v
ok "refuses a threshold that is no number" \
	refuses 2 "--threshold takes a number of percent, not '7%'" ab/profile --threshold 7% 7.3
ok "refuses a threshold that is not there" \
	refuses 2 "--threshold takes a number of percent, not ''" ab/profile --threshold
ok "refuses a kernel that is none" refuses 2 "nowhere is no" ab/profile nowhere

ok "the middle half of the recorded cycles" tells_cycles_apart
ok "parts kept apart" keeps_parts
ok "a cycle too many" uneven_rounds
ok "a table" prints_table
ok "a table of a phase" prints_phases
ok "for flame graphs" prints_folded
ok "JSON" prints_json

if ! ab/kernel 7.3 > /dev/null; then
	skip "profiles of 7.3" "kernel 7.3 cannot be fetched"
	done_testing
	exit
fi
echo 'int main(void) { return 0; }' > "$tmp/none.c"
cc -static -o "$tmp/none" "$tmp/none.c" && cc -static-pie -o "$tmp/pie" "$tmp/none.c" || exit
ok "refuses two variants" refuses 2 "takes one variant, not 2" ab/profile -v private,shared_thp 7.3
ok "refuses a variant that is none" \
	refuses 2 "no variant shared_dusty" ab/profile -v shared_dusty 7.3
ok "refuses a test that is none" refuses 2 "no test nothing" ab/profile -t nothing 7.3
ok "refuses a program that is none" refuses 2 "is no program" ab/profile -t ./README -v private 7.3
ok "refuses a program that is not there" \
	refuses 2 "is no program" ab/profile -t ./nothing -v private 7.3
ok "refuses a program without phases" \
	refuses 2 "has no functions NAME_phase" ab/profile -t "$tmp/none" -v private 7.3
ok "refuses a program for any address" \
	refuses 2 "pie can be loaded anywhere" ab/profile -t "$tmp/pie" -v private 7.3
ok "an unknown version of QEMU's plugins" unknown_interface
ok "a kernel without symbols" without_symbols
ok "a variant that is skipped" \
	fails "printed no cost of private on 7.3: ok .* # SKIP" 500 -v private -m 400
ok "Ctrl-C leaves nothing behind" interrupted
export MMAP_CHURN_ROUNDS=1
ok "a profile of mmap_churn" profile -t mmap_churn -v map_only 7.3
unset MMAP_CHURN_ROUNDS
# Its batches are not all the same: a mean of them is not the median.
ok "totals are what it printed" agrees 3 1 cycle unmap map

for kernel in 6.16.12 6.17.13; do
	if ! ab/kernel "$kernel" > /dev/null; then
		skip "6.16.12 and 6.17.13" "kernel $kernel cannot be fetched"
		done_testing
		exit
	fi
done
ok "three profiles" profile -v shared_dirty 6.16.12 6.17.13 6.17.13
ok "the functions of a change" shows_change
ok "half of it in each phase" halves_it
ok "totals are what the test printed" agrees 1 3 cycle protect restore touch
ok "two profiles of a kernel are the same" repeats
ok "names of functions" names_functions
ok "nothing is left" nothing_is_left

done_testing
