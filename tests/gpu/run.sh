#!/bin/sh
# SPDX-FileCopyrightText: The gpushare authors
# SPDX-License-Identifier: Apache-2.0
#
# run.sh [--out FILE] [--gpu N] [--cuda FILE] [--nvml FILE] [--build DIR] [--simulated]
#
# The interception library over a driver, without containers and without a daemon:
# is the limit held, do programs see the slice, what does a call cost more. Needs
# root and what `make build` made. Writes CSV: step,metric,value,unit,gpu.
# With --simulated it runs over simgpu, to try the script itself; every line then
# says SIMULATED. Takes under five minutes.
set -eu
root=$(cd "$(dirname "$0")/../.." && pwd)
build=$root/build out= gpu=0 cuda= nvml= simulated=
while [ $# -gt 0 ]; do
	case $1 in
	--out) out=$2; shift 2 ;;
	--gpu) gpu=$2; shift 2 ;;
	--cuda) cuda=$2; shift 2 ;;
	--nvml) nvml=$2; shift 2 ;;
	--build) build=$2; shift 2 ;;
	--simulated) simulated=SIMULATED; shift ;;
	*) echo "run.sh: do not know \"$1\"; see its head" >&2; exit 2 ;;
	esac
done
work=$(mktemp -d)
out=${out:-$work/result.csv}
rows=$work/rows
passed=0 failed=0 skipped=0
sim_pid= holder= made_run=
[ -d /run/gpushare ] || made_run=1

finish() {
	status=$?
	for pid in $holder $sim_pid; do kill "$pid" 2>/dev/null && wait "$pid" 2>/dev/null || :; done
	[ -z "$made_run" ] || rmdir /run/gpushare 2>/dev/null || :
	rm -rf "$work"
	exit "$status"
}
trap finish EXIT
trap 'exit 130' INT TERM HUP

row() { echo "$1,$2,$3,$4,${simulated:-$name}" >>"$rows"; }
check() { # what, condition's status
	if [ "$2" = 0 ]; then passed=$((passed + 1)); echo "ok      $1"; else failed=$((failed + 1)); echo "NOT OK  $1"; fi
}
skip() { skipped=$((skipped + 1)); echo "skipped: $1"; }
is() { if [ "$@" ]; then echo 0; else echo 1; fi; }

[ "$(id -u)" = 0 ] || { echo "run.sh: root is needed for a mount namespace" >&2; exit 2; }
if [ -n "$simulated" ]; then
	"$build/bin/simgpu" up --dir "$work/sim" --lib-dir "$build/simgpu/lib" --profile h100 --kernel-time bench=2us >"$work/sim.log" 2>&1 &
	sim_pid=$!
	for _ in $(seq 100); do "$build/bin/simgpu" status --dir "$work/sim" >/dev/null 2>&1 && break; sleep 0.05; done
	cuda=$work/sim/lib/libcuda.so.1 nvml=$work/sim/lib/libnvidia-ml.so.1
	export SIMGPU_SOCKET="$work/sim/run/sock"
fi
find_library() { ldconfig -p | sed -n "s/.*$1 (libc6,x86-64.*=> //p" | head -n 1; }
cuda=${cuda:-$(find_library libcuda.so.1)} nvml=${nvml:-$(find_library libnvidia-ml.so.1)}
[ -n "$cuda" ] && [ -n "$nvml" ] || { echo "run.sh: no NVIDIA driver here (libcuda.so.1, libnvidia-ml.so.1); try --simulated" >&2; exit 2; }
cuda=$(readlink -f "$cuda") nvml=$(readlink -f "$nvml")
# The bare side gets the driver's files under their usual names, and nothing of ours.
mkdir "$work/bare"
ln -s "$cuda" "$work/bare/libcuda.so.1"
ln -s "$nvml" "$work/bare/libnvidia-ml.so.1"
bare() { LD_LIBRARY_PATH="$work/bare" "$@"; }

facts=$(bare "$build/tests/bench" --op facts --gpu "$gpu")
uuid=$(echo "$facts" | sed -n 's/^uuid //p')
context=$(echo "$facts" | sed -n 's/^context //p')
name=$(echo "$facts" | sed -n 's/^name //p' | tr , ' ')
echo "GPU $gpu: $name${simulated:+ ($simulated)}; a context takes $context bytes"
case $name in *SIMULATED*) simulated=SIMULATED ;; esac
row facts context_bytes "$context" bytes
slice() { "$build/tests/go/slice" --cuda "$cuda" --nvml "$nvml" --uuid "$uuid" "$@"; }
# What the daemon finds out when it starts.
slice --measure >"$work/figures" || { echo "run.sh: what contexts and blocks cost cannot be measured" >&2; exit 2; }
for figure in context next_context block module graph_node; do
	row calibrate "${figure}_bytes" "$(sed -n "s/.*\"${figure}_bytes\":\([0-9]*\).*/\1/p" "$work/figures")" bytes
done
row calibrate stack_threads "$(sed -n 's/.*"stack_threads":\([0-9]*\).*/\1/p' "$work/figures")" bytes
context=$(sed -n 's/^{"context_bytes":\([0-9]*\).*/\1/p' "$work/figures")
limit=4294967296
ours() { slice --lib "$build/lib" --memory "$limit" --figures "$work/figures" -- "$@"; }

# ---- the limit, by our side and by the driver's ------------------------------
mkfifo "$work/go"
ours "$build/tests/alloc" --gpu "$gpu" --fill --hold stdin <"$work/go" >"$work/fill" 2>&1 &
holder=$!
exec 9>"$work/go"
for _ in $(seq 600); do grep -q '^holding' "$work/fill" && break; kill -0 "$holder" 2>/dev/null || break; sleep 0.05; done
cat "$work/fill"
filled=$(sed -n 's/^filled \([0-9]*\) .*/\1/p' "$work/fill")
check "the program got CUDA's out-of-memory error" "$(grep -q 'next: CUDA_ERROR_OUT_OF_MEMORY (2)' "$work/fill"; echo $?)"
check "allocations and context are at most the limit" "$(is "$((${filled:-0} + context))" -le "$limit")"
check "less than 2 MiB of the limit is left over" "$(is "$((${filled:-0} + context + 2097152))" -ge "$limit")"
pid=$(sed -n 's/^holding pid //p' "$work/fill")
driver=$(bare "$build/tests/nvml" | sed -n "s/^process ${pid:-0} bytes //p" | head -n 1)
if [ -n "$driver" ]; then
	row limit driver_bytes "$driver" bytes
	row limit limit_bytes "$limit" bytes
	check "the driver's own figure for the process ($driver) is at most the limit" "$(is "$driver" -le "$limit")"
else
	skip "the driver has no figure for this process"
fi
check "cuMemGetInfo and cuDeviceTotalMem show the slice" "$(grep -q "total $limit device $limit" "$work/fill"; echo $?)"
echo >&9
exec 9>&-
wait "$holder" || :
holder=
ours "$build/tests/nvml" >"$work/nvml" 2>&1 || :
check "NVML shows the slice" "$(grep -q "^memory total $limit " "$work/nvml"; echo $?)"

# ---- what a call costs -------------------------------------------------------
median() { sort -n | awk '{ a[NR] = $1 } END { print a[int((NR + 1) / 2)] }'; }
for op in start:1 launch:20000 alloc:2000 reject:20000 info:20000; do
	what=${op%:*} count=${op#*:}
	: >"$work/a"
	: >"$work/b"
	for _ in 1 2 3 4 5; do # turn about, so that both see the same machine
		bare "$build/tests/bench" --op "$what" --count "$count" --gpu "$gpu" | awk '{ print $3 }' >>"$work/a"
		ours "$build/tests/bench" --op "$what" --count "$count" --gpu "$gpu" | awk '{ print $3 }' >>"$work/b"
	done
	a=$(median <"$work/a") b=$(median <"$work/b")
	row "$what" bare_p50 "$a" ns
	row "$what" gpushare_p50 "$b" ns
	row "$what" added_p50 "$((b - a))" ns
	printf '%-8s bare %9s ns  with gpushare %9s ns  added %7s ns\n' "$what" "$a" "$b" "$((b - a))"
	check "$what was measured on both sides" "$(is -n "$a" -a -n "$b")"
done

# ---- PyTorch -----------------------------------------------------------------
if [ -z "$sim_pid" ] && python3 -c 'import torch' 2>/dev/null; then
	if ours timeout 120 python3 "$root/tests/gpu/torch_smoke.py" "$limit"; then check "PyTorch" 0; else check "PyTorch" 1; fi
else
	skip "PyTorch: not installed, or not meant for the simulated driver"
fi

{ echo 'step,metric,value,unit,gpu'; cat "$rows"; } >"$work/csv"
if [ "$out" != "$work/result.csv" ]; then cp "$work/csv" "$out"; echo "wrote $out"; else cat "$work/csv"; fi
echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" = 0 ]
