#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
#
# ab/plot: the picture has in it what it should, and bad input gets no picture.

. check/lib.sh

make_alone build/compare || exit
logs="check/logs/a.log check/logs/b.log check/logs/a-again.log"
out=$tmp/out
mkdir "$out"

# plots ARGUMENT...: it makes a picture, and says nothing but what was left out
plots()
{
	ab/plot "$@" 2> "$tmp/said"
	status=$?
	cat "$tmp/said"
	[ $status -eq 0 ] && ! grep -v "^ab/plot: .* is not comparable: left out$" "$tmp/said"
}

has() # PICTURE TEXT...
{
	picture=$1
	shift
	for text; do
		echo "no '$text' in the picture"
		grep -q -F -e "$text" "$picture" || return
	done
}

# What gnuplot draws a filled circle with.
dots()
{
	grep -c "<use xlink:href='#gpPt6' transform.*color='rgb($2)'" "$1"
}

no_picture() # STATUS PATTERN ARGUMENT...
{
	status=$1
	pattern=$2
	shift 2
	refuses "$status" "$pattern" ab/plot "$@" && [ -z "$(ls -A "$out")" ]
}

# Split on purpose, from here on: the names have no blanks.
# shellcheck disable=SC2086
set -- $logs
ok "draws a picture" plots "$@" -o "$out/picture.svg"
ok "of XML" perl -0777 -e 'exit <> !~ m{^<\?xml.*<svg.*</svg>\s*$}s' "$out/picture.svg"
ok "with each variant's verdict" has "$out/picture.svg" "shared_dirty: +121.12 %, slower" \
	"private_none: +0.00 %, no change" "instructions per page"
ok "with both kernels" has "$out/picture.svg" "A 6.16.12, B 6.17.13"
ok "saying what it counts" has "$out/picture.svg" "instructions, not time"
ok "without what is not comparable" not grep -q "private_cow\|private_thp" "$out/picture.svg"
ok "which it says" [ "$(grep -c "private_cow\|private_thp" "$tmp/said")" -eq 2 ]
ok "a dot for each round of A" [ "$(dots "$out/picture.svg" " 51, 102, 170")" -eq 12 ]
ok "and of B" [ "$(dots "$out/picture.svg" "204,  85,  51")" -eq 6 ]
ok "and nothing beside the picture" [ "$(ls -A "$out")" = picture.svg ]
ok "one variant, other names, options first" \
	plots -o "$out/one.svg" --variant private_none --label old --label new "$@"
ok "are drawn" has "$out/one.svg" "old 6.16.12, new 6.17.13" ">private_none: "
ok "and only they" not grep -q "shared_dirty" "$out/one.svg"
ok "a .png" plots "$@" -o "$out/picture.png"
ok "is one" [ "$(head -c 4 "$out/picture.png" | tail -c 3)" = PNG ]

# A log is no program.
hostile=$(printf '6.1\140>%s\140' "$tmp/run")
for log; do
	sed "s|kernel=[^ ]*|kernel=$hostile|" "$log" > "$tmp/$(basename "$log")"
done
ok "a kernel in backquotes is drawn" plots "$tmp/a.log" "$tmp/b.log" "$tmp/a-again.log" \
	-o "$out/hostile.svg"
ok "as text" has "$out/hostile.svg" "6.1??"
ok "and not run" [ ! -e "$tmp/run" ]

rm "$out"/*
ok "explains itself" exits 0 ab/plot -h
ok "no picture's name" no_picture 2 "takes the name of an .svg or a .png, not ''" "$@"
ok "another kind of picture" no_picture 2 "not '.*picture.gif'" "$@" -o "$out/picture.gif"
ok "nothing after -o" no_picture 2 "missing after -o" "$@" -o
ok "an unknown option" no_picture 2 "unknown option -x" "$@" -x -o "$out/picture.svg"
ok "too few logs" no_picture 2 "too few logs" "$1" -o "$out/picture.svg"
ok "a folder that is not there" no_picture 1 "cannot be written" "$@" -o "$out/none/picture.svg"
ok "nothing comparable" no_picture 125 "nothing that could be compared" "$@" \
	--variant private_cow -o "$out/picture.svg"
mkdir "$tmp/bin"
for command in dirname sed awk cat rm mv; do
	ln -s "$(command -v $command)" "$tmp/bin"
done
without_gnuplot()
{
	PATH=$tmp/bin ab/plot "$@"
}
ok "no gnuplot" refuses 1 "there is no gnuplot" without_gnuplot "$@" -o "$out/picture.svg"

done_testing
