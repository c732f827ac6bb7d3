# SPDX-License-Identifier: GPL-2.0
#
# Prints what ab/profile is asked for, from these lines, where K is the number of a kernel:
#
#	kernel K LABEL
#	unit NAME			what figures are of: a page
#	units K NUMBER CYCLES		so many in a cycle, and the cycles recorded
#	printed K PHASE FIGURE		what the test printed, in instructions per unit
#	count K PHASE FUNCTION NUMBER	instructions in a cycle
#
# Variables: format (text, json, folded), by_phase (yes, no), threshold (in percent), test,
# variant.

function quoted(text)
{
	gsub(/[\\"]/, "\\\\&", text)
	return "\"" text "\""
}

# Sets total[] and functions[], in order of the largest change between any two kernels.
function arrange(phase,    i, j, k, name, least, most, value)
{
	nr_functions = 0
	for (k = 1; k <= nr_kernels; k++)
		total[k] = 0
	for (i = 1; i <= nr_names; i++) {
		name = names[i]
		least = most = count[1, phase, name] / units[1]
		for (k = 1; k <= nr_kernels; k++) {
			value = count[k, phase, name] / units[k]
			total[k] += value
			if (value < least)
				least = value
			if (value > most)
				most = value
		}
		if (!most)
			continue
		for (j = ++nr_functions; j > 1 && is_before(name, most - least, most, j - 1); j--)
			functions[j] = functions[j - 1]
		functions[j] = name
		change[name] = most - least
		largest[name] = most
	}
}

# Is the function in front of the j-th? Where both change alike, the larger is.
function is_before(name, its_change, its_most, j)
{
	if (its_change != change[functions[j]])
		return its_change > change[functions[j]]
	if (its_most != largest[functions[j]])
		return its_most > largest[functions[j]]
	return name < functions[j]
}

function is_shown(phase, name,    k)
{
	for (k = 1; k <= nr_kernels; k++)
		if (count[k, phase, name] / units[k] * 100 >= threshold * total[k])
			return 1
	return 0
}

function put(label, values,    k)
{
	printf "%-*s", label_width, label
	for (k = 1; k <= nr_kernels; k++)
		printf "%*s", width[k], sprintf("%.2f", values[k])
	if (nr_kernels > 1)
		printf "%+11.2f", values[nr_kernels] - values[1]
	print ""
}

function put_function(phase, name,    k)
{
	for (k = 1; k <= nr_kernels; k++)
		row[k] = count[k, phase, name] / units[k]
	put(name == "user_space" ? "user space" : name, row)
}

function print_table(phase,    i, k, name)
{
	arrange(phase)
	label_width = 24
	for (i = 1; i <= nr_functions; i++)
		if (is_shown(phase, functions[i]) && length(functions[i]) > label_width)
			label_width = length(functions[i])

	printf "%s, %s: instructions per %s, middle half of %d cycles\n\n", variant, phase, unit,
		cycles
	printf "%-*s", label_width, "function"
	for (k = 1; k <= nr_kernels; k++) {
		width[k] = length(label[k]) > 9 ? length(label[k]) + 2 : 11
		printf "%*s", width[k], label[k]
		other[k] = 0
	}
	print (nr_kernels > 1 ? "     change" : "")

	for (i = 1; i <= nr_functions; i++) {
		name = functions[i]
		if (name == "user_space")
			continue
		if (is_shown(phase, name))
			put_function(phase, name)
		else
			for (k = 1; k <= nr_kernels; k++)
				other[k] += count[k, phase, name] / units[k]
	}
	put("other", other)
	put_function(phase, "user_space")
	put("total", total)
	for (k = 1; k <= nr_kernels; k++)
		row[k] = printed[k, phase]
	put("printed by the test", row)
	printf "%-*s", label_width, "total against that"
	for (k = 1; k <= nr_kernels; k++)
		printf "%*s", width[k], sprintf("%+.2f %%", (total[k] / row[k] - 1) * 100)
	print "\n"
}

function list(values,    k, text)
{
	for (k = 1; k <= nr_kernels; k++)
		text = text (k > 1 ? ", " : "") sprintf("%.4f", values[k])
	return "[" text "]"
}

function print_json_phase(phase,    i, k)
{
	arrange(phase)
	for (k = 1; k <= nr_kernels; k++)
		row[k] = printed[k, phase]
	printf "    {\n      \"phase\": %s,\n      \"total\": %s,\n      \"printed\": %s,\n",
		quoted(phase), list(total), list(row)
	print "      \"functions\": ["
	for (i = 1; i <= nr_functions; i++) {
		for (k = 1; k <= nr_kernels; k++)
			row[k] = count[k, phase, functions[i]] / units[k]
		printf "        {\"function\": %s, \"instructions\": %s}%s\n", quoted(functions[i]),
			list(row), (i < nr_functions ? "," : "")
	}
	printf "      ]\n    }"
}

function print_json(    i, k)
{
	printf "{\n  \"test\": %s,\n  \"variant\": %s,\n  \"unit\": %s,\n  \"cycles\": %d,\n",
		quoted(test), quoted(variant), quoted(unit), cycles
	printf "  \"kernels\": ["
	for (k = 1; k <= nr_kernels; k++)
		printf "%s%s", (k > 1 ? ", " : ""), quoted(label[k])
	print "],\n  \"phases\": ["
	for (i = 1; i <= nr_phases; i++) {
		print_json_phase(phases[i])
		print (i < nr_phases ? "," : "")
	}
	print "  ]\n}"
}

function print_folded(    i, k, p)
{
	for (k = 1; k <= nr_kernels; k++)
		for (p = 1; p <= nr_phases; p++) {
			if (phases[p] == "cycle")
				continue
			for (i = 1; i <= nr_names; i++)
				if (count[k, phases[p], names[i]])
					printf "%s;%s;%s %.0f\n", label[k], phases[p], names[i],
						count[k, phases[p], names[i]]
		}
}

$1 == "kernel" {
	label[$2] = substr($0, length("kernel  ") + length($2) + 1)
	nr_kernels = $2
}

$1 == "unit" { unit = $2 }

$1 == "units" {
	units[$2] = $3
	cycles = $4
}

$1 == "printed" {
	if (!($3 in seen_phase))
		phases[++nr_phases] = $3
	seen_phase[$3] = 1
	printed[$2, $3] = $4
}

$1 == "count" {
	if (!($4 in seen_name))
		names[++nr_names] = $4
	seen_name[$4] = 1
	count[$2, $3, $4] = $5
}

END {
	if (format == "json") {
		print_json()
	} else if (format == "folded") {
		print_folded()
	} else {
		for (i = 1; i <= nr_phases; i++)
			if ((phases[i] != "cycle") == (by_phase == "yes"))
				print_table(phases[i])
		if (nr_kernels > 1)
			print "In order of the largest change between any two kernels; the last" \
				" column is the\nlast kernel against the first."
		print "Instructions are counted: cache misses, TLB misses and stalls are not seen."
	}
}
