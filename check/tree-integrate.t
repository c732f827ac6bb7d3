#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
#
# tree/integrate, on a copy of the trees that it must work on.

. check/lib.sh

# Enough to see that the tests run, and no more.
export MPROTECT_TOGGLE_SIZE_MB=4 MPROTECT_TOGGLE_CYCLES=2 MPROTECT_TOGGLE_ROUNDS=1
export MMAP_CHURN_STEPS=128 MMAP_CHURN_ROUNDS=1

# What may differ from the tree that tree $1 is a copy of.
expected_changes()
{
	files helper
	files header
	files program
	printf '%s\n' Makefile config run_vmtests.sh
	[ "$1" = 6.12 ] || files wrapper
	[ "$1" = 7.3 ] || echo .gitignore
}

changes()
{
	diff -rq --no-dereference "$(tree/get "$1")" "$tmp/$1" | sed \
		-e 's|^Files .*/tools/testing/selftests/mm/\(.*\) and .* differ$|\1|' \
		-e 's|^Only in .*/tools/testing/selftests/mm: ||'
}

changes_what_it_must()
{
	expected_changes "$1" | sort > "$tmp/expected"
	changes "$1" | sort > "$tmp/changes"
	same "$tmp/expected" "$tmp/changes"
}

# The scripts are still such.
keeps_modes()
{
	[ -x "$1/run_vmtests.sh" ] || return
	for wrapper in $(files wrapper); do
		[ ! -e "$1/$wrapper" ] || [ -x "$1/$wrapper" ] || return
	done
}

names_each_symbol_once()
{
	while read -r line; do
		echo "$line"
		[ "$(grep -cx "$line" "$1/config")" -eq 1 ] || return
	done < config
}

changes_nothing()
{
	manifest "$1" > "$tmp/before"
	tree/integrate "$1" > "$tmp/said" || return
	manifest "$1" > "$tmp/after"
	same "$tmp/before" "$tmp/after" && [ ! -s "$tmp/said" ]
}

# The compiler says nothing of our files, and each program comes out.
builds()
{
	make "$@" > "$tmp/log" 2>&1
	for file in $(files helper) $(files header) $(files program); do
		! grep "$file.*\(warning\|error\)" "$tmp/log" || return
	done
	for program in $(files program); do
		[ -x "$mm/${program%.c}" ] || { cat "$tmp/log"; return 1; }
	done
}

builds_all()
{
	builds -j2 -C "$tree/tools/testing/selftests" TARGETS=mm
}

builds_ours()
{
	# shellcheck disable=SC2046 # a list
	builds -C "$mm" $(files program | sed "s|\(.*\)\.c$|$mm/\1|")
}

# runs PROGRAM COMMAND...: the category runs the program, and tells its result. In a
# folder without the other tests: for some, run_vmtests.sh changes settings of the machine.
runs()
{
	program=$1
	shift
	rm -rf "$tmp/run"
	mkdir "$tmp/run"
	cp "$mm"/run_vmtests.sh "$mm"/ksft_m*.sh "$mm/$program" "$tmp/run"
	(cd "$tmp/run" && "$@") > "$tmp/log"
	cat "$tmp/log"

	result="^not ok [0-9]* $program # exit=1$"
	! grep -q '^# # Totals: pass:.* fail:0 ' "$tmp/log" || result="^ok [0-9]* $program$"
	grep -q '^# # Totals: pass:[1-9]' "$tmp/log" && grep -q "$result" "$tmp/log"
}

# The category has nothing else in it.
runs_alone()
{
	runs "$@" && grep -qx '1\.\.1' "$tmp/log"
}

knows_the_category()
{
	bash "$mm/run_vmtests.sh" -h | grep -A 1 '^- mprotect$' | grep 'tests for mprotect(2)'
}

for version in 6.12 7.2 7.3; do
	tree=$tmp/$version
	mm=$tree/tools/testing/selftests/mm
	cp -a "$(tree/get $version)" "$tree" || exit

	ok "$version: integrates" tree/integrate "$tree"
	ok "$version: changes what it must, and no more" changes_what_it_must $version
	ok "$version: config names each symbol once" names_each_symbol_once "$mm"
	ok "$version: scripts can be executed" keeps_modes "$mm"
	ok "$version: a second time changes nothing" changes_nothing "$tree"
	ok "$version: the category is in the usage" knows_the_category

	case $version in
	6.12)
		ok "$version: builds in the tree without a warning" builds_ours
		skip "$version: the category runs" "run_vmtests.sh writes to sysctls there"
		;;
	7.2)
		ok "$version: builds in the tree without a warning" builds_ours
		ok "$version: the category runs" runs_alone mprotect_toggle ./run_vmtests.sh -t mprotect
		ok "$version: category mmap runs ours, too" runs mmap_churn ./run_vmtests.sh -t mmap
		;;
	*)
		ok "$version: builds with all of mm, without a warning" builds_all
		ok "$version: the wrapper runs the category" runs_alone mprotect_toggle ./ksft_mprotect.sh
		ok "$version: the wrapper of category mmap runs ours, too" runs mmap_churn ./ksft_mmap.sh
		;;
	esac
done

#
# Trees that it must refuse, and leave alone
#

# A tree for the next test to damage.
fresh()
{
	rm -rf "$tmp/tree"
	selftests=tools/testing/selftests
	mkdir -p "$tmp/tree/$selftests"
	mm=$tmp/tree/$selftests/mm
	(cd "$(tree/get 7.3)/$selftests" &&
		cp -a lib.mk kselftest_harness.h mm "$tmp/tree/$selftests")
}

refuses_tree()
{
	manifest "$tmp/tree" > "$tmp/before"
	refuses 1 "$@" "$tmp/tree" || return
	manifest "$tmp/tree" > "$tmp/after"
	same "$tmp/before" "$tmp/after"
}

# Root can write to what is read-only, unless it gives up the right to.
without_override()
{
	if [ "$(id -u)" -eq 0 ]; then
		setpriv --bounding-set=-dac_override "$@"
	else
		"$@"
	fi
}

fresh
sed -i '/^TEST_GEN_FILES += /d' "$mm/Makefile"
ok "refuses a Makefile without a place for a test" refuses_tree "no place for" tree/integrate

fresh
sed -i 's/^- mremap$/- mremap2/' "$mm/run_vmtests.sh"
ok "refuses a run_vmtests.sh that the patch does not fit" \
	refuses_tree "does not apply" tree/integrate

fresh
sed -i 's/^- mremap$/- mprotect\n\ttests for mprotect(2)\n&/' "$mm/run_vmtests.sh"
ok "refuses a run_vmtests.sh with half of the patch" refuses_tree "does not apply" tree/integrate

fresh
echo "int page_state;" > "$mm/page_state.c"
ok "refuses a tree with another file of our name" \
	refuses_tree "another page_state.c" tree/integrate

fresh
chmod a-w "$mm/config"
ok "refuses a tree with a read-only file" \
	refuses_tree "config cannot be written" without_override tree/integrate

fresh
chmod a-w "$mm"
ok "refuses a read-only tree" refuses_tree "cannot be written" without_override tree/integrate
chmod u+w "$mm"

fresh
rm "$mm/run_vmtests.sh"
ok "refuses a folder that is no kernel tree" refuses_tree "has no" tree/integrate

ok "takes one tree" refuses 2 "takes one argument" tree/integrate
ok "takes a tree that is there" refuses 2 "not a folder" tree/integrate "$tmp/nowhere"
ok "takes a number of patches" refuses 2 "not 'two'" tree/integrate -p two "$tmp/tree"
ok "explains itself" exits 0 tree/integrate -h

done_testing
