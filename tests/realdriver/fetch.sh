#!/bin/sh
# SPDX-FileCopyrightText: The gpushare authors
# SPDX-License-Identifier: Apache-2.0
#
# Unpacks NVIDIA's libcuda and libnvidia-ml of one driver series from Debian's
# non-free component into <repository>/.cache/realdriver/SERIES and prints the
# directory of the libraries. usage: fetch.sh [535|470|525|550|555]
# The system's own package sources and state are not touched: the mirror is read
# from them, the rest is private. Exits with 77 and the reason where the packages
# cannot be had. They are not free software and are never distributed.
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

if [ ! -e "$cache/complete" ]; then
	command -v apt-get >/dev/null && command -v dpkg-deb >/dev/null || skip "this is no Debian system"
	# shellcheck disable=SC1091
	. /etc/os-release
	[ "${ID:-}" = debian ] || skip "$PRETTY_NAME has no non-free component with them"
	uri=$(apt-get indextargets --format '$(CREATED_BY) $(CODENAME) $(COMPONENT) $(REPO_URI)' |
		awk -v c="$VERSION_CODENAME" '$1 == "Packages" && $2 == c && $3 == "main" { print $4; exit }')
	[ -n "$uri" ] || skip "no package source for $VERSION_CODENAME main is configured"

	rm -rf "$cache"
	apt=$cache/apt
	mkdir -p "$apt/lists/partial" "$apt/cache/archives/partial" "$cache/root" "$cache/lib"
	keys=/usr/share/keyrings/debian-archive-keyring.gpg
	signed=''
	[ ! -e "$keys" ] || signed="[signed-by=$keys] "
	echo "deb $signed$uri $suite non-free" >"$apt/sources.list"
	: >"$apt/status"
	private() {
		apt-get -qq -o Dir::Etc::sourcelist="$apt/sources.list" -o Dir::Etc::sourceparts=- \
			-o Dir::State="$apt" -o Dir::State::lists="$apt/lists" -o Dir::State::status="$apt/status" \
			-o Dir::Cache="$apt/cache" -o APT::Sandbox::User=root "$@" >&2
	}
	private update || skip "the package list of $suite cannot be fetched"
	# shellcheck disable=SC2086
	(cd "$apt" && private download $packages) || skip "the packages cannot be fetched"
	for deb in "$apt"/*.deb; do
		dpkg-deb -x "$deb" "$cache/root"
	done
	for name in libcuda libnvidia-ml; do
		found=$(find "$cache/root" -type f -name "$name.so.*.*" -print -quit)
		[ -n "$found" ] || skip "no $name in the packages"
		case ${found##*.so.} in
		"$series".*) ;;
		*) skip "$suite has ${found##*.so.}" ;;
		esac
		ln -sf "$found" "$cache/lib/$name.so.1"
	done
	touch "$cache/complete"
fi
echo "$cache/lib"
