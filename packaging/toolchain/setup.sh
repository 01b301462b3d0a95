#!/bin/sh
# SPDX-FileCopyrightText: The gpushare authors
# SPDX-License-Identifier: Apache-2.0
#
# Installs the pinned C toolchain into <repository>/.cache/toolchain/zig and
# prints the path of the zig binary. Does nothing when it is there already.
set -eu

here=$(CDPATH='' cd -- "$(dirname -- "$0")" && pwd)
root=$(CDPATH='' cd -- "$here/../.." && pwd)
cache=$root/.cache/toolchain
target=$cache/zig
zig=$target/ziglang/zig
stamp=$target/requirements.txt

if [ -x "$zig" ] && cmp -s "$here/requirements.txt" "$stamp"; then
	echo "$zig"
	exit 0
fi
if ! python3 -m pip --version >/dev/null 2>&1; then
	echo "setup.sh: python3 with pip is needed to fetch the C toolchain; install python3-pip" >&2
	exit 1
fi
mkdir -p "$cache"
# Two makes may run at once: each fills a directory of its own, the rename decides.
tmp=$(mktemp -d "$cache/zig.XXXXXX")
trap 'rm -rf "$tmp"' EXIT
python3 -m pip install --quiet --disable-pip-version-check --no-deps --only-binary=:all: \
	--require-hashes --target "$tmp" -r "$here/requirements.txt" >&2
cp "$here/requirements.txt" "$tmp/requirements.txt"
chmod 0755 "$tmp"
rm -rf "$target"
mv -T "$tmp" "$target" || [ -x "$zig" ]
echo "$zig"
