#!/bin/sh
# SPDX-FileCopyrightText: The gpushare authors
# SPDX-License-Identifier: Apache-2.0
#
# Unpacks NVIDIA's libcuda and libnvidia-ml of one driver series from Debian's
# non-free component into <repository>/.cache/realdriver/SERIES and prints the
# directory of the libraries. usage: fetch.sh [535|470|525|550|555]
# Exits with 77 and the reason where the packages cannot be had. They are not free
# software and are never distributed.
set -eu

series=${1:-535}
here=$(CDPATH='' cd -- "$(dirname -- "$0")" && pwd)
cache=$(CDPATH='' cd -- "$here/../.." && pwd)/.cache/realdriver/$series

skip() {
	echo "the libraries of driver $series cannot be had: $*" >&2
	exit 77
}

# suite and packages of a series
case $series in
470) suite=bookworm packages='libnvidia-tesla-470-cuda1 libnvidia-tesla-470-ml1' ;;
525) suite=bookworm packages='libnvidia-tesla-cuda1 libnvidia-tesla-ml1' ;;
535) suite=bookworm packages='libcuda1 libnvidia-ml1' ;;
550) suite=trixie packages='libcuda1 libnvidia-ml1' ;;
555) suite=experimental packages='libcuda1 libnvidia-ml1' ;;
*) skip "no such series is known" ;;
esac

# shellcheck disable=SC2086 # a list of packages
"$here/../setup/nonfree.sh" "$cache" "$suite" $packages
mkdir -p "$cache/lib"
for name in libcuda libnvidia-ml; do
	[ ! -e "$cache/lib/$name.so.1" ] || continue
	found=$(find "$cache/root" -type f -name "$name.so.*.*" -print -quit)
	[ -n "$found" ] || skip "no $name in the packages"
	case ${found##*.so.} in
	"$series".*) ;;
	*) rm -f "$cache/complete"; skip "$suite has ${found##*.so.}" ;;
	esac
	ln -sf "$found" "$cache/lib/$name.so.1"
done
echo "$cache/lib"
