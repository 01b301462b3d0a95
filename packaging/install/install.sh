#!/bin/sh
# SPDX-FileCopyrightText: The gpushare authors
# SPDX-License-Identifier: Apache-2.0
#
# install.sh PREFIX [DESTDIR]: copies what `make build` made below DESTDIR/PREFIX
# (bin, lib/gpushare, lib/systemd/system, share/doc/gpushare). Nothing else is touched: no engine's
# configuration, and no service is started or restarted. Libraries go into a directory of their own
# version, which is never written again: running containers keep the one they started with. Versions
# that no process uses any more are removed.
set -eu
final=${1:?prefix, such as /usr/local}
prefix=${2:-}$final
cd "$(dirname "$0")/../.."
version=$(cat internal/version/VERSION)
libs=$prefix/lib/gpushare
units=$prefix/lib/systemd/system
mkdir -p "$prefix/bin" "$libs" "$units" "$prefix/share/doc/gpushare"

# A new file and a rename: a program that runs is not rewritten under its feet.
place() { # file, directory, mode
	install -m "$3" "$1" "$2/.$(basename "$1").new"
	mv -f "$2/.$(basename "$1").new" "$2/$(basename "$1")"
}
for b in gpushared gpushare gpushare-runtime gpushare-hook containerd-shim-gpushare-v1; do place "build/bin/$b" "$prefix/bin" 0755; done

built=build/lib
if [ "$(uname -m)" = aarch64 ]; then built=build/lib-aarch64; fi
digest=$(cat $built/libcuda.so.1 $built/libnvidia-ml.so.1 | sha256sum | cut -c 1-12)
dir=$libs/$version-$digest
if [ ! -d "$dir" ]; then
	rm -rf "$dir.new"
	mkdir "$dir.new"
	for l in libcuda.so.1 libnvidia-ml.so.1; do install -m 0755 "$built/$l" "$dir.new/$l"; done
	mv "$dir.new" "$dir"
fi
install -m 0755 build/lib/gpushare-probe "$libs/.probe.new"
mv -f "$libs/.probe.new" "$libs/probe"
# A container that has just been asked for may still be about to use the old one.
touch -c "$libs/current"
ln -sfn "$(basename "$dir")" "$libs/current.new"
mv -T "$libs/current.new" "$libs/current"

# A directory is in use while a process has its files mounted (each container that
# was made, has them) or mapped. What cannot be seen is taken to be in use.
used() { # name of a directory
	[ -r /proc/1/maps ] && [ -r /proc/1/mountinfo ] || return 0
	[ -n "$(find /proc -maxdepth 2 -path '/proc/[0-9]*' \( -name maps -o -name mountinfo \) \
		-exec grep -lsF -- "/$1/lib" {} + 2>/dev/null | head -n 1)" ]
}
if [ -z "${2:-}" ]; then
	for old in "$libs"/*-????????????/; do
		old=${old%/}
		if [ -L "$old" ] || [ ! -e "$old/libcuda.so.1" ] || [ "$old" = "$dir" ] || [ -n "$(find "$old" -maxdepth 0 -mmin -10)" ] || used "$(basename "$old")"; then continue; fi
		rm -rf "$old"
		echo "Removed $old: no process uses it."
	done
fi

sed -e "s|@BINDIR@|$final/bin|g" -e "s|@DOCDIR@|$final/share/doc/gpushare|g" packaging/systemd/gpushared.service >"$units/.gpushared.service.tmp"
chmod 0644 "$units/.gpushared.service.tmp"
mv -f "$units/.gpushared.service.tmp" "$units/gpushared.service"
# The README links to the others.
for d in *.md LICENSE docs/*.md docs/*/*.md examples/*/*; do
	to=$prefix/share/doc/gpushare/$(dirname "$d")
	mode=0644
	if [ -x "$d" ]; then mode=0755; fi
	mkdir -p "$to"
	place "$d" "$to" "$mode"
done

cat <<EOF
Installed gpushare $version below $prefix. Next:
  1. nvidia-ctk cdi generate --output=/etc/cdi/nvidia.yaml
                                           unless /etc/cdi or /var/run/cdi describes the GPUs already
  2. $final/bin/gpushare install --engine docker
                                           or containerd; --dry-run shows what it would change.
                                           Starts gpushared by systemd; without systemd, run
                                           $final/bin/gpushared as root before
  3. docker run --runtime=gpushare -e GPUSHARE_MEMORY=4Gi -e GPUSHARE_COMPUTE=25% IMAGE
After an upgrade only: systemctl daemon-reload && systemctl restart gpushared
                                           (without systemd: end it and run the new one);
                                           running containers do not notice
What is not enforced: $final/share/doc/gpushare/docs/limits.md
EOF
