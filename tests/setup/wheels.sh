#!/bin/sh
# SPDX-FileCopyrightText: The gpushare authors
# SPDX-License-Identifier: Apache-2.0
#
# wheels.sh clients DIR      puts the Python clients of tests/clients/py into DIR, as
#                            published, each pinned by version and hash: CPython 3.11
# wheels.sh torch DIR        PyTorch with all of CUDA 13 (3 GB to fetch, 5 GB)
# wheels.sh torch-cu102 DIR  PyTorch with CUDA 10.2 (0.8 GB, 1.7 GB): CPython 3.10
#
# DIR is made anew where the lists have changed. Nothing is compiled but what is
# published as source.
set -eu
kind=${1:?clients, torch or torch-cu102} dir=${2:?directory}
here=$(cd "$(dirname "$0")/.." && pwd)/clients/py
version=3.11 source=''
case $kind in
clients) lists="$here/requirements.txt $here/requirements-source.txt $here/requirements-build.txt" source=yes ;;
torch) lists=$here/requirements-torch.txt ;;
torch-cu102) lists=$here/requirements-torch-cu102.txt version=3.10 ;;
*) echo "wheels: do not know \"$kind\"" >&2; exit 2 ;;
esac
# shellcheck disable=SC2086 # a list of files
if cat $lists | cmp -s - "$dir/.complete"; then exit 0; fi
new=$dir.new venv=$(dirname "$dir")/clients.pip
rm -rf "$new" "$new.source"
mkdir -p "$new"
[ -x "$venv/bin/pip" ] || python3 -m venv "$venv"
# What is fetched is kept here, not twice. No .pyc: not everybody may write them.
install() {
	"$venv/bin/pip" install --quiet --disable-pip-version-check --no-cache-dir --no-deps --require-hashes "$@"
}
install --only-binary=:all: --python-version "$version" --implementation cp --abi "cp${version%.*}${version#*.}" \
	--abi abi3 --abi none --no-compile --target "$new" -r "${lists%% *}"
if [ -n "$source" ]; then
	install --only-binary=:all: -r "$here/requirements-build.txt"
	# The variable spares it looking for its version in a git checkout.
	GPUSTAT_VERSION=$(sed -n 's/^gpustat==\([^ ]*\).*/\1/p' "$here/requirements-source.txt") \
		install --no-binary=:all: --no-build-isolation --target "$new.source" -r "$here/requirements-source.txt"
	cp -R "$new.source/." "$new"
	rm -rf "$new.source"
fi
rm -rf "$dir"
# shellcheck disable=SC2086
cat $lists >"$new/.complete"
mv "$new" "$dir"
