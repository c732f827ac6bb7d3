#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
#
# tree/get: with Debian's own packages, and with an apt of our own for what a real
# one cannot be asked for, such as a kill in mid-download.

. check/lib.sh

is_complete()
{
	[ -f "$1/tools/testing/selftests/lib.mk" ] &&
		[ -f "$1/tools/testing/selftests/mm/vm_util.c" ] &&
		[ -f "$1/scripts/checkpatch.pl" ] && [ -f "$1/MAINTAINERS" ]
}

# Every command but apt's.
mkdir "$tmp/without-apt"
ln -s /usr/bin/* /bin/* "$tmp/without-apt" 2> /dev/null
rm "$tmp"/without-apt/apt-*

quiet_the_second_time()
{
	PATH=$tmp/without-apt tree/get > "$tmp/second" 2> "$tmp/noise"
	cat "$tmp/noise"
	[ ! -s "$tmp/noise" ] && [ "$(cat "$tmp/second")" = "$1" ]
}

newest=$(tree/get)
ok "fetches a kernel tree" is_complete "$newest"
ok "fetches it once, and is quiet from then on" quiet_the_second_time "$newest"
ok "explains itself" exits 0 tree/get -h
ok "refuses what is no version" refuses 2 "takes a version" tree/get newest
ok "refuses a version that Debian does not have" refuses 1 "set KSRC" tree/get 0.1

left_over()
{
	find "$build" -maxdepth 1 -name "linux-*" -o -name get.part | grep .
}

# From here on, a copy of the scripts in a project of its own.
mkdir "$tmp/project"
cp -R tree "$tmp/project"
build=$tmp/project/build

# The user's apt is set up for a mirror where nothing listens.
echo "deb http://127.0.0.1:9/debian stable main" > "$tmp/sources.list"
cat > "$tmp/apt.conf" <<-EOT
Dir::Etc::SourceList "$tmp/sources.list";
Dir::Etc::SourceParts "/dev/null";
EOT
ok "says in one line that the mirror cannot be reached" \
	refuses 1 "127.0.0.1.*set KSRC" env APT_CONFIG="$tmp/apt.conf" "$tmp/project/tree/get"

ok "says in one line that there is no apt" \
	refuses 1 "no apt.*set KSRC" env PATH="$tmp/without-apt" "$tmp/project/tree/get"
ok "leaves no tree when it fails" not left_over

# A Debian with a linux-source-9.9 and a 9.10, whose download waits for a file "go".
mkdir -p "$tmp/apt" "$tmp/package/DEBIAN" "$tmp/package/usr/src"
cat > "$tmp/apt/apt-get" <<-EOT
#!/bin/sh
case "\$*" in
*--print-uris*)
	echo "'http://localhost/debian/dists/stable/InRelease' InRelease 0"
	;;
*download*)
	echo begun >> "$tmp/downloads"
	until [ -e "$tmp/go" ]; do sleep 0.1; done
	cp "$tmp/linux-source-9.10_1_all.deb" .
	;;
esac
EOT
cat > "$tmp/apt/apt-cache" <<-EOT
#!/bin/sh
printf 'linux-source-%s\n' 9.10 9.9 9.10-extra
EOT
chmod +x "$tmp"/apt/*
PATH=$tmp/apt:$PATH

cp -R "$newest" "$tmp/linux-source-9.10"
touch "$tmp/linux-source-9.10/Kconfig"
XZ_OPT=-0 tar -C "$tmp" -cJf "$tmp/package/usr/src/linux-source-9.10.tar.xz" linux-source-9.10
cat > "$tmp/package/DEBIAN/control" <<-EOT
Package: linux-source-9.10
Version: 1
Architecture: all
Maintainer: nobody <nobody@localhost>
Description: kernel source
EOT
dpkg-deb --build -Znone "$tmp/package" "$tmp/linux-source-9.10_1_all.deb" > /dev/null

pid=

at_exit()
{
	[ -z "$pid" ] || kill -s KILL -- -"$pid" 2> /dev/null
}

# Starts it as $pid, leader of its own process group, and returns in mid-download.
start()
{
	rm -f "$tmp/go" "$tmp/downloads"
	setsid "$tmp/project/tree/get" > "$tmp/path" 2> "$tmp/noise" &
	pid=$!
	for _ in $(seq 200); do
		[ ! -s "$tmp/downloads" ] || return 0
		sleep 0.1
	done
	cat "$tmp/noise"
	return 1
}

cleans_up()
{
	start && kill -s TERM -- -$pid && exits 143 wait $pid && not left_over
}

recovers()
{
	start && kill -s KILL -- -$pid && exits 137 wait $pid && [ -d "$build/get.part" ] || return
	start && touch "$tmp/go" && wait $pid && is_complete "$build/linux-9.10"
}

only_the_tree()
{
	[ "$(cd "$build" && echo *)" = "apt get.lock linux-9.10 linux-newest" ] &&
		[ "$(cd "$build/linux-9.10" && echo *)" = "$(cd "$newest" && echo *)" ]
}

gets_all_of_it()
{
	touch "$tmp/go"
	whole=$("$tmp/project/tree/get" -a 9.10) && [ -f "$whole/Kconfig" ] &&
		[ ! -e "$build/linux-9.10/Kconfig" ] && rm -r "$whole"
}

both_wait_for_one_download()
{
	rm -r "$build"/linux-*
	start || return
	"$tmp/project/tree/get" > "$tmp/second" 2> "$tmp/noise" &
	second=$!
	sleep 1
	touch "$tmp/go"
	wait $pid && wait $second || return
	cat "$tmp/downloads" "$tmp/path" "$tmp/second"
	[ "$(wc -l < "$tmp/downloads")" -eq 1 ] && same "$tmp/path" "$tmp/second"
}

ok "leaves nothing when ended in mid-download" cleans_up
ok "starts anew after it was killed in mid-download" recovers
ok "takes 9.10 for newer than 9.9" same "$tmp/path" - <<-EOT
$(cd -P "$build" && pwd)/linux-9.10
EOT
ok "keeps the tree and nothing else" only_the_tree
ok "fetches once if called twice at a time" both_wait_for_one_download
ok "gets all of the tree when asked to" gets_all_of_it

done_testing
