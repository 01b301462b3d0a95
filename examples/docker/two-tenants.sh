#!/bin/sh
# SPDX-FileCopyrightText: The gpushare authors
# SPDX-License-Identifier: Apache-2.0
#
# Two tenants of one GPU: each sees a card of its own size.
# IMAGE needs nothing but the program PROBE (nvidia-smi is mounted with the driver).
set -eu
image=${IMAGE:-debian:12} probe=${PROBE:-nvidia-smi}
for tenant in "training 6Gi 60%" "notebook 2Gi 20%"; do
	# shellcheck disable=SC2086 # three words
	set -- $tenant
	echo "== $1: $2 of memory, $3 of GPU time"
	docker run --rm --network none --runtime=gpushare -e GPUSHARE_GPU=0 \
		-e GPUSHARE_MEMORY="$2" -e GPUSHARE_COMPUTE="$3" "$image" "$probe"
done
