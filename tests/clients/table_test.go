// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

//go:build clients

package clients

import "github.com/gpushare/gpushare/tests/node"

// client is a script of py/ around published packages.
type client struct {
	script string
	// run tells runs of one script apart; empty where there is one.
	run      string
	required bool
	// slack is how many bytes below its limit the client's own error may come.
	slack uint64
	// says is what the client itself prints, but for empty lines.
	says string
	// packages is what wheels.sh puts together; empty: "clients".
	packages string
	// compiles needs a C compiler when it runs.
	compiles bool
	// tool is a program, or a directory of them, that the script finds by the variable
	// of its name: nvidia-smi of driver 535 from Debian's non-free, or what nvcc built.
	tool string
	// libraries is a directory of the packages that is searched for libraries.
	libraries string
	env       []string
}

func (c client) name() string {
	if c.run == "" {
		return c.script
	}
	return c.script + "," + c.run
}

func (c client) wheels() string {
	if c.packages == "" {
		return "clients"
	}
	return c.packages
}

// machine is a node and what runs on it.
type machine struct {
	name string
	opts node.Options
	// card is a real one's ways: NVML calls more total than programs can have, so that bare
	// not all figures of the size are one, and memory is taken unannounced.
	card    bool
	clients []client
}

var machines = []machine{
	// With the hook that refreshes ld.so.cache, which Triton reads.
	{name: "one GPU", opts: node.Options{Memory: "80GiB", CDIHooks: true}, clients: []client{
		// Its own pieces are that large.
		{script: "nvml_view", required: true, slack: 256 * mib},
		{script: "numba_fill", required: true, slack: mib},
		{script: "tinygrad_fill", required: true, slack: mib},
		// A pool grows in steps.
		{script: "cuda_core_fill", slack: 32 * mib},
		{script: "taichi_fill", slack: mib, says: "[Taichi] Starting on arch=cuda"},
		// Holds a little and looks.
		{script: "tools_view", slack: capacity},
		// Passes and fails as it does without us.
		{script: "numba_tests", slack: capacity},
		{script: "nvcc_fill", packages: nvcc, tool: nvcc, slack: 64 * mib},
		// Runs up to NVIDIA's check of the driver, which is not answered.
		{script: "cudart_refuses", slack: capacity},
		// Its caching allocator takes large pieces.
		{script: "torch_fill", packages: torch, slack: 32 * mib},
		{script: "torch_fill", run: "expandable", packages: torch, slack: 32 * mib,
			// The second variable spares its own remarks, here on every mapping that was refused.
			env: []string{"PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True", "TORCH_CPP_LOG_LEVEL=ERROR"}},
		{script: "torch_fill", run: "async", packages: torch, slack: 64 * mib,
			env: []string{"PYTORCH_CUDA_ALLOC_CONF=backend:cudaMallocAsync", "TORCH_CPP_LOG_LEVEL=ERROR"}},
		{script: "torch_ipc", packages: torch, slack: capacity},
		// The variable spares a remark on a default that will change.
		{script: "torch_triton", packages: torch, compiles: true, slack: capacity, env: []string{"TRITON_DEFAULT_FP_FUSION=1"}},
		{script: "torch_fill", run: "cu102", packages: torch102, slack: 32 * mib},
		{script: "cupy_fill", packages: torch102, libraries: "cuda10", slack: 2 * mib},
	}},
	// nvidia-smi wants the driver that it came with.
	{name: "driver 535", opts: node.Options{Memory: "80GiB", Simgpu: []string{"--driver", "535.261.03"}}, clients: []client{
		{script: "nvidia_smi", slack: capacity, tool: "nvidia-smi"},
		// The same figures in its text as everywhere else.
		{script: "torch_fill", run: "cu102 beside nvidia-smi", packages: torch102, slack: 32 * mib, tool: "nvidia-smi"},
		{script: "cupy_fill", run: "beside nvidia-smi", packages: torch102, libraries: "cuda10", slack: 2 * mib, tool: "nvidia-smi"},
	}},
	// Rounds as an H100 does.
	{name: "an H100", card: true, opts: node.Options{Profile: "h100"}, clients: []client{
		{script: "nvml_view", run: "h100", slack: 256 * mib},
		{script: "numba_fill", run: "h100", slack: 2 * mib},
		{script: "torch_fill", run: "h100", packages: torch, slack: 34 * mib},
		{script: "torch_fill", run: "h100 expandable", packages: torch, slack: 34 * mib,
			env: []string{"PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True", "TORCH_CPP_LOG_LEVEL=ERROR"}},
		{script: "torch_fill", run: "h100 async", packages: torch, slack: 64 * mib,
			env: []string{"PYTORCH_CUDA_ALLOC_CONF=backend:cudaMallocAsync", "TORCH_CPP_LOG_LEVEL=ERROR"}},
		{script: "cupy_fill", run: "h100", packages: torch102, libraries: "cuda10", slack: 4 * mib},
	}},
	{name: "two GPUs", opts: node.Options{GPUs: 2, Memory: "80GiB"}, clients: []client{
		{script: "torch_two", packages: torch, slack: 2 * capacity},
		{script: "torch_two", run: "cu102", packages: torch102, slack: 2 * capacity},
	}},
}

const (
	nvcc     = "nvcc"
	torch    = "torch"
	torch102 = "torch-cu102"
)
