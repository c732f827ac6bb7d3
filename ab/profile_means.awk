# SPDX-License-Identifier: GPL-2.0
#
# Reads what ab/profile_plugin.c wrote, twice. Prints lines "PHASE FUNCTION INSTRUCTIONS", the
# means over the middle half of the recorded cycles, by what is executed in them: what happens
# now and then beside the test is not in it. A phase "cycle" is all of them.
#
# A cycle is all phases in order, with one reading of the clock before, between and behind
# them. Recorded are the last cycles of every round, but for the rounds to warm up. Variables:
# phases (separated by commas), warmup_rounds, rounds, cycles; parts (yes, no): keep apart what
# the compiler split from a function. Fails if the cycles are not as many in every round.

# Sets chosen[] for the middle half of the recorded cycles, in the phase.
function choose(p,    i, j, moved)
{
	for (i = 1; i <= nr_recorded; i++) {
		moved = recorded[i]
		for (j = i; j > 1 && total[order[j - 1], p] > total[moved, p]; j--)
			order[j] = order[j - 1]
		order[j] = moved
	}
	left_out = int(nr_recorded / 4)
	for (i = left_out + 1; i <= nr_recorded - left_out; i++)
		chosen[order[i], p] = 1
}

function choose_cycles(    i, p, per_round)
{
	per_round = nr_cycles / (warmup_rounds + rounds)
	if (per_round != int(per_round) || per_round < cycles)
		exit 1
	for (i = per_round * warmup_rounds; i < nr_cycles; i++)
		if (i % per_round >= per_round - cycles)
			recorded[++nr_recorded] = cycle[i + 1]
	for (p = 1; p <= nr_phases; p++)
		choose(p)
}

BEGIN {
	nr_phases = split(phases ",cycle", phase, ",")
	last = nr_phases - 1
}

FNR == 1 && NR > 1 {
	choose_cycles()
	is_second = 1
	attempt = running = after_edge = 0
}

$1 == "edge" {
	if (running == last && !after_edge && !is_second)
		cycle[++nr_cycles] = attempt
	if (after_edge)
		running = 0
	after_edge = 1
	next
}

$1 == "phase" {
	if (after_edge && running < last && $2 == phase[running + 1])
		running++
	else
		running = after_edge && $2 == phase[1]
	if (running == 1)
		attempt++
	after_edge = 0
	next
}

running && !is_second {
	total[attempt, running] += $2
	total[attempt, nr_phases] += $2
}

running && is_second {
	if (parts != "yes")
		sub(/\..*/, "", $1)
	if ((attempt, running) in chosen)
		sum[running, $1] += $2
	if ((attempt, nr_phases) in chosen)
		sum[nr_phases, $1] += $2
}

END {
	for (key in sum) {
		split(key, part, SUBSEP)
		printf "%s %s %.4f\n", phase[part[1]], part[2],
			sum[key] / (nr_recorded - 2 * left_out)
	}
}
