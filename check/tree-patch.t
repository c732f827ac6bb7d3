#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
#
# tree/patch: that its series is one a maintainer could take.

. check/lib.sh

# Somebody's git configuration, with what could bend a patch.
export GIT_CONFIG_GLOBAL="$tmp/gitconfig" GIT_CONFIG_NOSYSTEM=1
git config --global user.name "A U Thor"
git config --global user.email author@example.com
git config --global commit.gpgSign true
git config --global core.autocrlf true
git config --global diff.noprefix true
git config --global format.useAutoBase true

# A project of its own, so that build/ is.
mkdir "$tmp/project"
cp -R tree config ./*.c ./*.h ./*.sh ./*.patch "$tmp/project"
patch=$tmp/project/tree/patch

mm=tools/testing/selftests/mm

repository()
{
	git -C "$tmp/git" -c commit.gpgSign=false -c core.autocrlf=false "$@"
}

make_repository()
{
	rm -rf "$tmp/git"
	cp -a "$1" "$tmp/git"
	repository init -q
	repository add -A -f
	repository commit -q -m base
}

writes_series()
{
	manifest "$1" > "$tmp/before"
	"$patch" -s -o "$tmp/series" "$1" > "$tmp/names" 2> "$tmp/recipients"
	status=$?
	manifest "$1" > "$tmp/after"
	cat "$tmp/names" "$tmp/recipients"
	[ $status -eq 0 ] && ls "$tmp"/series/*.patch > "$tmp/listed" && same "$tmp/listed" "$tmp/names"
}

has_cover_letter()
{
	cat "$tmp"/series/0000-*
	grep -q '^Subject: \[PATCH 0/[1-9]\] selftests/mm: ' "$tmp"/series/0000-* &&
		! grep -F '***' "$tmp"/series/0000-*
}

satisfies_checkpatch()
{
	(cd "$1" && perl scripts/checkpatch.pl --no-tree --strict "$tmp"/series/000[1-9]-*)
}

names_recipients()
{
	cat "$tmp/recipients"
	grep -q linux-mm@kvack.org "$tmp/recipients" &&
		grep -q 'MEMORY MAPPING' "$tmp/recipients"
}

applies()
{
	repository am -q "$tmp"/series/000[1-9]-*
}

# After each patch, whatever of ours is there compiles, and each test once it is.
every_patch_builds()
{
	repository reset -q --hard "$base" || return
	for each in "$tmp"/series/000[1-9]-*; do
		repository am -q "$each" || return
		for file in $(files helper); do
			[ ! -e "$tmp/git/$mm/$file" ] || compiles "$tmp/git" "$mm/$file" || return
		done
		for program in $(files program); do
			program=${program%.c}
			! grep "$program" "$tmp/git/$mm/Makefile" ||
				make -C "$tmp/git/$mm" "$tmp/git/$mm/$program" || return
		done
	done
	[ -x "$tmp/git/$mm/$program" ]
}

compiles()
{
	(cd "$1" && gcc -Wall -Werror -O2 -D_GNU_SOURCE= -Itools/testing/selftests \
		-isystem tools/include/uapi -c -o /dev/null "$2")
}

brings_what_integrate_does()
{
	"$tmp/project/tree/integrate" "$tmp/git" > "$tmp/said" && cat "$tmp/said" &&
		[ ! -s "$tmp/said" ]
}

leaves_in_build()
{
	ls "$tmp/project/build"
	[ "$(ls "$tmp/project/build")" = "$1" ]
}

# Into build/patch, where an older series was.
replaces_series()
{
	mkdir -p "$tmp/project/build/patch"
	touch "$tmp/project/build/patch/0009-older.patch"
	"$patch" "$1" > "$tmp/names" 2> /dev/null || return
	ls "$tmp/project/build/patch"/* > "$tmp/listed" && same "$tmp/names" "$tmp/listed" &&
		[ ! -e "$tmp/project/build/patch/0009-older.patch" ]
}

signs_nothing()
{
	! grep Signed-off-by "$tmp/project/build/patch"/*
}

for version in 6.12 7.2 7.3; do
	tree=$(tree/get $version)
	rm -rf "$tmp/series"

	ok "$version: writes a series" writes_series "$tree"
	ok "$version: the tree is as it was" same "$tmp/before" "$tmp/after"
	ok "$version: has a cover letter" has_cover_letter
	ok "$version: says whom to send it to" names_recipients
	ok "$version: checkpatch.pl has no complaint" satisfies_checkpatch "$tree"

	make_repository "$tree"
	base=$(repository rev-parse HEAD)
	ok "$version: git am takes it" applies
	ok "$version: it brings what tree/integrate does" brings_what_integrate_does
done
ok "every patch builds" every_patch_builds
ok "leaves nothing in build/" leaves_in_build ""

refuses_the_tree_it_made()
{
	refuses 1 "has a mm/page_state.c" "$patch" "$tmp/git"
}
ok "refuses a tree that has the tests" refuses_the_tree_it_made

repository reset -q --hard "$base"
rm -rf "$tmp/series"
ok "takes a git repository" writes_series "$tmp/git"
ok "and leaves it as it was" same "$tmp/before" "$tmp/after"

ok "writes to build/patch, and only its own" replaces_series "$tree"
ok "leaves nothing else in build/" leaves_in_build patch
ok "signs off only if told to" signs_nothing

ok "refuses a folder that has patches" \
	refuses 1 "has patches in it" "$patch" -o "$tmp/project/build/patch" "$tree"
ok "refuses to make up an author" \
	refuses 1 "user.name" env GIT_CONFIG_GLOBAL=/dev/null "$patch" "$tree"
ok "refuses what is no kernel tree" refuses 1 "has no MAINTAINERS" "$patch" "$tmp/project"
ok "takes one tree" refuses 2 "takes one argument" "$patch"
ok "takes a tree that is there" refuses 2 "not a folder" "$patch" "$tmp/nowhere"
ok "explains itself" exits 0 "$patch" -h

done_testing
