#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
#
# checkpatch.pl, shellcheck and a licence line for every file they are for.

. check/lib.sh

ksrc=${KSRC:-$(tree/get)}

sources()
{
	find . -path ./.git -prune -o -path ./build -prune -o -name '*.[ch]' -print | sort
}

# Every file that a shell runs or sources, by its name or its first line.
scripts()
{
	find . -path ./.git -prune -o -path ./build -prune -o -type f -print | sort |
	while read -r file; do
		case $file in
		*.sh) echo "$file" ;;
		*) head -n 1 "$file" | grep -qaE '^#! ?/.*[/ ](ba|da)?sh\>' && echo "$file" ;;
		esac
	done
}

has_no_complaint()
{
	perl "$ksrc/scripts/checkpatch.pl" --no-tree --strict --no-summary -f "$1"
}

names_its_licence()
{
	head -n 2 "$1" | grep 'SPDX-License-Identifier: GPL-2.0'
}

sources > "$tmp/sources"
scripts > "$tmp/scripts"

ok "there are sources" [ -s "$tmp/sources" ]
ok "there are scripts" [ -s "$tmp/scripts" ]

while read -r file; do
	ok "checkpatch: $file" has_no_complaint "$file"
done < "$tmp/sources"

while read -r file; do
	ok "shellcheck: $file" shellcheck -x "$file"
	ok "licence: $file" names_its_licence "$file"
done < "$tmp/scripts"

done_testing
