// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

// Contexts for video output.

#include "fake.h"

CUresult cuVDPAUCtxCreate(CUcontext *ctx, unsigned int flags, CUdevice dev, VdpDevice vdp, VdpGetProcAddress *get)
{
	(void)vdp;
	(void)get;
	return cuCtxCreate_v2(ctx, flags, dev);
}

CUresult cuVDPAUCtxCreate_v2(CUcontext *ctx, unsigned int flags, CUdevice dev, VdpDevice vdp, VdpGetProcAddress *get)
{
	return cuVDPAUCtxCreate(ctx, flags, dev, vdp, get);
}
