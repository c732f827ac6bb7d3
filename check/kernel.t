#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
#
# ab/kernel finds images: here, among packages made up for this test, and in Debian.

. check/lib.sh

# A copy of the project in which another tree/debian can stand.
project=$tmp/project
kernel=$project/ab/kernel
mkdir -p "$project/ab" "$project/tree"
cp ab/kernel "$project/ab"

# Images, as far as their magic numbers go, each with a text of its own.
x86_image()
{
	head -c 514 /dev/zero
	echo "HdrS $1"
}

arm64_image()
{
	head -c 56 /dev/zero
	echo "ARMd $1"
}

x86_image here > "$tmp/bzImage"
arm64_image here > "$tmp/Image"
mkdir -p "$tmp/built/arch/x86/boot" "$tmp/built-arm64/arch/arm64/boot" "$tmp/unbuilt"
cp "$tmp/bzImage" "$tmp/built/arch/x86/boot"
cp "$tmp/Image" "$tmp/built-arm64/arch/arm64/boot"

# Debian as it might be: names that tell no version, old and new places of the image, the
# same version twice, packages that have none.
cat > "$project/versions" <<'EOT'
linux-image-6.1.0-9-cloud-amd64 6.1.27-1
linux-image-6.1.0-10-cloud-amd64 6.1.38-1
linux-image-6.12.9+deb12-cloud-amd64 6.12.9-1~deb12u1
linux-image-6.12.9+deb13-cloud-amd64 6.12.9-1
linux-image-6.12.10+deb13-cloud-amd64 6.12.10-1
linux-image-6.20.3+deb13-cloud-amd64 6.20.3-1~bpo13+1
linux-binary-6.20.3+deb13-cloud-amd64 6.20.3-1~bpo13+1
linux-image-7.0.1+deb13-cloud-amd64 7.0.1-1
EOT

# Makes the packages that ab/kernel asks for, and notes that it was asked.
cat > "$project/tree/debian" <<'EOT'
#!/bin/sh
cd "$(dirname "$0")/.." || exit
while getopts a:A:s: option; do :; done
shift $((OPTIND - 1))
echo "$*" >> asked
[ ! -e offline ] || { echo "tree/debian: no network" >&2; exit 1; }
case $1 in
versions) cat versions ;;
get)
	package=made/$2
	case $2 in
	linux-image-6.20*|linux-image-7*) image=usr/share/none ;;
	linux-binary-*) image=usr/lib/modules/$2/vmlinuz ;;
	*) image=boot/vmlinuz-$2 ;;
	esac
	mkdir -p "$package/DEBIAN" "$package/$(dirname "$image")"
	{ head -c 514 /dev/zero; echo "HdrS $2"; head -c 100000 /dev/urandom; } > "$package/$image"
	printf '%s\n' "Package: test" "Version: 1" "Architecture: all" "Maintainer: none" \
		"Description: none" > "$package/DEBIAN/control"
	dpkg-deb -Zgzip -b "$package" "$3/$2.deb" > /dev/null
	[ ! -e slow ] || { echo > waiting; exec sleep 60; }
	[ ! -e damaged ] || truncate -s -50000 "$3/$2.deb"
	echo "$3/$2.deb"
	;;
esac
EOT
chmod +x "$project/tree/debian"

prints() # TEXT COMMAND...
{
	expected=$1
	shift
	"$@" > "$tmp/printed" || return
	cat "$tmp/printed"
	[ "$(cat "$tmp/printed")" = "$expected" ]
}

# finds VERSION WHAT PACKAGE: the image of the version, which is out of the package
finds()
{
	prints "$project/build/kernels/cloud-amd64-$1" "$kernel" "$2" &&
		grep -a "HdrS $3" "$project/build/kernels/cloud-amd64-$1"
}

asks_nothing()
{
	rm -f "$project/asked"
	"$@" && [ ! -e "$project/asked" ]
}

lists()
{
	"$kernel" --list > "$tmp/list" &&
		printf '%s\n' 6.1.27 6.1.38 6.12.9 6.12.10 6.20.3 7.0.1 | same - "$tmp/list"
}

# Stops it in the middle of a fetch, by a signal to its process group.
interrupted()
{
	touch "$project/slow"
	setsid "$kernel" 6.1.27 &
	pid=$!
	until [ -e "$project/waiting" ]; do
		kill -0 $pid || return
		sleep 0.1
	done
	kill -s TERM -- -$pid
	wait $pid
	status=$?
	rm "$project/slow"
	find "$project/build/kernels" | sort
	[ $status -eq 143 ] && [ ! -e "$project/build/kernels/part" ] &&
		[ ! -e "$project/build/kernels/cloud-amd64-6.1.27" ]
}

offline()
{
	touch "$project/offline"
	"$@"
	status=$?
	rm "$project/offline"
	return $status
}

# What a package was cut short of is not taken for an image.
cut_short()
{
	touch "$project/damaged"
	exits 1 "$kernel" 6.1.27
	status=$?
	rm "$project/damaged"
	[ $status -eq 0 ] && [ ! -e "$project/build/kernels/cloud-amd64-6.1.27" ]
}

# A version that Debian had once.
gone()
{
	rm "$project/build/kernels/cloud-amd64.list"
	cp "$project/versions" "$tmp/versions"
	grep -v 6.12.9 "$tmp/versions" > "$project/versions"
	"$@"
	status=$?
	cp "$tmp/versions" "$project/versions"
	return $status
}

# With a list that is of another day.
outdated()
{
	touch -d "2 days ago" "$project/build/kernels/cloud-amd64.list"
	"$@"
}

has_no_image()
{
	exits 1 "$kernel" "$1" 2> "$tmp/stderr"
	status=$?
	cat "$tmp/stderr"
	[ $status -eq 0 ] && tail -n 1 "$tmp/stderr" | grep "there is no kernel image in"
}

debian_has_it()
{
	image=$(ab/kernel 7.3) && ab/kernel -m 7.3 | grep -x "x86_64 $image"
}

ok "-h" exits 0 ab/kernel -h
ok "refuses to do without an argument" refuses 2 "takes one" "$kernel"
ok "refuses two arguments" refuses 2 "takes one" "$kernel" 6.1 6.2
ok "refuses an unknown option" refuses 2 "-z is no option" "$kernel" -z 6.1
ok "refuses an unknown long option" refuses 2 "--lust is no option" "$kernel" --lust
ok "refuses an unknown flavour" refuses 2 "flavour" "$kernel" -f salty 6.1
ok "refuses what is nothing of the sort" refuses 2 "nowhere is no" "$kernel" nowhere
ok "refuses a file that is no image" refuses 2 "is no kernel image" "$kernel" "$kernel"
ok "refuses a folder without a kernel" refuses 1 "no kernel was built in" "$kernel" "$tmp/unbuilt"

ok "an image" prints "$tmp/bzImage" "$kernel" "$tmp/bzImage"
ok "its machine" prints "x86_64 $tmp/bzImage" "$kernel" -m "$tmp/bzImage"
ok "an image for arm64" prints "aarch64 $tmp/Image" "$kernel" -m "$tmp/Image"
ok "a folder" prints "$tmp/built/arch/x86/boot/bzImage" "$kernel" "$tmp/built"
ok "a folder for arm64" \
	prints "$tmp/built-arm64/arch/arm64/boot/Image" "$kernel" "$tmp/built-arm64"

ok "no list, and no network" refuses 1 "no network" offline "$kernel" 6.1
ok "the list" lists
ok "the list is kept" asks_nothing lists
ok "a fetch that is interrupted leaves nothing" interrupted
ok "a package that is cut short" cut_short
ok "and can be run again" finds 6.1.27 6.1.27 linux-image-6.1.0-9
ok "the newest of a version" finds 6.1.38 6.1 linux-image-6.1.0-10
ok "10 is newer than 9" finds 6.12.10 6.12 linux-image-6.12.10
ok "the newest package of a version" finds 6.12.9 6.12.9 "linux-image-6.12.9+deb13"
ok "an image in linux-binary" finds 6.20.3 6.20 linux-binary-6.20.3
ok "what was fetched is kept" asks_nothing finds 6.20.3 6.20 linux-binary-6.20.3
ok "it needs no network" outdated offline finds 6.20.3 6.20.3 linux-binary-6.20.3
ok "what Debian has no more is kept" gone finds 6.12.9 6.12.9 "linux-image-6.12.9+deb13"
ok "a package without an image" has_no_image 7.0
ok "a version between others" refuses 1 "no kernel 6.5 now; nearest: 6.1.38 and 6.12.9" "$kernel" 6.5
ok "a version before all" refuses 1 "nearest: 6.1.27$" "$kernel" 5.4
ok "a version after all" refuses 1 "nearest: 7.0.1$" "$kernel" 8.0
ok "a version that is gone" refuses 1 "nearest: 6.12.10 and 6.20.3" "$kernel" 6.12.11

if ab/kernel --list > "$tmp/debian"; then
	ok "Debian has a list" grep -xE '7\.[0-9]+\.[0-9]+' "$tmp/debian"
	ok "Debian has 7.3" debian_has_it
else
	skip "Debian has a list" "no network, or no apt"
	skip "Debian has 7.3" "no network, or no apt"
fi

done_testing
