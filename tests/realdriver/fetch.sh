#!/bin/sh
# SPDX-FileCopyrightText: The gpushare authors
# SPDX-License-Identifier: Apache-2.0
#
# Unpacks NVIDIA's libcuda1 and libnvidia-ml1 from Debian's non-free component
# into <repository>/.cache/realdriver and prints the directory of the libraries.
# The system's own package sources and state are not touched: the mirror is read
# from them, the rest is private. Exits with 77 and the reason where the packages
# cannot be had. They are not free software and are never distributed.
set -eu

here=$(CDPATH='' cd -- "$(dirname -- "$0")" && pwd)
cache=$(CDPATH='' cd -- "$here/../.." && pwd)/.cache/realdriver

skip() {
	echo "the real driver's libraries cannot be had: $*" >&2
	exit 77
}

lib=$cache/root/usr/lib/$(uname -m)-linux-gnu
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
	mkdir -p "$apt/lists/partial" "$apt/cache/archives/partial" "$cache/root"
	keys=/usr/share/keyrings/debian-archive-keyring.gpg
	signed=''
	[ ! -e "$keys" ] || signed="[signed-by=$keys] "
	echo "deb $signed$uri $VERSION_CODENAME non-free" >"$apt/sources.list"
	: >"$apt/status"
	private() {
		apt-get -qq -o Dir::Etc::sourcelist="$apt/sources.list" -o Dir::Etc::sourceparts=- \
			-o Dir::State="$apt" -o Dir::State::lists="$apt/lists" -o Dir::State::status="$apt/status" \
			-o Dir::Cache="$apt/cache" -o APT::Sandbox::User=root "$@" >&2
	}
	private update || skip "its package list cannot be fetched"
	(cd "$apt" && private download libcuda1 libnvidia-ml1) || skip "the packages cannot be fetched"
	for deb in "$apt"/*.deb; do
		dpkg-deb -x "$deb" "$cache/root"
	done
	touch "$cache/complete"
fi
found=$(find "$lib" -name 'libcuda.so.*.*' -print -quit)
[ -n "$found" ] || skip "no libcuda in the packages"
dirname "$found"
