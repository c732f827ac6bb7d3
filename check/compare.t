#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
#
# ab/compare: figures that are known, logs that lie, and logs that are damaged.

. check/lib.sh

compare=${COMPARE:-build/compare}
make_alone build/compare || exit

# make_log KEY=VALUE...: a log of one variant. "values" are its rounds, "median" those of
# their medians where they differ, "least" the least of their cycles.
make_log()
{
	for assignment; do
		set -- "$@" -v "$assignment"
		shift
	done
	awk "$@" '
	function value(given, otherwise) { return given == "" ? otherwise : given }
	function sorted_middle(nr,    i, j, t) {
		for (i = 1; i <= nr; i++)
			for (j = nr; j > i; j--)
				if (m[j] < m[j - 1]) { t = m[j]; m[j] = m[j - 1]; m[j - 1] = t }
		return (m[int((nr + 1) / 2)] + m[int(nr / 2) + 1]) / 2
	}
	BEGIN {
		variant = value(variant, "shared_dirty")
		nr = split(value(values, "40 41 42"), v)
		split(value(median, values), m)
		nr_phases = split(value(phases, "protect restore touch"), phase)
		counts = value(counts, "cycles=1000 pages=16384")
		print "TAP version 13"
		print "1..2"
		printf "# env kernel=%s machine=%s page_kb=%s pmd_kb=%s cpu=%s cpus=%s%s\n",
			value(kernel, "6.16.12"), value(machine, "x86_64"), value(page_kb, 4),
			value(pmd_kb, 2048), value(cpu, 1), value(cpus, 2), env
		if (states != "none")
			for (i = split("populated protected restored", s); i; i--)
				printf "# state variant=%s phase=%s vmas=1 size_kb=65536 dirty_kb=%s\n",
					variant, s[i], s[i] == "protected" ? value(dirty, 65536) : 65536
		printf "%s mprotect_toggle.%s.page_state%s\n", value(test, "ok 1"), variant, skip
		for (r = 1; r <= nr; r++) {
			printf "# round variant=%s round=%d %s", variant, r, counts
			for (i = 1; i <= nr_phases; i++)
				printf " %s_ns=%.2f", phase[i], v[r] / nr_phases
			printf " cycle_ns=%.2f cycle_median_ns=%.2f", v[r],
				m[r] == "" ? v[r] : m[r]
			if (least != "")
				printf " cycle_min_ns=%.2f", least
			printf " faults=%s\n", value(faults, 0)
			sum += v[r]
		}
		for (r = 1; r <= nr; r++)
			m[r] = m[r] == "" ? v[r] : m[r]
		printf "# cost variant=%s rounds=%d %s", variant, nr, counts
		printf " cycle_ns=%.2f cycle_median_ns=%.2f\n", sum / nr, sorted_middle(nr)
		printf "ok 2 mprotect_toggle.%s.cost\n", variant
		print "# Totals: pass:2 fail:0 xfail:0 xpass:0 skip:0 error:0"
	}'
}

# repeat COUNT VALUE...: each value so often
repeat()
{
	while [ $# -gt 1 ]; do
		nr=$1
		while [ "$nr" -gt 0 ]; do
			printf '%s ' "$2"
			nr=$((nr - 1))
		done
		shift 2
	done
}

# comes_to STATUS PATTERN MESSAGE ARGUMENT...: the comparison exits so, prints a line like
# PATTERN, blanks squeezed, and one line like MESSAGE on stderr, or none if that is empty
comes_to()
{
	expected=$1
	pattern=$2
	message=$3
	shift 3
	"$compare" "$@" > "$tmp/text" 2> "$tmp/stderr"
	status=$?
	tr -s ' ' < "$tmp/text" > "$tmp/squeezed"
	echo "exit $status, not $expected, or no '$pattern', or not one line with '$message':"
	cat "$tmp/text" "$tmp/stderr"
	[ "$status" -eq "$expected" ] && grep -q -e "$pattern" "$tmp/squeezed" || return
	if [ "$message" ]; then
		[ "$(wc -l < "$tmp/stderr")" -eq 1 ] && grep -q -e "$message" "$tmp/stderr"
	else
		[ ! -s "$tmp/stderr" ]
	fi
}

# says LINE...: the text of the last comparison has these lines, blanks squeezed
says()
{
	cat "$tmp/squeezed"
	for line; do
		grep -q -x -F -e "$line" "$tmp/squeezed" || return
	done
}

# holds PERL ARGUMENT...: PERL is true of what --json prints: v(KEY...) is a value of the variant
# shared_dirty, j(KEY...) one of the whole
holds()
{
	condition=$1
	shift
	"$compare" --json "$@" > "$tmp/json"
	cat "$tmp/json"
	perl -MJSON::PP -e '
		my $condition = shift;
		our $j = decode_json(join "", <STDIN>);
		our ($v) = grep { $_->{variant} eq "shared_dirty" } @{$j->{variants}};
		sub get { my $x = shift; $x = ref $x eq "ARRAY" ? $x->[$_] : $x->{$_} for @_; $x }
		sub j { get($j, @_) }
		sub v { get($v, @_) }
		sub near { abs($_[0] - $_[1]) < ($_[2] // 0.0001) }
		exit !eval($condition);
	' "$condition" < "$tmp/json"
}

cd "$tmp" || exit
compare=$(cd "$top" && realpath "$compare")

# The rounds that were published with the report, in an order that gives the known first ones.
report_log()
{
	kernel=$1
	shift
	make_log kernel="$kernel" values="$(repeat "$@")"
}

report_log 6.16.0 3 37 7 38 5 39 > r1
report_log 6.17.0 7 53 8 54 > r2
report_log 6.16.0 1 37 6 38 8 39 > r3
ok "the report's exact-commit sandwich is slower" \
	comes_to 1 "^shared_dirty +39.77 % +0.87 % slower$" "" r1 r2 r3
ok "its means and deviations" says \
	" A 6.16.0 15 38.133 0.743 12.71 12.71 12.71" \
	" B 6.17.0 15 53.533 0.516 17.85 17.85 17.85" \
	" A 6.16.0 15 38.467 0.640 12.82 12.82 12.82"
ok "its midpoint, changes and drift" says \
	" midpoint of A 38.300 12.77 12.77 12.77" \
	" B against it +39.77 % +39.77 % +39.77 % +39.77 %" \
	" first rounds dropped +39.53 %" \
	" drift, first to last A +0.87 %" \
	" page state the same at every point"

report_log 6.18.0 1 54 8 55 6 56 > s1
report_log 7.0.0 1 57 10 58 4 59 > s2
report_log 6.18.0 1 53 9 54 5 55 > s3
ok "the report's patch-series sandwich is slower" \
	comes_to 1 "^shared_dirty +6.20 % -1.93 % slower$" "" s1 s2 s3
ok "its figures" says \
	" A 6.18.0 15 55.333 0.617 18.44 18.44 18.44" \
	" B 7.0.0 15 58.200 0.561 19.40 19.40 19.40" \
	" A 6.18.0 15 54.267 0.594 18.09 18.09 18.09" \
	" midpoint of A 54.800 18.27 18.27 18.27" \
	" first rounds dropped +6.18 %" \
	" drift, first to last A -1.93 %"

# The verdict and what it takes.
ok "a B that is A is no change" comes_to 0 "shared_dirty +0.00 % +0.00 % no change" "" r1 r1 r1
ok "and the text says that it is" says "note: A and B are of the same kernel release, 6.16.0" \
	"note: r1 is given more than once"
ok "the other way round it is faster" \
	comes_to 0 "shared_dirty -28.77 % +0.00 % faster" "" r2 r1 r2
make_log values="40.00 40.01" > n1
make_log values="40.00 40.02" kernel=6.17.1 > n2
ok "a change that is less than the figures' last digit is none" \
	comes_to 0 "no change (equal, but for rounding)" "" n1 n2 n1
make_log values="40.00 44.00 42.00 40.00" > n1
make_log values="40.00 44.00 43.00 42.00" kernel=6.17.1 > n2
ok "nor one whose interval includes 0" \
	comes_to 0 "no change (the interval includes 0)" "" n1 n2 n1
make_log values="40.00 40.10 40.00 40.10" > n1
make_log values="42.00 42.10 42.00 42.10" kernel=6.17.1 > n2
make_log values="43.00 43.10 43.00 43.10" > n3
ok "nor one that the drift outdoes" \
	comes_to 0 "shared_dirty +1.20 % +7.49 % no change (not larger than the drift)" "" n1 n2 n3
ok "two logs: the drift is unknown, and it says so" \
	comes_to 1 "shared_dirty +4.99 % unknown slower (if nothing drifted)" "" n1 n2
ok "in a note, too" says "note: only one A: how far the machine drifted cannot be known"

# Student's t, from a table: with one sample that varies and one that does not, the degrees of
# freedom are those of the first. The interval is t * SD / sqrt(n).
t_is() # COUNT T
{
	make_log values="$(repeat "$1" 100 "$1" 110)" > t1
	make_log kernel=6.17.1 values="$(repeat $((2 * $1)) 200)" > t2
	n=$((2 * $1))
	holds "near((v('high_percent') - v('low_percent')) / 2 * 1.05,
		$2 * 5 * sqrt($n / ($n - 1)) / sqrt($n), 0.005)" t1 t2
}
ok "t for 1 degree of freedom" t_is 1 12.706
ok "t for 3 degrees of freedom" t_is 2 3.182
ok "t for 5 degrees of freedom" t_is 3 2.571
ok "t for 9 degrees of freedom" t_is 5 2.262
ok "t for 29 degrees of freedom" t_is 15 2.045
ok "t for 119 degrees of freedom" t_is 60 1.980
# All three vary alike: with n rounds each there are 2 (n - 1) degrees of freedom, and the
# variance of the midpoint is half of B's.
make_log values="100 110 100 110 100 110" > t1
make_log values="200 210 200 210 200 210" kernel=6.17.1 > t2
ok "Welch's degrees of freedom for a sandwich" holds '
	near((v("high_percent") - v("low_percent")) / 2 * 1.05, 2.228 * sqrt(1.5 * 30 / 6), 0.001)' \
	t1 t2 t1
ok "the interval of a point" \
	holds 'near(v("points", 0, "half_interval"), 2.571 * sqrt(30 / 6), 0.001)' t1 t2 t1

# More points than three.
for i in 1 2 3 4 5; do
	make_log kernel=6.1$((6 + (i + 1) % 2)) values="$((100 + 2 * i + 10 * ((i + 1) % 2))) \
		$((100 + 2 * i + 10 * ((i + 1) % 2)))" > "p$i"
done
ok "a steady drift cancels out over A B A B A" \
	holds 'near(v("midpoint"), 106) && near(v("b"), 116) && near(v("drift_percent"), 800 / 102)' \
	p1 p2 p3 p4 p5
ok "which is slower" comes_to 1 "shared_dirty +9.43 % +7.84 % slower" "" p1 p2 p3 p4 p5
make_log kernel=6.16 values="130 130" > p3
ok "but not if an A between the two lies as far off" \
	comes_to 0 "no change (not larger than the drift)" "" p1 p2 p3 p4 p5
make_log kernel=6.17 values="170 170" > p4
ok "or the B points lie apart" \
	comes_to 0 "no change (not larger than the drift)" "" p1 p2 p1 p4 p1
ok "A B A B is no symmetric order, and it says so" \
	comes_to 1 "note: the points are not in symmetric order" "" r1 r2 r1 r2

# Counted mode.
counted()
{
	make_log env=" clock=instructions" cpus=1 "$@"
}
counted values="672.50 671.90 672.00" median="672.00 672.00 672.00" > i1
counted values="672.50 672.90 674.00" median="673.00 673.00 673.00" kernel=6.17.1 > i2
counted values="670.50 672.90 680.00" median="672.00 672.00 672.00" kernel=6.17.1 > i3
counted values="672.50 672.90 674.00" median="672.01 672.01 672.01" > i4
make_log cpus=1 kernel=6.17.1 > i5
ok "counted, one more instruction is slower: medians, without any variance" \
	comes_to 1 "shared_dirty +0.15 % +0.00 % slower" "" i1 i2 i1
ok "and the text says what it cannot see" \
	says "note: instructions are counted: no cache miss, TLB miss or stall can be seen"
ok "counted, the same medians are no change" \
	comes_to 0 "shared_dirty +0.00 % +0.00 % no change" "" i1 i3 i1
ok "counted, what the last digit makes is no change" \
	comes_to 0 "shared_dirty +0.00 % +0.00 % no change (equal, but for rounding)" "" i4 i3 i4
# Cycles of 672.00, and of 672.27 where a tick more fell into them.
counted values="672.11 672.11 680.00" median="672.00 672.00 672.00" least=672.00 > i6
counted values="672.15 672.15 672.15" median="672.27 672.27 672.27" least=672.00 kernel=6.17.1 > i7
counted values="673.11 673.11 673.11" median="673.00 673.00 673.00" least=673.00 kernel=6.17.1 > i8
ok "counted, what timer ticks make of a median is no change" \
	comes_to 0 "no change (not larger than the timer's share)" "" i6 i7 i6
ok "and the share is shown" says " timer's share, at most 0.300"
ok "counted, an instruction is more than that, whatever hit one round" \
	comes_to 1 "shared_dirty +0.15 % +0.00 % slower" "" i6 i8 i6
logs=$top/check/logs
ok "counted, phases are medians, too" \
	comes_to 1 "^shared_dirty +121.12 %" "" "$logs/a.log" "$logs/b.log" "$logs/a-again.log"
ok "and are the only columns" says " point kernel rounds mean SD protect restore touch" \
	" B 6.17.13 3 672.000 0.000 333.26 333.29 5.45"
ok "counted against timed is not comparable" \
	comes_to 125 "not comparable: env clock: A instructions, B missing" "" i1 i5 i1

# Exit status with more variants than one.
{ make_log; make_log variant=private values="80 80 81"; } > v1
{ make_log kernel=6.17.1; make_log kernel=6.17.1 variant=private values="90 90 91"; } > v2
{ make_log kernel=6.17.1 dirty=0; make_log kernel=6.17.1 variant=private values="90 90 91"; } > v3
ok "one of two is slower" comes_to 1 "^private +12.45 % +0.00 % slower" "" v1 v2 v1
ok "the other is not" comes_to 0 "^shared_dirty +0.00 % +0.00 % no change" "" v1 v2 v1 --variant shared_dirty
ok "the one asked for is" comes_to 1 "^private" "" --variant private v1 v2 v1
ok "slower outdoes not comparable" \
	comes_to 1 "not comparable: state protected dirty_kb: A 65536, B 0" "" v1 v3 v1
{ make_log variant=private values="80 80 81"; make_log; } > v5
{ make_log kernel=6.17.1 variant=private values="90 90 91"; make_log kernel=6.17.1 dirty=0; } > v6
ok "in whatever order" comes_to 1 "^shared_dirty - - not comparable" "" v5 v6 v5
ok "and there is no figure of what is not comparable" not grep -q "B 6.17.1 3 4" squeezed
ok "not comparable alone cannot tell" comes_to 125 "not comparable: state" "" v1 v3 v1 --variant shared_dirty
ok "not comparable and faster cannot tell either" \
	comes_to 125 "^private -11.07 % .* faster" "" v3 v1 v3
ok "a variant that is nowhere cannot tell" \
	comes_to 125 "^none - - not comparable: variant: A (v1) not there" "" v1 v2 v1 --variant none
{ make_log kernel=6.17.1; } > v4
ok "a variant that one point lacks is not comparable" \
	comes_to 125 "^private - - not comparable: variant: B (v4) not there" "" v1 v4 v1
ok "nor is one that only B has" \
	comes_to 125 "^private - - not comparable: variant: A (v4) not there" "" v4 v1 v4

# What must be the same at every point.
differs() # FIELD PATTERN KEY=VALUE...
{
	field=$1
	shift
	make_log kernel=6.17.1 values="80 81 82" "$@" > d2
	comes_to 125 "not comparable: $field" "" d1 d2 d1 &&
		comes_to 125 "not comparable: " "" d1 d1 d2
}
make_log > d1
ok "page state" differs "state protected dirty_kb: A 65536, B 0$" dirty=0
ok "a key that only B has" differs "state protected later: A missing, B 1$" dirty="65536 later=1"
ok "no page state" differs "state phase: A restored, B missing$" states=none
ok "architecture" differs "env machine: A x86_64, B aarch64$" machine=aarch64
ok "page size" differs "env page_kb: A 4, B 16$" page_kb=16
ok "size of a PMD" differs "env pmd_kb: A 2048, B 32768$" pmd_kb=32768
ok "number of CPUs" differs "env cpus: A 2, B 4$" cpus=4
ok "size of the mapping" differs "pages: A 16384, B 1024$" counts="cycles=1000 pages=1024"
ok "rounds that ended early" differs "cycles: A 1000, B 999$" counts="cycles=999 pages=16384"
ok "page faults" differs "faults: A 0, B 16384$" faults=16384
ok "number of rounds" differs "rounds: A 3, B 4$" values="80 81 82 83"
ok "phases" differs "key of a round: A restore_ns, B touch_ns" phases="protect touch"
ok "a test that failed" \
	differs "test mprotect_toggle.shared_dirty.page_state: A ok, B not ok$" test="not ok 1"
ok "a test that was skipped" \
	differs "test mprotect_toggle.shared_dirty.page_state: A ok, B skip$" skip=" # SKIP no folios"
ok "a test that is not there" \
	differs "test mprotect_toggle.shared_dirty.page_state: A ok, B missing$" test="#"
make_log > d2
ok "two A that are not of one kernel" \
	comes_to 125 "not comparable: env kernel: A (d1) 6.16.12, A (r1) 6.16.0" "" d1 d2 r1 --variant shared_dirty
make_log kernel=6.17.1 values="80 81 82" cpu=0 env=" hypervisor=yes" > d2
ok "what need not be the same is noted" comes_to 1 "note: env cpu: A 1, B 0" "" d1 d2 d1
make_log kernel=6.17.1 values="80 81 82" faults=3 | sed 's/faults=3/faults=0/2; /round=2/s/faults=3/faults=0/' > d2
ok "a fault in some rounds only is the machine's" comes_to 1 "slower$" "" d1 d2 d1
(cat d1; echo "not ok 1 selftests: mm: mprotect_toggle # exit=1") > d3
(make_log kernel=6.17.1 values="80 81 82"; echo "ok 1 selftests: mm: mprotect_toggle") > d2
ok "a test of no variant is noted" comes_to 1 \
	"note: test selftests: mm: mprotect_toggle: A not ok, B ok" "" d3 d2 d3
make_log skip=" # SKIP no folios" > d1
make_log kernel=6.17.1 test="ok 1 # SKIP" > d2
ok "a skipped test may have its name behind the word" comes_to 0 "no change" "" d1 d2 d1
make_log test="ok 1 -" > d2
ok "or behind a dash" comes_to 125 "page_state: A skip, B ok" "" d1 d2 d1
make_log skip=" # XFAIL known" > d2
ok "an expected failure is none of both" comes_to 125 "page_state: A skip, B xfail" "" d1 d2 d1
make_log dirty=0 test="not ok 1" > d1
make_log dirty=0 test="not ok 1" kernel=6.17.1 values="80 81 82" > d2
ok "a test that fails everywhere is no obstacle" comes_to 1 "tests that failed: 1$" "" d1 d2 d1
make_log values="40" > d1
ok "one round is not enough" comes_to 125 "rounds: A (d1) one alone has no interval" "" d1 d1 d1
make_log values="0 0 0" > d1
ok "nor is a time of 0" comes_to 125 "not comparable: cycle_ns: A (d1) 0" "" d1 d1 d1
make_log states=none > d1
ok "without page states it does not claim to know them" comes_to 0 " page state unknown" "" d1 d1 d1

# A program with other phases, and steps.
churn()
{
	make_log phases="map touch unmap sys" counts="steps=2000" variant=file "$@"
}
churn values="400 401 402" > m1
churn values="500 501 502" kernel=6.17.1 > m2
ok "another program's phases" comes_to 1 "^file, ns per step$" "" m1 m2 m1
ok "are columns" says " point kernel rounds mean SD map touch unmap sys"
churn values="500 501 502" counts="steps=1000" kernel=6.17.1 > m2
ok "and its steps must agree" comes_to 125 "not comparable: steps: A 2000, B 1000" "" m1 m2 m1

# What the timer does to steps, each round says by how much it is off the others.
counted=" clock=instructions"
churn values="400 401 402" env="$counted" > s1
churn values="406 407 408" env="$counted" kernel=6.17.1 > s2
ok "counted steps, more than twice what rounds differ by" \
	comes_to 1 " timer's share, at most 4.000\$" "" s1 s2 s1
churn values="403.5 404.5 405.5" env="$counted" kernel=6.17.1 > s2
ok "counted steps, less than that" \
	comes_to 0 " no change (not larger than the timer's share)" "" s1 s2 s1

# What a console does that is no damage.
make_log > a
make_log kernel=6.17.1 values="80 81 82" > b
"$compare" a b a > expected
reads_as_well() # FILTER...
{
	mkdir -p filtered
	"$@" < a > filtered/a
	"$@" < b > filtered/b
	(cd filtered && "$compare" a b a) 2>&1 | diff expected -
}
ok "CRLF" reads_as_well sed 's/$/\r/'
ok "a prefix more" reads_as_well sed 's/^/# /'
ok "three prefixes more" reads_as_well sed 's/^/# # # /'
ok "kernel messages between the lines" \
	reads_as_well sed 's/^/[    1.234567] random: crng init done\n/'
ok "the screen cleared before each line" reads_as_well sed 's/^/\x1bc\x1b[?7l\x1b[2J\r/'
ok "colors and NULs around lines" reads_as_well sed 's/^/\x00\x1b[0m/; s/$/\x1b[0m\x00\r/'
ok "keys it does not know" reads_as_well sed '/# \(round\|cost\) /s/$/ later=yes/'
ok "words it does not know" reads_as_well sed 's/^# round/# early variant=shared_dirty of_rounds=3\n&/'
ok "a last line without its end" reads_as_well sh -c 'cat; printf "reboot: Power down"'

# Logs that lie: each is given as B. The pattern is of the text, the message of stderr.
lies() # STATUS PATTERN MESSAGE FILTER...
{
	expected=$1
	pattern=$2
	message=$3
	shift 3
	"$@" < b > lie
	comes_to "$expected" "$pattern" "$message" a lie a
}
damaged() # PATTERN FILTER...
{
	pattern=$1
	shift
	lies 125 "not comparable: log: B (lie) line [0-9]*: $pattern" "lie: line [0-9]*: $pattern" "$@"
}
# Up to here, with no line feed.
cut_off() # PATTERN
{
	awk -v pattern="$1" "match(\$0, pattern) { printf \"%s\", substr(\$0, 1, RSTART + RLENGTH - 1); exit } 1"
}
ok "empty" lies 125 "log: B (lie) no rounds in it" "lie: no rounds of any test" true
ok "binary" lies 125 "log: B (lie) no rounds in it" "lie: no rounds of any test" cat "$compare"
ok "boot failed" lies 125 "log: B (lie) no rounds in it" "lie: no rounds of any test" \
	echo "[    1.0] Kernel panic - not syncing: VFS: Unable to mount root fs"
ok "a round twice" damaged "two runs in one log: again a round of shared_dirty" sed '/round=2/p'
swap_rounds()
{
	awk '/round=2/ { held = $0; next } { print } /round=3/ { print held }'
}
ok "a round after the cost" damaged "two runs in one log: again a round of shared_dirty" \
	sed "/# round.*round=3/{h;s/round=3/round=4/;x}; /# cost/G"
ok "rounds out of order" damaged "before this round one is missing of" swap_rounds
ok "a round missing" damaged "before this round one is missing of" sed '/round=2/d'
ok "the first round missing" damaged "this cost is of more or fewer rounds" sed '/round=1/d'
ok "the last round missing" damaged "this cost is of more or fewer rounds" sed '/round=3/d'
ok "a cost of more rounds" damaged "this cost is of more or fewer rounds" sed "s/rounds=3/rounds=4/"
ok "a cost without the time" damaged "a cost without its cycle_ns" sed "/# cost/s/ cycle_ns=[0-9.]*//"
ok "a cost with another median" damaged "the rounds give another cycle_median_ns" \
	sed "/# cost/s/median_ns=81.00/median_ns=80.98/"
ok "a cost with another minimum" damaged "the rounds give another cycle_min_ns" \
	sed "/# round/s/faults/cycle_min_ns=79.50 &/; /# cost/s/$/ cycle_min_ns=79.00/"
ok "cut off in the cost" lies 125 "not comparable: log: B (lie) line [0-9]*: damaged: cut off or torn" \
	"line [0-9]*: damaged: cut off or torn" cut_off "# cost.*median_ns=81.0"
ok "cut off in the last digit of the last result" lies 125 "shared_dirty.cost: A ok, B missing" \
	"damaged: a result that is cut off or torn" cut_off "ok 2 .*"
ok "the cost missing" lies 125 "cost: B (lie) missing, the log is cut off" "" sed '/# cost/d'
ok "not a number" damaged "a round with an impossible cycle_ns" sed '/round=2/s/cycle_ns=[0-9.]*/cycle_ns=nan/'
ok "infinite" damaged "a round with an impossible cycle_ns" sed '/round=2/s/cycle_ns=[0-9.]*/cycle_ns=inf/'
ok "negative" damaged "a round with an impossible cycle_ns" sed '/round=2/s/cycle_ns=/&-/'
ok "huge" damaged "a round with an impossible cycle_ns" sed '/round=2/s/cycle_ns=/&1234567890123/'
ok "hexadecimal" damaged "a round with an impossible cycle_ns" sed '/round=2/s/cycle_ns=/&0x/'
ok "a digit changed" damaged "the rounds give another cycle_ns" sed '/round=2/s/ cycle_ns=8/ cycle_ns=5/'
ok "the point lost" damaged "a round with an impossible cycle_ns" sed '/round=2/s/ cycle_ns=81./ cycle_ns=81/'
ok "a median less than the minimum" damaged "a round with an impossible minimum" \
	sed '/# round/s/faults/cycle_min_ns=80.00 &/; s/median_ns=82/median_ns=2/'
ok "a NUL for a digit" damaged "damaged: cut off or torn" sed "/round=2/s/cycle_ns=8/cycle_ns=\x00/"
ok "the last key lost" damaged "a round with an impossible number of times" sed "/round=2/s/ cycle_median_ns=[0-9.]*//"
ok "another key" damaged "a round with an impossible touched_ns" sed "/round=2/s/touch_ns/touched_ns/"
ok "a key lost" damaged "a round with an impossible" sed '/round=2/s/ touch_ns=[0-9.]*//'
ok "negative faults" damaged "a round with an impossible faults" sed '/round=2/s/faults=/&-/'
ok "the same key twice" damaged "damaged: the same key twice" sed '/round=2/s/$/ faults=0/'
ok "a message inside a round" damaged "damaged: not all of it is key=value" \
	sed '/round=2/s/touch/[    1.234567] random: crng init done\n&/'
ok "a message behind a round" damaged "damaged: not all of it is key=value" \
	sed '/round=2/s/$/[    1.234567] random: crng init done/'
ok "a message before a round" lies 125 "log: B (lie) line [0-9]*: before this round" \
	"damaged: not all of it is key=value (and 2 more such lines)" \
	sed '/round=2/s/^/[    1.234567] random: crng init done/'
ok "a message inside a page state" damaged "damaged: not all of it is key=value" \
	sed '/phase=protected/s/dirty_kb/[    1.234567] random: crng init done\n&/'
ok "a page state lost" lies 125 "state phase: A protected, B populated" "" sed '/phase=protected/d'
ok "a page state twice" lies 125 "state phase: A protected, B restored" "" sed '/phase=restored/p'
ok "a page state of no phase" lies 125 "state phase: A protected, B populated" \
	"a state without its variant or phase" sed "/phase=protected/s/phase=protected //"
ok "env lost" lies 125 "env: B (lie) missing" "" sed '/# env/d'
ok "a not torn off its ok" lies 125 "test mprotect_toggle.shared_dirty.page_state: A ok, B missing" \
	"damaged: perhaps a \"not\" was torn off" \
	sed 's/^ok 1/not [    1.234567] random: crng init done\n&/'
ok "a FAIL that became ok" lies 125 "test mprotect_toggle.shared_dirty.page_state: A ok, B missing" \
	"damaged: perhaps a \"not\" was torn off" \
	sed 's/^ok 1 \(.*\)/#          FAIL  \1\n&/'
ok "a SKIP torn off its ok" lies 125 "page_state: A ok, B missing" "damaged: the end of" \
	sed '/^ok 1/s/$/ # [    1.234567] random: crng init done/'
ok "two runs in one log" damaged "two runs in one log: again a round" sh -c 'cat; cat b'
ok "two runs of two kernels in one log" \
	damaged "two runs in one log: other env kernel" sh -c 'cat; cat a'
ok "a result twice" lies 125 "page_state: B (lie) there twice: two runs in one log" "" sed '/^ok 1/p'
many_variants()
{
	awk '{ print } /# round/ { for (i = 0; i < 300; i++) { $3 = "variant=v" i; print } }'
}
ok "more variants than one run has" damaged "too many for one run: variants" many_variants
ok "more results than one run has" damaged "too many for one run: test results" \
	awk '{ print } END { for (i = 0; i < 5000; i++) print "ok", i, "t" i }'
ok "a log that is not there" comes_to 125 "log: B (gone) cannot be read: No such file" \
	"gone: cannot be read: No such file or directory" a gone a
ok "a folder" comes_to 125 "log: B (.) cannot be read: Is a directory" \
	"cannot be read: Is a directory" a . a
ok "nothing but empty logs" exits 125 "$compare" /dev/null /dev/null /dev/null
ok "and the same for a machine" holds 'j("status") == 125 && !@{j("variants")}' \
	/dev/null /dev/null /dev/null

# 100 MB, in 32 MiB of address space.
big() # STATUS PATTERN COMMAND...
{
	expected=$1
	pattern=$2
	shift 2
	mkfifo fifo
	"$@" 2> "$tmp/writer" > fifo &
	writer=$!
	prlimit --as=33554432 "$compare" a fifo a > big.text
	status=$?
	rm fifo
	# It waits for a reader, if there was none.
	kill "$writer" 2> "$tmp/kill"
	wait
	cat big.text "$tmp/writer"
	[ $status -eq "$expected" ] && grep -q -e "$pattern" big.text
}
messages()
{
	yes "[   12.345678] a kernel message of a usual length, as there are many" | head -c 100M
	cat b
}
one_line()
{
	head -c 100M /dev/zero
	echo
	cat b
}
# The same bytes each time: true chance would once make a line of ours.
noise()
{
	awk "BEGIN { srand(1); for (i = 0; i < 1048576; i++) printf \"%c\", int(256 * rand()) }" > noise
	for _ in $(seq 100); do
		cat noise
	done
	echo
	cat b
}
again_and_again() # PATTERN
{
	cat b
	yes "$(grep -e "$1" b)" | head -c 100M
}
rounds_without_end()
{
	cat b
	awk 'BEGIN { for (;;) printf "# round variant=private round=%d cycle_ns=80.00\n", ++i }'
}
ok "100 MB of kernel messages" big 1 " slower$" messages
ok "100 MB without a line" big 1 " slower$" one_line
ok "100 MB at random" big 1 " slower$" noise
ok "100 MB of one round" big 125 "two runs in one log: again a round of" again_and_again round=2
ok "100 MB of one page state" big 125 "too many for one run: lines" again_and_again phase=protected
ok "rounds without end" big 125 "too many for one run: lines" rounds_without_end
# Damage at every byte: a program does it, as it takes 150,000 comparisons.
build() # PROGRAM FLAG...
{
	program=$1
	shift
	"${CC:-cc}" -Wall -Wextra -g "$@" -o "$program" "$top/ab/"compare_*.c -lm
}
cd "$top" || exit
ok "the program that damages logs builds" build "$tmp/damage" -O2 check/damage-compare.c
"$tmp/damage" "$logs/a.log" "$logs/b.log" "$logs/a-again.log" > "$tmp/damage.tap"
ok "it got to its end" grep -q "^1\.\." "$tmp/damage.tap"
ok "of sound logs, one variant is slower" grep -q "^# shared_dirty: slower$" "$tmp/damage.tap"
ok "one not" grep -q "^# private_none: no change$" "$tmp/damage.tap"
ok "and two are not comparable" [ "$(grep -c "^# .*: not comparable$" "$tmp/damage.tap")" -eq 2 ]
grep "ok [0-9]* - " "$tmp/damage.tap" > "$tmp/damages"
while read -r line; do
	ok "no wrong verdict: ${line##* - }" [ "${line#ok }" != "$line" ]
done < "$tmp/damages"

# What the fuzzer found worth to keep.
ok "the program that replays them builds" build "$tmp/replay" -O1 -DREPLAY \
	-fsanitize=address,undefined -fno-sanitize-recover=all check/fuzz-compare.c
ok "no crash, leak or undefined behaviour" "$tmp/replay" check/corpus-compare/*
ok "they were more than a few" [ "$("$tmp/replay" check/corpus-compare/*)" -gt 50 ]
ok "nor are the logs of this test a reason" "$tmp/replay" "$tmp/a" "$tmp/b" "$tmp/v3" "$tmp/lie"

# What is printed, for whom.
cd "$tmp" || exit
printf '#point label kernel variant round figure protect_ns restore_ns touch_ns cycle_ns cycle_median_ns\n' > header
"$compare" --rounds r1 r2 r3 > rounds
ok "rounds have a header" sh -c 'head -n 1 rounds | cmp - header'
ok "a row for each round" [ "$(wc -l < rounds)" -eq 46 ]
ok "as many columns in each as the header has" awk '{ exit NF != 11 }' rounds
ok "and the figures" [ "$(awk '$2 == "B" { sum += $6; n++ } END { printf "%.3f %d", sum / n, n }' rounds)" = "53.533 15" ]
"$compare" --rounds i1 i2 i1 > rounds
ok "counted, the figure is the median" [ "$(awk '$1 == 2 { print $6 }' rounds | uniq)" = 673 ]
"$compare" --rounds v1 m1 > rounds
ok "what a variant does not have is NA" grep -q "^2 B 6.16.12 file 1 400 NA NA 100 400 400 100 100 100$" rounds
ok "the rounds of one log" [ "$("$compare" --rounds --variant private v1 | wc -l)" -eq 4 ]
ok "no rounds" exits 125 "$compare" --rounds /dev/null
"$compare" --points r1 r2 r3 > points
ok "points have mean, SD and interval" grep -q -x "2 B 6.17.0 shared_dirty 15 53.5333 0.5164 53.2474 53.8193 ns/page 39.7737 slower" points
ok "and no row of what is not comparable" [ "$("$compare" --points v1 v3 v1 | grep -c shared_dirty)" -eq 0 ]
ok "no points" exits 125 "$compare" --points a lie a
ok "json has the figures" holds 'near(v("change_percent"), 39.7737) && v("verdict") eq "slower" &&
	near(v("points", 1, "sd"), 0.5164) && near(v("phases_change_percent", "touch"), 39.7750) &&
	j("status") == 1 && j("points", 2, "env", "kernel") eq "6.16.0"' r1 r2 r3
ok "an unknown drift is null" holds '!defined v("drift_percent")' r1 r2
ok "json has what is not comparable" holds 'v("verdict") eq "not comparable" &&
	v("field") eq "state protected dirty_kb" && v("at", 1, "value") eq "0" &&
	v("at", 1, "point") == 2' v1 v3 v1
name=$(printf 'a "log"\\ \tof\n\303\251')
cp a "$name"
ok "json survives any name of a file" holds 'j("points", 1, "log") =~ /^a "log"\\ \tof\n/' a "$name" a

# Use.
ok "labels for A and B" comes_to 1 "^old 6.16.0 r1$" "" --label old --label new r1 r2 r3
ok "are used in the table" says " new 6.17.0 15 53.533 0.516 17.85 17.85 17.85" " new against it +39.77 % +39.77 % +39.77 % +39.77 %"
ok "labels for each log" comes_to 1 "shared_dirty +39.77 % +0.87 % slower" "" \
	--label old --label old --label new r1 r3 r2
ok "it explains itself" exits 0 "$compare" -h
ok "with the exit status" [ "$("$compare" --help | grep -c '^  125  cannot tell')" -eq 1 ]
ok "no log" refuses 2 "too few logs" "$compare"
ok "one log" refuses 2 "too few logs" "$compare" r1
ok "an unknown option" refuses 2 "unknown option --lable" "$compare" --lable x r1 r2
ok "a label without a name" refuses 2 "missing after --label" "$compare" r1 r2 --label
ok "one label" refuses 2 "for A and B, or for each log" "$compare" --label x r1 r2 r3
ok "labels that do not differ" refuses 2 "all labels are the same" "$compare" --label x --label x r1 r2
ok "three kernels" refuses 2 "no third label: z" "$compare" --label x --label y --label z r1 r2 r3
ok "a label of two words" refuses 2 "one word, not x y" "$compare" --label "x y" r1 r2
ok "no space for the output" sh -c "\"$compare\" r1 r2 r3 > /dev/full 2> full; [ \$? -eq 125 ] && grep -q 'cannot be written' full"

done_testing
