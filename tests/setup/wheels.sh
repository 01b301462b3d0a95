#!/bin/sh
# SPDX-FileCopyrightText: The gpushare authors
# SPDX-License-Identifier: Apache-2.0
#
# wheels.sh DIR: puts the Python clients of tests/clients/py into DIR, as published,
# each pinned by version and hash. They run under CPython 3.11.
set -eu
dir=${1:?directory}
here=$(cd "$(dirname "$0")/.." && pwd)/clients/py
lists="$here/requirements.txt $here/requirements-source.txt $here/requirements-build.txt"
# shellcheck disable=SC2086 # a list of files
if cat $lists | cmp -s - "$dir/.complete"; then exit 0; fi
new=$dir.new venv=$dir.pip
rm -rf "$new" "$new.source"
mkdir -p "$new"
[ -x "$venv/bin/pip" ] || python3 -m venv "$venv"
install() { "$venv/bin/pip" install --quiet --disable-pip-version-check --no-deps --require-hashes "$@"; }
install --only-binary=:all: --python-version 3.11 --implementation cp --abi cp311 --abi abi3 --abi none \
	--target "$new" -r "$here/requirements.txt"
install --only-binary=:all: -r "$here/requirements-build.txt"
# The variable spares it looking for its version in a git checkout.
GPUSTAT_VERSION=$(sed -n 's/^gpustat==\([^ ]*\).*/\1/p' "$here/requirements-source.txt") \
	install --no-binary=:all: --no-build-isolation --target "$new.source" -r "$here/requirements-source.txt"
cp -R "$new.source/." "$new"
rm -rf "$new.source" "$dir"
# shellcheck disable=SC2086
cat $lists >"$new/.complete"
mv "$new" "$dir"
