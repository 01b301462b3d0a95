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
if ! python3 -c 'import venv, ensurepip' 2>/dev/null; then
	echo "setup.sh: python3 with venv is needed to fetch the C toolchain: apt-get install python3-venv" >&2
	exit 1
fi
mkdir -p "$cache"
# Two makes may run at once: each fills a directory of its own, the rename decides.
tmp=$(mktemp -d "$cache/zig.XXXXXX")
trap 'rm -rf "$tmp"' EXIT
# A pip of its own: the system's may be missing, or refuse to install (PEP 668).
python3 -m venv "$tmp/venv"
"$tmp/venv/bin/python" -m pip install --quiet --disable-pip-version-check --no-deps --only-binary=:all: \
	--require-hashes --target "$tmp" -r "$here/requirements.txt" >&2
rm -rf "$tmp/venv"
cp "$here/requirements.txt" "$tmp/requirements.txt"
chmod 0755 "$tmp"
rm -rf "$target"
mv -T "$tmp" "$target" || [ -x "$zig" ]
echo "$zig"
