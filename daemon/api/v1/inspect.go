// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

package v1

import "time"

// Names of limits in Details.Set.
const (
	LimitMemory     = "memory"
	LimitCompute    = "compute"
	LimitComputeMax = "compute_max"
	LimitProfile    = "profile"
	LimitHostMemory = "host_memory"
)

// Details is what is known of one container beyond what a list of all shows.
type Details struct {
	// Asked is what the container asked for when it was created; Container.Request
	// has the words that hold now.
	Asked Request `json:"asked"`
	// Set holds the words that `gpushare set` put in the place of those, by the
	// name of the limit.
	Set         map[string]SetWord `json:"set,omitempty"`
	Pod         *Pod               `json:"pod,omitempty"`
	Bundle      string             `json:"bundle,omitempty"`
	RuntimeRoot string             `json:"runtime_root,omitempty"`
	// Cgroup is the control group as /proc/PID/cgroup writes it, empty while
	// unknown.
	Cgroup string `json:"cgroup,omitempty"`
	// Directory is the host path of what the container has at /run/gpushare.
	Directory string `json:"directory"`
	// ClaimantPID is the process that claimed, which became the low-level runtime.
	ClaimantPID int `json:"claimant_pid,omitempty"`
	// Libraries are the versions of our libraries that its processes use.
	Libraries []Library `json:"libraries"`
	// Processes are some of its processes, those that use a GPU first;
	// ProcessesTotal is how many there are.
	Processes      []Process `json:"processes"`
	ProcessesTotal int       `json:"processes_total"`
	// Events are its last ones, oldest first.
	Events []Event `json:"events"`
}

// SetWord is a word that `gpushare set` wrote, and when.
type SetWord struct {
	Word string    `json:"word"`
	Time time.Time `json:"time"`
}

// Pod is what Kubernetes calls a container.
type Pod struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	Container string `json:"container"`
}

// Library is a versioned directory of our libraries.
type Library struct {
	// Directory is its path on the host; empty: what is mapped is in none that is
	// there, so it was removed, or is not ours.
	Directory string `json:"directory,omitempty"`
	// Current says that containers which start now get it.
	Current   bool `json:"current"`
	Processes int  `json:"processes"`
}

// Process is a process of a container.
type Process struct {
	PID int `json:"pid"` // on the host
	// ContainerPID is what the process itself calls its PID.
	ContainerPID int `json:"container_pid,omitempty"`
	// Command is the name that the process gives itself.
	Command string `json:"command"`
	// Slot is the place in the container's ledger, absent for a process that uses
	// no GPU; MemoryBytes is what it holds by the ledger, all GPUs together.
	Slot        *int   `json:"slot,omitempty"`
	MemoryBytes uint64 `json:"memory_bytes"`
	// Library is the directory of our library that the process has mapped, empty
	// if it has none.
	Library string `json:"library,omitempty"`
}
