#!/bin/sh
# SPDX-FileCopyrightText: The gpushare authors
# SPDX-License-Identifier: Apache-2.0
#
# nonfree.sh DIR SUITE PACKAGE...: unpacks packages of Debian's non-free component into
# DIR/root, unless it has been done. The system's own package sources and state are not
# touched: the mirror is read from them, the rest is private. Exits with 77 and the
# reason where the packages cannot be had. They are never distributed.
set -eu
dir=${1:?directory} suite=${2:?suite}
shift 2
case $dir in /*) ;; *) dir=$PWD/$dir ;; esac

skip() {
	echo "$* cannot be had: $why" >&2
	exit 77
}

[ ! -e "$dir/complete" ] || exit 0
why="this is no Debian system"
command -v apt-get >/dev/null && command -v dpkg-deb >/dev/null || skip "$@"
# shellcheck disable=SC1091
. /etc/os-release
why="$PRETTY_NAME has no non-free component with them"
[ "${ID:-}" = debian ] || skip "$@"
uri=$(apt-get indextargets --format '$(CREATED_BY) $(CODENAME) $(COMPONENT) $(REPO_URI)' |
	awk -v c="$VERSION_CODENAME" '$1 == "Packages" && $2 == c && $3 == "main" { print $4; exit }')
why="no package source for $VERSION_CODENAME main is configured"
[ -n "$uri" ] || skip "$@"

rm -rf "$dir"
apt=$dir/apt
mkdir -p "$apt/lists/partial" "$apt/cache/archives/partial" "$dir/root"
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
why="the package list of $suite cannot be fetched"
private update || skip "$@"
why="they cannot be fetched"
(cd "$apt" && private download "$@") || skip "$@"
for deb in "$apt"/*.deb; do
	dpkg-deb -x "$deb" "$dir/root"
done
touch "$dir/complete"
