// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

// Checkpoints. A process that is written away keeps its slot, and what it holds stays
// charged on the GPUs that it was on, so that it finds it when it comes back. On other
// GPUs it would not be charged at all: that is refused.

#include <string.h>

#include "attach.h"
#include "cuda_bodies.h"

// The layout of CUcheckpointRestoreArgs since 13.0; before, all of it had to be zero.
struct restore_args {
	const CUuuid (*pairs)[2]; // old, new
	unsigned int count;
};

CUresult gs_cu_checkpoint_restore(GS_FN(cuCheckpointProcessRestore) real, int pid, CUcheckpointRestoreArgs *args)
{
	const struct restore_args *a = (const struct restore_args *)(const void *)args;

	for (unsigned int i = 0; gs_attached() && a && a->pairs && i < a->count; i++)
		if (memcmp(&a->pairs[i][0], &a->pairs[i][1], sizeof(CUuuid)) != 0)
			return CUDA_ERROR_NOT_SUPPORTED;
	return real(pid, args);
}
