#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
#
# What "make check-mutants" is made of, without building a kernel.

. check/lib.sh

# Prints the paragraphs that lack a line, or have one that no program knows.
malformed()
{
	grep -v '^#' check/mutants/list | awk -v RS= '
		{ n = split($0, line, "\n"); harm = expect = file = edit = 0 }
		line[1] !~ /^mutant: [a-z_]+$/ { print; next }
		{
			for (i = 2; i <= n; i++) {
				if (line[i] ~ /^harm: ./) harm++
				else if (line[i] ~ /^expect: (caught|slower [a-z_]+ [a-z_]+|cannot be told, .+)$/) expect++
				else if (line[i] ~ /^file: [^ ]+\.[ch]$/) file++
				else if (line[i] ~ /^edit: ./ && file) edit++
				else if (line[i] !~ /^((in|reach): .|first: [a-z_]+ [a-z_]+$)/) file = -9
			}
		}
		harm != 1 || expect != 1 || file < 1 || !edit { print }'
}

well_formed()
{
	malformed > "$tmp/malformed"
	cat "$tmp/malformed"
	[ ! -s "$tmp/malformed" ]
}

# Prints the tests that are to be run first and are none.
not_tests()
{
	sed -n 's/^first: //p' check/mutants/list | sort -u | while read -r program test; do
		grep -q "^TEST_F.*, ${test}[,)]" "$program.c" || echo "$program $test"
	done | grep .
}

twice_named()
{
	check/mutants/run -l | sort | uniq -d | grep .
}

enough()
{
	[ "$(check/mutants/run -l | wc -l)" -ge 30 ]
}

ok "every mutant is well-formed" well_formed
ok "what a mutant has run first are tests" not not_tests
ok "no two mutants have the same name" not twice_named
ok "there are thirty mutants or more" enough

ok "run explains itself" exits 0 check/mutants/run -h
ok "run refuses what is no mutant" refuses 2 "no mutant 'nothing'" check/mutants/run nothing
ok "run refuses an unknown option" refuses 2 "no option -x" check/mutants/run -x
ok "run refuses what is no number" refuses 2 "whole number" check/mutants/run -b 0
ok "run refuses an option without its value" refuses 2 "takes a value" check/mutants/run -j

ok "small-kernel explains itself" exits 0 check/small-kernel -h
ok "small-kernel refuses no name" refuses 2 "takes one NAME" check/small-kernel
ok "small-kernel refuses a path" refuses 2 "NAME is that of" check/small-kernel ../x
ok "small-kernel refuses an unknown option" refuses 2 "no option -x" check/small-kernel -x
ok "small-kernel refuses what is no setting" refuses 2 "NAME=y" check/small-kernel -c SMP x
ok "small-kernel refuses what is no kernel tree" \
	refuses 2 "no whole kernel source tree" check/small-kernel -t "$tmp" x

done_testing
