#!/bin/sh
# SPDX-FileCopyrightText: The gpushare authors
# SPDX-License-Identifier: Apache-2.0
#
# image.sh small DIR    a root file system with busybox, the glibc loader and the C
#                       test clients, made of this machine's own files (1 s)
# image.sh python DIR   Debian with python3 and what the client wheels expect of a
#                       system, by debootstrap (2 min, kept in .cache)
# image.sh compiler DIR the same with a C compiler and Python's headers, for clients
#                       that compile what they run
#
# DIR is made anew; nothing is fetched from an image registry.
set -eu
kind=${1:?small, python or compiler} dir=${2:?directory}
root=$(cd "$(dirname "$0")/../.." && pwd)
PATH=$PATH:/usr/sbin:/sbin

accounts() {
	printf 'root:x:0:0:root:/root:/bin/sh\ntenant:x:1000:1000:tenant:/tmp:/bin/sh\n' >"$1/etc/passwd"
	printf 'root:x:0:\ntenant:x:1000:\n' >"$1/etc/group"
	printf 'root::19000:0:99999:7:::\ntenant::19000:0:99999:7:::\n' >"$1/etc/shadow"
	chmod 0640 "$1/etc/shadow"
}

small() {
	multiarch=$(gcc -print-multiarch 2>/dev/null || echo x86_64-linux-gnu)
	rm -rf "$dir"
	mkdir -p "$dir/usr/bin" "$dir/usr/lib/$multiarch" "$dir/usr/lib64" "$dir/etc" "$dir/root" \
		"$dir/tmp" "$dir/proc" "$dir/sys" "$dir/dev" "$dir/run" "$dir/var"
	chmod 1777 "$dir/tmp"
	for d in bin lib lib64; do ln -s "usr/$d" "$dir/$d"; done
	cp /bin/busybox "$dir/usr/bin/busybox"
	for applet in sh cat echo env id kill ls mkdir mknod mount umount ps rm seq sleep stat su test touch true \
		timeout head tail grep wc readlink dd od; do
		ln -s busybox "$dir/usr/bin/$applet"
	done
	for lib in libc.so.6 libm.so.6 libdl.so.2 libpthread.so.0 librt.so.1; do
		cp -L "/lib/$multiarch/$lib" "$dir/usr/lib/$multiarch/$lib"
	done
	# The loader, under the name that the programs carry.
	loader=$(readelf -l "$root/build/tests/alloc" | sed -n 's/.*program interpreter: \(.*\)]/\1/p')
	cp -L "$loader" "$dir/usr/lib64/$(basename "$loader")"
	accounts "$dir"
	for program in "$root"/build/tests/*; do
		[ -f "$program" ] && cp "$program" "$dir/usr/bin/"
	done
}

python() {
	packages=python3,libx11-6$1 # taichi is linked with the latter
	[ "$(cat "$dir/.complete" 2>/dev/null)" = "$packages" ] && exit 0
	rm -rf "$dir" "$dir.new"
	mkdir -p "$(dirname "$dir")"
	log=$dir.log
	if ! debootstrap --variant=minbase --include="$packages" bookworm "$dir.new" >"$log" 2>&1; then
		tail -n 20 "$log" >&2
		echo "image: debootstrap failed, see $log" >&2
		exit 1
	fi
	rm -rf "$dir.new/var/cache/apt" "$dir.new/var/lib/apt/lists" "$dir.new/usr/share/doc" "$dir.new/usr/share/locale"
	mkdir -p "$dir.new/var/cache/apt/archives/partial" "$dir.new/var/lib/apt/lists/partial"
	echo 'tenant:x:1000:1000:tenant:/tmp:/bin/sh' >>"$dir.new/etc/passwd"
	echo 'tenant:x:1000:' >>"$dir.new/etc/group"
	echo "$packages" >"$dir.new/.complete"
	mv "$dir.new" "$dir"
	rm -f "$log"
}

case $kind in
small) small ;;
python) python '' ;;
compiler) python ,gcc,libc6-dev,libpython3.11-dev ;;
*) echo "image: do not know \"$kind\"" >&2; exit 2 ;;
esac
