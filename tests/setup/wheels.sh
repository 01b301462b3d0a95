#!/bin/sh
# SPDX-FileCopyrightText: The gpushare authors
# SPDX-License-Identifier: Apache-2.0
#
# wheels.sh clients DIR      puts the Python clients of tests/clients/py into DIR, as
#                            published, each pinned by version and hash: CPython 3.11
# wheels.sh torch DIR        PyTorch with all of CUDA 13 (3 GB to fetch, 5 GB)
# wheels.sh torch-cu102 DIR  PyTorch and CuPy with CUDA 10.2 (0.85 GB, 1.9 GB): CPython 3.10
# wheels.sh nvcc DIR         NVIDIA's compiler (0.13 GB)
#
# DIR is made anew where the lists have changed. Nothing is compiled but what is
# published as source.
set -eu
kind=${1:?clients, torch, torch-cu102 or nvcc} dir=${2:?directory}
here=$(cd "$(dirname "$0")/.." && pwd)/clients/py
version=3.11 source=''
case $kind in
clients) lists="$here/requirements.txt $here/requirements-source.txt $here/requirements-build.txt" source=yes ;;
torch | nvcc) lists=$here/requirements-$kind.txt ;;
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
# CuPy looks for the libraries of CUDA 10.2 by name. PyTorch carries some of them under
# other names; the others are published nowhere: they become libraries of the names that
# CuPy is linked with, whose functions all fail.
cuda10() {
	mkdir "$new/cuda10"
	for lib in cudart:10.2 nvrtc:10.2 cublas:10 cublasLt:10 gomp:1; do
		(cd "$new/cuda10" && ln -s ../torch/lib/lib"${lib%:*}"[.-]*so."${lib#*:}" "lib${lib%:*}.so.${lib#*:}")
	done
	(cd "$new/cuda10" && ln -s ../torch/lib/libnvrtc-builtins.so .)
	find "$new/cupy" "$new/cupy_backends" -name '*.so' -exec nm -D --undefined-only {} + >"$new/cuda10/names"
	for lib in cufft curand cusparse cusolver; do
		echo "lib$lib.so.10 { global: *; };" >"$new/cuda10/map"
		sed -n "s/.* \([A-Za-z0-9_]*\)@lib$lib\.so\.10\$/int \1(void) { return 1; }/p" "$new/cuda10/names" | sort -u |
			${CC:-gcc} -x c -shared -fPIC -Wl,-soname,"lib$lib.so.10" -Wl,--version-script="$new/cuda10/map" \
				-o "$new/cuda10/lib$lib.so.10" -
	done
}
if [ "$kind" = torch-cu102 ]; then cuda10; fi
rm -rf "$dir"
# shellcheck disable=SC2086
cat $lists >"$new/.complete"
mv "$new" "$dir"
