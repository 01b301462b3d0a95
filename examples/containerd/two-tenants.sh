#!/bin/sh
# SPDX-FileCopyrightText: The gpushare authors
# SPDX-License-Identifier: Apache-2.0
#
# Two tenants of one GPU, by containerd's own client: each sees a card of its own
# size. The runtime's name is all that containerd has to be told; it finds
# containerd-shim-gpushare-v1 on its PATH or beside its own binary.
# IMAGE needs nothing but the program PROBE (nvidia-smi is mounted with the driver).
set -eu
image=${IMAGE:-docker.io/library/debian:12} probe=${PROBE:-nvidia-smi}
for tenant in "training 6Gi 60%" "notebook 2Gi 20%"; do
	# shellcheck disable=SC2086 # three words
	set -- $tenant
	echo "== $1: $2 of memory, $3 of GPU time"
	ctr run --rm --runtime io.containerd.gpushare.v1 --annotation gpushare.io/gpu=0 \
		--annotation gpushare.io/memory="$2" --annotation gpushare.io/compute="$3" "$image" "$1" "$probe"
done
