#!/bin/sh
# SPDX-FileCopyrightText: The gpushare authors
# SPDX-License-Identifier: Apache-2.0
#
# wheels.sh DIR: puts the Python clients of tests/clients/py into DIR, as published,
# each pinned by version and hash. They run in a container with CPython 3.11.
set -eu
dir=${1:?directory}
here=$(cd "$(dirname "$0")/.." && pwd)
list=$here/clients/py/requirements.txt
if cmp -s "$list" "$dir/.complete"; then exit 0; fi
rm -rf "$dir"
mkdir -p "$dir"
venv=$dir.pip
[ -x "$venv/bin/pip" ] || python3 -m venv "$venv"
"$venv/bin/pip" install --quiet --disable-pip-version-check --no-deps --require-hashes --only-binary=:all: \
	--python-version 3.11 --implementation cp --abi cp311 --abi abi3 --abi none \
	--target "$dir" -r "$list"
cp "$list" "$dir/.complete"
