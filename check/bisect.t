#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
#
# ab/bisect-step under "git bisect run", in a tree that stands for the kernel's: its make
# takes images of known kernels instead of building one.

. check/lib.sh

# All that ab/bisect-step must remove is below this.
export TMPDIR="$tmp/tmp"
mkdir "$TMPDIR"

tree=$tmp/tree
step=$top/ab/bisect-step
export GIT_AUTHOR_NAME=test GIT_AUTHOR_EMAIL=test GIT_COMMITTER_NAME=test \
	GIT_COMMITTER_EMAIL=test GIT_CONFIG_GLOBAL=/dev/null

# commit VERSION: the tree makes an image of this from now on
commit()
{
	echo "$1" > "$tree/version"
	echo "$1, commit $((commits = commits + 1))" > "$tree/text"
	git -C "$tree" add version text Makefile .gitignore &&
		git -C "$tree" commit -q -m "$1" && git -C "$tree" tag "commit-$commits"
}

in_tree()
{
	(cd "$tree" && "$@")
}

# bisect_step COMMIT ARGUMENT...
bisect_step()
{
	git -C "$tree" checkout -q "$1" || return
	shift
	in_tree "$step" "$@" IMAGES="$tmp/images"
}

finds_first_bad()
{
	git -C "$tree" bisect start commit-4 commit-1 &&
		in_tree git bisect run "$step" "$tmp/good.log" --variant shared_dirty \
			IMAGES="$tmp/images" > "$tmp/bisect" 2>&1
	status=$?
	cat "$tmp/bisect"
	echo
	git -C "$tree" bisect reset > /dev/null
	bad=$(git -C "$tree" rev-parse commit-3)
	[ $status -eq 0 ] && grep "^$bad is the first bad commit" "$tmp/bisect"
}

# All is in O=, and as the good kernel was booted: its settings, of the one variant.
builds_elsewhere()
{
	rm -r "$tree/arch"
	mkdir "$tmp/elsewhere"
	mv "$tree/.config" "$tmp/elsewhere"
	exits 0 bisect_step commit-1 "$tmp/good.log" --variant shared_dirty O="$tmp/elsewhere"
	status=$?
	mv "$tmp/elsewhere/.config" "$tree"
	[ $status -eq 0 ] && [ ! -e "$tree/arch" ] && [ -e "$tmp/elsewhere/arch" ]
}

boots_alike()
{
	log=$(find build/bisect -name '*.log' | sort | tail -n 1)
	tr -d '\r' < "$log" | grep '^ab-boot: ' > "$tmp/alike"
	cat "$tmp/alike"
	grep -x "ab-boot: counted=yes cpus=1 memory=700" "$tmp/alike" &&
		grep -x "ab-boot: words=quiet loglevel=3" "$tmp/alike" &&
		grep -x "ab-boot: word=MPROTECT_TOGGLE_ROUNDS=2" "$tmp/alike" &&
		! grep private "$tmp/alike"
}

# fails_to STATUS PATTERN COMMAND...: what it prints has the pattern in it
fails_to()
{
	expected=$1 pattern=$2
	shift 2
	exits "$expected" "$@" > "$tmp/words" 2>&1
	status=$?
	cat "$tmp/words"
	[ $status -eq 0 ] && grep -q "$pattern" "$tmp/words"
}

nothing_is_left()
{
	[ -z "$(ls "$TMPDIR")" ]
}

mkdir "$tree" "$tmp/images"
cat > "$tree/Makefile" <<'EOT'
out := $(or $(O),.)
olddefconfig:
	test -e $(out)/.config
image_name:
	@echo arch/x86/boot/bzImage
bzImage:
	mkdir -p $(out)/arch/x86/boot
	cp $(IMAGES)/$(shell cat version) $(out)/arch/x86/boot/bzImage
EOT
printf '%s\n' .config arch > "$tree/.gitignore"
git -C "$tree" init -q
commits=0
commit 6.16.12 && commit 6.16.12 && commit 6.17.13 && commit 6.17.13 &&
	commit missing && commit dead || exit
echo > "$tmp/empty.log"
echo "ab-boot: counted=no cpus=2 memory=768" > "$tmp/timed.log"
printf '%s\n' "ab-boot: counted=yes cpus=1 memory=768" "ab-boot: words=" \
	"ab-boot: word=mprotect_toggle" > "$tmp/counted.log"

ok "-h" exits 0 "$step" -h
ok "refuses to do without a log" refuses 255 "takes the log" in_tree "$step"
ok "refuses two logs" refuses 255 "takes one log" in_tree "$step" one two
ok "refuses an unknown option" refuses 255 "no option -z" in_tree "$step" -z
ok "refuses a log that is not there" refuses 255 "cannot read nowhere" in_tree "$step" nowhere
ok "refuses a tree without .config" refuses 255 "no ./.config" in_tree "$step" "$tmp/timed.log"
touch "$tree/.config"
ok "refuses a log of no boot" refuses 255 "no log of a counted" in_tree "$step" "$tmp/empty.log"
ok "refuses a log that is timed" refuses 255 "no log of a counted" in_tree "$step" "$tmp/timed.log"
ok "refuses a variant that the log has not" refuses 255 "no tests of private" \
	in_tree "$step" "$tmp/counted.log" --variant private
ok "a tree that does not build" fails_to 125 "does not build" \
	bisect_step commit-5 "$tmp/counted.log"

for kernel in 6.16.12 6.17.13; do
	if ! image=$(ab/kernel $kernel); then
		skip "bisections" "kernel $kernel cannot be fetched"
		done_testing
		exit
	fi
	ln -s "$image" "$tmp/images/$kernel"
done
head -c 1000000 "$image" > "$tmp/images/dead"

make_alone OUTPUT="$top/build/static" USERLDFLAGS=-static || exit
ab/boot 6.16.12 -n -m 700 -k "quiet loglevel=3" -o "$tmp/good.log" -- \
	build/static/mprotect_toggle -r mprotect_toggle.shared_dirty.cost -r mprotect_toggle.private.cost \
	MPROTECT_TOGGLE_SIZE_MB=16 MPROTECT_TOGGLE_CYCLES=3 MPROTECT_TOGGLE_ROUNDS=2 || exit

ok "finds the first bad commit" finds_first_bad
ok "builds where O= says" builds_elsewhere
ok "boots as the good kernel was booted" boots_alike
ok "a kernel that does not boot" fails_to 125 "the guest crashed" \
	bisect_step commit-6 "$tmp/good.log" --variant shared_dirty
ok "no boot left a file" nothing_is_left

done_testing
