#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
#
# What the selftests print: KTAP as prove's own parser and the kernel's read it,
# diagnostics that a program can read, and figures that agree with each other.

. check/lib.sh

toggle=${1-build/mprotect_toggle}
churn=${2-build/mmap_churn}
ksrc=${KSRC:-$(tree/get)}
rounds=3
cycles=4

# run SIZE [NAME=VALUE...] [COMMAND...]: by that, with knobs that make it quick; all
# but private_thp, which fails on kernels that lose its dirty bits
run()
{
	size=$1
	shift
	env MPROTECT_TOGGLE_SIZE_MB="$size" MPROTECT_TOGGLE_ROUNDS=$rounds \
		MPROTECT_TOGGLE_CYCLES=$cycles "$@" "$toggle" -V private_thp
}

# run_churn [COMMAND...]: the other selftest, quickly
run_churn()
{
	env MMAP_CHURN_STEPS=$((16 * cycles)) MMAP_CHURN_ROUNDS=$rounds "$@" "$churn"
}

# Under a lie, so that there are failures to read.
run_failing()
{
	cc -O2 -D_GNU_SOURCE -shared -fPIC -o "$tmp/liars.so" \
		-isystem "$ksrc/tools/testing/selftests" check/liars.c -ldl -lpthread &&
		run 4 LIE=zeroes_page LD_PRELOAD="$tmp/liars.so"
}

# In an address space in which no test has room.
run_skipping()
{
	run 16 prlimit --as=20000000
}

# passed, failed and skipped, by the first words of lines alone
count()
{
	awk '
		/^ok .* # SKIP / { skipped++; next }
		/^ok / { passed++ }
		/^not ok / { failed++ }
		END { print passed + 0, failed + 0, skipped + 0 }
	' "$1"
}

agrees_with_prove()
{
	perl -MTAP::Parser -e '
		local $/;
		my $parser = TAP::Parser->new({ tap => scalar <STDIN> });
		my $skipped = 0;
		while (my $result = $parser->next) {
			$skipped++ if $result->is_test && $result->has_skip;
			print "unknown: ", $result->raw, "\n" if $result->is_unknown;
		}
		print "$_\n" for $parser->parse_errors;
		print scalar $parser->passed - $skipped, " ", scalar $parser->failed,
			" $skipped\n";
	' < "$1" > "$tmp/counts"
	count "$1" | same - "$tmp/counts"
}

# Said without what is 0.
agrees_with_kunit()
{
	count "$1" | while read -r passed failed skipped; do
		printf '%d tests: passed: %d, failed: %d, skipped: %d\n' \
			$((passed + failed + skipped)) "$passed" "$failed" "$skipped"
	done | sed 's/ [a-z]*: 0,\{0,1\}//g; s/,$//' > "$tmp/counts"
	PYTHONDONTWRITEBYTECODE=1 python3 "$ksrc/tools/testing/kunit/kunit.py" \
		parse --summary "$1" > "$tmp/kunit"
	cat "$tmp/kunit"
	! grep -q ERROR "$tmp/kunit" &&
		sed -n 's/.*Testing complete. Ran //p' "$tmp/kunit" | same - "$tmp/counts"
}

matches_plan()
{
	plan=$(sed -n 's/^1\.\.//p' "$1")
	echo "plan: $plan"
	[ "$(grep -cE '^(not )?ok ' "$1")" -eq "$plan" ] && [ "$plan" -gt 0 ]
}

# Every line is KTAP, and a diagnostic of ours is a known word and keys that have
# values. The harness's own diagnostics begin with a blank, or in words it alone has.
is_readable()
{
	awk '
		function complain(what)
		{
			print "line " NR ", " what ": " $0
			bad = 1
		}

		function needs(word, keys,    i, key, count)
		{
			count = split(keys, key, " ")
			for (i = 1; $2 == word && i <= count; i++)
				if (!(key[i] in value))
					complain("no " key[i])
		}

		NR == 1 && $0 == "TAP version 13" { next }
		NR == 2 && /^1\.\.[0-9]+$/ { next }
		/^ok [0-9]+ [^ ]+( # SKIP [^#]+)?$/ { next }
		/^not ok [0-9]+ [^ ]+$/ { next }
		/^#  +RUN +[^ ]+ \.\.\.$/ { next }
		/^#  +(OK|FAIL) +[^ ]+$/ { next }
		/^# (Starting|PASSED:|FAILED:|Totals:|[0-9]+ skipped test)/ { next }

		!/^# (env|state|round|cost|fault|early|excess|mismatch|error) / {
			complain("unknown")
		}
		/(OK|PASS)$/ { complain("ends like a result") }
		/  / || /[ \t]$/ || /\t/ { complain("stray blanks") }
		{
			split("", value)
			for (i = 3; i <= NF; i++) {
				key = $i
				sub(/=.*/, "", key)
				if ($i !~ /^[a-z_]+=./)
					complain("not a key with a value")
				if (key in value)
					complain("a key twice")
				value[key] = substr($i, length(key) + 2)
				if (key ~ /_ns$/ && value[key] !~ /^[0-9]+\.[0-9][0-9]$/)
					complain("not in hundredths of a nanosecond")
			}
			needs("env", "kernel machine page_kb pmd_kb cpu cpus clocksource" \
				" hypervisor thp shmem_thp compiler")
			needs("mismatch", "variant phase field expected seen")
			if ("slots" in value || "steps" in value) {
				needs("state", "variant phase slots size_kb present")
				needs("round", "variant round cycles steps unmap_ns map_ns cycle_ns" \
					" unmap_median_ns map_median_ns cycle_median_ns" \
					" cycle_min_ns sys_ns faults_per_step faults")
				needs("cost", "variant rounds cycles steps unmap_ns map_ns cycle_ns" \
					" cycle_sd_ns cycle_median_ns cycle_min_ns sys_ns" \
					" faults_per_step")
				next
			}
			needs("fault", "with_ns without_ns difference_ns with_median_ns" \
				" without_median_ns faults_per_step" \
				" fault_ns fault_sd_ns fault_median_ns")
			needs("state", "variant phase vmas size_kb rss_kb dirty_kb anon_kb" \
				" anon_huge_kb shmem_huge_kb kernel_page_kb mmu_page_kb" \
				" swap_kb thp_eligible writable present file exclusive faults")
			needs("round", "variant round cycles pages protect_ns restore_ns" \
				" touch_ns cycle_ns protect_median_ns restore_median_ns" \
				" touch_median_ns cycle_median_ns cycle_min_ns faults")
			needs("cost", "variant rounds cycles pages protect_ns restore_ns" \
				" touch_ns cycle_ns cycle_sd_ns cycle_median_ns cycle_min_ns")
		}
		END { exit bad }
	' "$1"
}

# What stderr adds is diagnostics, too, for who reads both together.
is_commented()
{
	! grep -v '^# ' "$1"
}

# adds_up FILE PHASES STATES: the figures of every round and of every variant, from each
# other
adds_up()
{
	awk -v rounds=$rounds -v cycles=$cycles -v phases_of_cycle="$2" -v states="$3" '
		function complain(what)
		{
			print "line " NR ", " what ": " $0
			bad = 1
		}

		function differ(a, b)
		{
			return a - b > 0.021 || b - a > 0.021
		}

		function median(list, count,    i, j, swap)
		{
			for (i = 1; i < count; i++)
				for (j = i + 1; j <= count; j++)
					if (list[j] < list[i]) {
						swap = list[i]
						list[i] = list[j]
						list[j] = swap
					}
			return (list[int((count + 1) / 2)] + list[int(count / 2) + 1]) / 2
		}

		BEGIN { nr_phases = split(phases_of_cycle, phase) }

		/^# (state|round|cost|fault) / {
			split("", value)
			for (i = 3; i <= NF; i++) {
				split($i, pair, "=")
				value[pair[1]] = pair[2]
			}
		}
		/^# state / { phases = phases " " value["phase"] }
		/^# (round|cost) / {
			phase_sum = 0
			for (i = 1; i <= nr_phases; i++)
				phase_sum += value[phase[i] "_ns"]
			if (differ(phase_sum, value["cycle_ns"]))
				complain("the phases are not the cycle")
			if (value["cycle_min_ns"] > value["cycle_median_ns"])
				complain("the median is less than the least")
			if (value["cycles"] != cycles)
				complain("other cycles than asked for")
		}
		/^# round / {
			if (value["round"] != ++count)
				complain("rounds in disorder")
			mean[count] = value["cycle_ns"]
			sum += mean[count]
			medians[count] = value["cycle_median_ns"]
			if (count == 1 || value["cycle_min_ns"] < least)
				least = value["cycle_min_ns"]
		}
		/^# cost / {
			if (count != rounds || value["rounds"] != rounds)
				complain("other rounds than asked for")
			for (i = 1; i <= count; i++)
				squares += (mean[i] - sum / count) ^ 2
			if (differ(value["cycle_ns"], sum / count))
				complain("not the mean")
			if (differ(value["cycle_sd_ns"], sqrt(squares / (count - 1))))
				complain("not the standard deviation")
			if (differ(value["cycle_median_ns"], median(medians, count)))
				complain("not the median")
			if (value["cycle_min_ns"] != least)
				complain("not the least")
			if (phases != states)
				complain("not all phases had their state told: " phases)
			variants[value["variant"]]++
			cycle[value["variant"]] = value["cycle_ns"]
			faults[value["variant"]] = value["faults_per_step"]
			costs++
			count = sum = squares = 0
			phases = ""
		}
		/^# fault / {
			difference = cycle["map_and_fault"] - cycle["map_only"]
			if (differ(value["difference_ns"], difference) ||
			    differ(value["fault_ns"], difference / faults["map_and_fault"]))
				complain("not the difference")
			fault_lines++
		}
		/^ok .*\.cost$/ { passed++ }
		END {
			for (variant in variants)
				if (variants[variant] != 1)
					bad = 1
			print costs " cost lines of " passed " tests"
			exit bad || costs != passed || !costs ||
				fault_lines != ("map_and_fault" in variants)
		}
	' "$1"
}

# has KEY VALUE: in the env line, of which there is one
has()
{
	grep '^# env ' "$tmp/16.out"
	[ "$(grep -c '^# env ' "$tmp/16.out")" -eq 1 ] &&
		grep -q "^# env .*\<$1=$2\( \|\$\)" "$tmp/16.out"
}

# What must be the same in every run: names, reasons, their order.
constant()
{
	sed -En 's/^(not )?ok [0-9]+ //p' "$1"
}

same_names()
{
	constant "$tmp/16.out" > "$tmp/names"
	constant "$tmp/4.all" | same "$tmp/names" -
}

names_no_place()
{
	! constant "$tmp/16.out" | grep -E '0x|[0-9]{4}'
}

# explains_itself PROGRAM PREFIX KNOBS: that many of them
explains_itself()
{
	"$1" -h > "$tmp/usage" 2> "$tmp/noise"
	status=$?
	cat "$tmp/usage" "$tmp/noise"
	[ $status -eq 0 ] && [ ! -s "$tmp/noise" ] && grep -q '^Usage: ' "$tmp/usage" &&
		[ "$(grep -c "$2_" "$tmp/usage")" -eq "$3" ]
}

lists_tests()
{
	"$toggle" -l > "$tmp/list" 2>&1
	cat "$tmp/list"
	! grep -E '^(not )?ok|RUN' "$tmp/list" &&
		[ "$(grep -cE ' (page_state|enforced|contents|partial|other_cpus|cost)$' \
			"$tmp/list")" -ge 6 ]
}

builds_benchmark()
{
	cc -Wall -Wextra -Werror -O2 -D_GNU_SOURCE -isystem "$ksrc/tools/testing/selftests/mm" \
		-o "$tmp/timing-overhead" check/timing-overhead.c -lm &&
		"$tmp/timing-overhead" 10 > "$tmp/overhead"
	status=$?
	cat "$tmp/overhead"
	[ $status -eq 0 ] && grep -q 'read_ns=[0-9]' "$tmp/overhead"
}

run 16 > "$tmp/16.out" 2> "$tmp/16.err"
status=$?
run 4 KSELFTEST_CLOCK="wall clock" > "$tmp/4.all" 2>&1
run_failing > "$tmp/failing.all" 2>&1
failing_status=$?
run_skipping > "$tmp/skipping.out" 2> /dev/null
skipping_status=$?

ok "passes" [ $status -eq 0 ]
ok "fails with status 1" [ $failing_status -eq 1 ]
ok "skips everything with status 4" [ $skipping_status -eq 4 ]
for file in 16.out 4.all failing.all skipping.out; do
	ok "$file: counts as prove does" agrees_with_prove "$tmp/$file"
	ok "$file: counts as kunit.py does" agrees_with_kunit "$tmp/$file"
	ok "$file: as many results as planned" matches_plan "$tmp/$file"
done
ok "passes by prove" prove -Q -e cat "$tmp/16.out"
ok "fails by prove" not prove -Q -e cat "$tmp/failing.all"
ok "stdout can be read" is_readable "$tmp/16.out"
grep -v '^# [a-z_.]*:' "$tmp/failing.all" | grep -v '^#      SKIP ' > "$tmp/failing.out"
ok "failures can be read" is_readable "$tmp/failing.out"
ok "failures have mismatches to read" grep -q '^# mismatch ' "$tmp/failing.out"
ok "stderr is comments" is_commented "$tmp/16.err"
ok "the figures add up" adds_up "$tmp/16.out" "protect restore touch" \
	" populated protected restored touched"
ok "env tells the kernel" has kernel "$(uname -r)"
ok "env tells the machine" has machine "$(uname -m)"
ok "env tells the page size" has page_kb $(($(getconf PAGESIZE) / 1024))
ok "env tells the CPUs" has cpus "$(getconf _NPROCESSORS_ONLN)"
ok "env tells the clock it was told of" grep -q '^# env .* clock=wall$' "$tmp/4.all"
ok "names and reasons are always the same" same_names
ok "names and reasons have no addresses" names_no_place
ok "-h explains" explains_itself "$toggle" MPROTECT_TOGGLE 4
ok "-l lists" lists_tests
run_churn > "$tmp/churn.out" 2> "$tmp/churn.err"
ok "mmap_churn: passes" [ $? -eq 0 ]
run_churn prlimit --as=20000000 > "$tmp/churn-skipping.out" 2> /dev/null
ok "mmap_churn: skips everything with status 4" [ $? -eq 4 ]
for file in churn.out churn-skipping.out; do
	ok "$file: counts as prove does" agrees_with_prove "$tmp/$file"
	ok "$file: counts as kunit.py does" agrees_with_kunit "$tmp/$file"
	ok "$file: as many results as planned" matches_plan "$tmp/$file"
done
ok "mmap_churn: stdout can be read" is_readable "$tmp/churn.out"
ok "mmap_churn: stderr is comments" is_commented "$tmp/churn.err"
# A phase that a variant has not is not there to be added.
ok "mmap_churn: the figures add up" adds_up "$tmp/churn.out" "touch unmap map" " mapped"
ok "mmap_churn: one env line" [ "$(grep -c '^# env ' "$tmp/churn.out")" -eq 1 ]
ok "mmap_churn: -h explains" explains_itself "$churn" MMAP_CHURN 5
ok "the benchmark of the timing runs" builds_benchmark

done_testing
