// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

package v1

import "time"

// Sources of a request.
const (
	SourceEnv        = "env"
	SourceAnnotation = "annotation"
	SourceDefault    = "default"
	// SourceBoth is a request of which some words came by each of the first two.
	SourceBoth = "env+annotation"
)

// Reasons why a container could undo its limits. The node's administrator allows
// each of them or it is refused.
const (
	ExposedPrivileged = "privileged"
	ExposedPID        = "host PID namespace"
	ExposedIPC        = "host IPC namespace"
)

// States of enforcement.
const (
	StateEnforced = "enforced"
	StateDegraded = "degraded"
	StateOff      = "off"
)

// Phases of a container's life as the daemon sees it.
const (
	PhasePending = "pending" // claimed, no process of the container yet
	PhaseRunning = "running"
)

// Request holds the words of a request exactly as the user wrote them.
// An empty word was not given.
type Request struct {
	Memory     string `json:"memory,omitempty"`
	Compute    string `json:"compute,omitempty"`
	ComputeMax string `json:"compute_max,omitempty"`
	// Profile stands in the place of the three words above: "1of2", "slice-4g". After
	// a change by ResizeRequest the words above go before it.
	Profile string `json:"profile,omitempty"`
	// HostMemory is how much of the host's memory may hold what does not fit into
	// the limit, all GPUs and processes together. No word is none.
	HostMemory string `json:"host_memory,omitempty"`
	// GPU is "auto" (or empty), an index, a UUID, or several of those joined by
	// commas. The limits then hold on each of them.
	GPU string `json:"gpu,omitempty"`
}

// ClaimRequest asks for a place for a container that is about to be created.
type ClaimRequest struct {
	// ID is the container's id.
	ID string `json:"id"`
	// Bundle is the absolute path of the OCI bundle.
	Bundle string `json:"bundle"`
	// RuntimeRoot is the directory in which the low-level runtime keeps
	// <id>/state.json.
	RuntimeRoot string `json:"runtime_root"`
	// PID is the caller's own process, which becomes the low-level runtime. While
	// it lives the claim is pending.
	PID int `json:"pid"`
	// MountLabel is the SELinux label of the container's mounts; often empty.
	MountLabel string  `json:"mount_label,omitempty"`
	Request    Request `json:"request"`
	// Source is SourceEnv, SourceAnnotation, SourceBoth or SourceDefault.
	Source string `json:"source"`
	// Exposed are the ways by which the container could undo its limits, of the
	// constants above. Each must be allowed by the node's config.toml.
	Exposed []string `json:"exposed,omitempty"`
}

// GrantedGPU is a GPU of a claim.
type GrantedGPU struct {
	Index int    `json:"index"`
	UUID  string `json:"uuid"`
	Name  string `json:"name"`
	// CDIDevice is the name to look for in the node's CDI spec: the UUID. A spec
	// that names devices by index only has Index.
	CDIDevice string `json:"cdi_device"`
	// MemoryBytes is the limit on this GPU.
	MemoryBytes uint64 `json:"memory_bytes"`
}

// Claim is a granted claim. The directory is complete when it is answered.
type Claim struct {
	APIVersion string `json:"apiVersion"`
	ID         string `json:"id"`
	// Directory is the host path to bind at /run/gpushare.
	Directory string       `json:"directory"`
	GPUs      []GrantedGPU `json:"gpus"`
	// MemoryBytes is the limit on the first GPU.
	MemoryBytes     uint64 `json:"memory_bytes"`
	ComputeMilli    uint32 `json:"compute_milli"`
	ComputeMaxMilli uint32 `json:"compute_max_milli"`
	HostMemoryBytes uint64 `json:"host_memory_bytes,omitempty"`
	DriverVersion   string `json:"driver_version,omitempty"`
}

// ContainerGPU is what a container may use and uses on one GPU.
type ContainerGPU struct {
	Index int    `json:"index"`
	UUID  string `json:"uuid"`
	Name  string `json:"name"`

	MemoryLimitBytes uint64 `json:"memory_limit_bytes"`
	// MemoryUsedBytes is what is charged: the container's own account, what the driver
	// took beyond it, and what is charged in advance of the driver's figure, or that
	// figure if it is larger; the limit at most. OverrunBytes is what exceeds the limit.
	MemoryUsedBytes uint64 `json:"memory_used_bytes"`
	OverrunBytes    uint64 `json:"overrun_bytes"`
	// MemoryLedgerBytes is the container's own account: what its calls announced.
	MemoryLedgerBytes uint64 `json:"memory_ledger_bytes"`
	// MemoryGrowthBytes is what the driver took beyond that: code, heaps, internals.
	MemoryGrowthBytes uint64 `json:"memory_growth_bytes"`
	// MemoryGuessedBytes is what is charged in advance of the driver's figure.
	MemoryGuessedBytes uint64 `json:"memory_guessed_bytes"`
	// MemoryDriverBytes is the driver's figure; absent where the driver has none.
	MemoryDriverBytes *uint64 `json:"memory_driver_bytes,omitempty"`
	MemoryPeakBytes   uint64  `json:"memory_peak_bytes"`

	ComputeMilli    uint32 `json:"compute_milli"`
	ComputeMaxMilli uint32 `json:"compute_max_milli"`
	// ComputeUsedMilli is the share charged over the last seconds.
	ComputeUsedMilli uint32 `json:"compute_used_milli"`
	// ComputeDriverMilli is the share by the driver's own coarse sampling; absent
	// where it has none. It counts time in which any kernel ran, whoever else's ran
	// beside it, and is shown for comparison only.
	ComputeDriverMilli *uint32 `json:"compute_driver_milli,omitempty"`
	// ThrottledMilli is the part of the last seconds in which at least that much
	// thread time was spent waiting for the share, capped at 1000.
	ThrottledMilli uint32 `json:"throttled_milli"`

	ChargedNs   uint64 `json:"charged_ns_total"`
	ThrottledNs uint64 `json:"throttled_ns_total"`
	Throttles   uint64 `json:"throttles_total"`
	Launches    uint64 `json:"launches_total"`
	Denied      uint64 `json:"denied_total"`
	DeniedBytes uint64 `json:"denied_bytes_total"`
	Unpriced    uint64 `json:"unpriced_total"`
}

// Container is a container that holds a claim.
type Container struct {
	APIVersion string `json:"apiVersion,omitempty"`
	ID         string `json:"id"`
	// Name is the engine's name for it, empty while unknown.
	Name   string `json:"name,omitempty"`
	Engine string `json:"engine,omitempty"`
	Phase  string `json:"phase"`
	// State is StateEnforced, StateDegraded or StateOff; Reason says why it is
	// not the first.
	State  string `json:"state"`
	Reason string `json:"reason,omitempty"`
	// PID is the container's first process, 0 while pending.
	PID       int `json:"pid,omitempty"`
	Processes int `json:"processes"` // live processes with a ledger slot
	// ExportTables counts private driver tables of unknown content that its
	// processes were given (cuGetExportTable); calls through them are not seen.
	ExportTables uint64  `json:"unknown_export_tables_total"`
	Source       string  `json:"source,omitempty"`
	Request      Request `json:"request"`
	// Exposed is what the claim said of it; each entry is part of Reason too.
	Exposed []string       `json:"exposed,omitempty"`
	Created time.Time      `json:"created"`
	GPUs    []ContainerGPU `json:"gpus"`
	// HostMemoryLimitBytes of the host's memory may hold device allocations that do
	// not fit; HostMemoryUsedBytes do, by the container's own account. Both are
	// absent for a container that was granted none and uses none.
	HostMemoryLimitBytes uint64 `json:"host_memory_limit_bytes,omitempty"`
	HostMemoryUsedBytes  uint64 `json:"host_memory_used_bytes,omitempty"`
	// Details are there when one container was asked for.
	Details *Details `json:"details,omitempty"`
}

// ContainerList is the answer of GET /v1/containers.
type ContainerList struct {
	APIVersion string `json:"apiVersion"`
	// Simulated is true if any GPU of the node is.
	Simulated  bool        `json:"simulated"`
	Containers []Container `json:"containers"`
}

// ResizeRequest changes the limits of a container; an empty word leaves that
// limit alone.
type ResizeRequest struct {
	Memory     string `json:"memory,omitempty"`
	Compute    string `json:"compute,omitempty"`
	ComputeMax string `json:"compute_max,omitempty"`
	// Profile stands in the place of the three; none of them may be given beside it.
	Profile    string `json:"profile,omitempty"`
	HostMemory string `json:"host_memory,omitempty"`
	// Soft allows a memory limit below what is in use: nothing is taken away, new
	// allocations are refused until the use has fallen below it.
	Soft bool `json:"soft,omitempty"`
	// CommandLine reads quantities as a command line means them (8g is 8 GiB).
	CommandLine bool `json:"command_line,omitempty"`
}

// Limits are the limits of a container on one GPU.
type Limits struct {
	GPUIndex        int    `json:"gpu_index"`
	MemoryBytes     uint64 `json:"memory_bytes"`
	ComputeMilli    uint32 `json:"compute_milli"`
	ComputeMaxMilli uint32 `json:"compute_max_milli"`
	// HostMemoryBytes is the container's, the same on each GPU.
	HostMemoryBytes uint64 `json:"host_memory_bytes,omitempty"`
}

// Resize is the answer to a ResizeRequest: the limits before and after, one
// entry for each GPU.
type Resize struct {
	APIVersion string   `json:"apiVersion"`
	ID         string   `json:"id"`
	Name       string   `json:"name,omitempty"`
	Old        []Limits `json:"old"`
	New        []Limits `json:"new"`
}

// GPU is a GPU of the node.
type GPU struct {
	Index     int    `json:"index"`
	UUID      string `json:"uuid"`
	Name      string `json:"name"`
	Simulated bool   `json:"simulated"`

	MemoryTotalBytes uint64 `json:"memory_total_bytes"`
	// MemoryUsableBytes is what limits may add up to.
	MemoryUsableBytes uint64 `json:"memory_usable_bytes"`
	// MemoryPromisedBytes is the sum of the limits given out.
	MemoryPromisedBytes uint64 `json:"memory_promised_bytes"`
	// MemoryUsedBytes is the driver's figure; absent where it has none.
	MemoryUsedBytes *uint64 `json:"memory_used_bytes,omitempty"`
	// ComputePromisedMilli is the sum of the guarantees given out.
	ComputePromisedMilli uint32 `json:"compute_promised_milli"`
	Containers           int    `json:"containers"`
	// ContextBytes is what one context costs; ContextMeasured is false if it is
	// the documented default.
	ContextBytes    uint64 `json:"context_bytes"`
	ContextMeasured bool   `json:"context_measured"`
	// What else is charged in advance, 0 where it costs nothing or is not known: a
	// further context of a process, the unit of allocations, a module whose code is
	// used, a byte of the stack limit, a node of an executable graph.
	NextContextBytes uint64 `json:"next_context_bytes,omitempty"`
	BlockBytes       uint64 `json:"block_bytes,omitempty"`
	ModuleBytes      uint64 `json:"module_bytes,omitempty"`
	StackThreads     uint64 `json:"stack_threads,omitempty"`
	GraphNodeBytes   uint32 `json:"graph_node_bytes,omitempty"`
	// CostsUnknown says which of these could not be measured, and why: they are
	// charged when the driver's figure shows them.
	CostsUnknown []string `json:"costs_unknown,omitempty"`
	// Reason says why the GPU cannot be used; empty if it can.
	Reason string `json:"reason,omitempty"`
}

// Daemon is the answer of GET /v1/daemon.
type Daemon struct {
	APIVersion    string    `json:"apiVersion"`
	Version       string    `json:"version"`
	PID           int       `json:"pid"`
	Started       time.Time `json:"started"`
	Socket        string    `json:"socket"`
	RunDir        string    `json:"run_dir"`
	DriverVersion string    `json:"driver_version,omitempty"`
	Simulated     bool      `json:"simulated"`
	GPUs          []GPU     `json:"gpus"`
	Containers    int       `json:"containers"`
	// HostMemoryBytes is how much of the host's memory config.toml lends to all
	// containers together, HostMemoryPromisedBytes what they were granted of it.
	HostMemoryBytes         uint64 `json:"host_memory_bytes,omitempty"`
	HostMemoryPromisedBytes uint64 `json:"host_memory_promised_bytes,omitempty"`
	// Reason says why no GPU is usable; empty if one is.
	Reason   string   `json:"reason,omitempty"`
	Warnings []string `json:"warnings,omitempty"`
}
