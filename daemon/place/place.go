// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

// Package place decides which GPUs a container gets. It is arithmetic on what
// the node has and has promised; it keeps nothing and touches nothing.
package place

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"

	v1 "github.com/gpushare/gpushare/daemon/api/v1"
	"github.com/gpushare/gpushare/limiter"
	"github.com/gpushare/gpushare/limiter/region"
)

// Auto is the word for "any GPU".
const Auto = "auto"

// GPU is a GPU of the node and what is promised of it.
type GPU struct {
	Index       int
	UUID        string
	Name        string
	UsableBytes uint64
	// ContextBytes is what one CUDA context takes; Measured is false if that is an
	// assumption.
	ContextBytes uint64
	Measured     bool
	Promised     limiter.Promised
	// Err says why the GPU takes nobody, nil if it does.
	Err error
}

// Grant is one GPU of a placement and the limit on it.
type Grant struct {
	GPU   GPU
	Limit limiter.Limit
}

// Choose places a request: on the GPUs that the selector names, or on the
// fullest one that has room. What it means is found out for each GPU. asked is
// the request as its author wrote it. The error is always a *v1.Error.
func Choose(gpus []GPU, selector string, want limiter.Request, asked limiter.Words) ([]Grant, error) {
	if len(gpus) == 0 {
		return nil, v1.Errorf(http.StatusServiceUnavailable, v1.CodeNoGPU, "no NVIDIA GPU is usable on this node")
	}
	if selector == "" || strings.EqualFold(selector, Auto) {
		g, err := best(gpus, want, asked)
		if err != nil {
			return nil, err
		}
		return []Grant{g}, nil
	}
	chosen, err := Select(gpus, selector)
	if err != nil {
		return nil, err
	}
	grants := make([]Grant, 0, len(chosen))
	for _, g := range chosen {
		grant, err := on(g, want, asked)
		if err != nil {
			return nil, err
		}
		grants = append(grants, grant)
	}
	return grants, nil
}

// Select returns the GPUs that a selector names: indices or UUIDs, joined by
// commas, each once.
func Select(gpus []GPU, selector string) ([]GPU, error) {
	words := strings.Split(selector, ",")
	if len(words) > region.MaxGPUs {
		return nil, v1.Errorf(http.StatusBadRequest, v1.CodeRequest, "gpu: %d GPUs asked for, a container can hold %d; name fewer", len(words), region.MaxGPUs)
	}
	var out []GPU
	seen := make(map[string]bool)
	for _, w := range words {
		g, err := find(gpus, w)
		if err != nil {
			return nil, err
		}
		if seen[g.UUID] {
			return nil, v1.Errorf(http.StatusBadRequest, v1.CodeRequest, "gpu: GPU %d is named twice; name it once", g.Index)
		}
		seen[g.UUID] = true
		out = append(out, g)
	}
	return out, nil
}

func find(gpus []GPU, word string) (GPU, error) {
	index, notIndex := strconv.Atoi(word)
	plain := notIndex == nil && strconv.Itoa(index) == word
	isUUID := len(word) == 40 && strings.HasPrefix(strings.ToUpper(word), "GPU-")
	for _, g := range gpus {
		if plain && g.Index == index || isUUID && strings.EqualFold(g.UUID, word) {
			return g, nil
		}
	}
	if !plain && !isUUID || index < 0 {
		return GPU{}, v1.Errorf(http.StatusBadRequest, v1.CodeRequest, "gpu %.60q: neither auto, an index nor a UUID; write %s", word, choices(gpus))
	}
	return GPU{}, v1.Errorf(http.StatusNotFound, v1.CodeGPUUnknown, "gpu %.60q: this node has no such GPU; write %s", word, choices(gpus))
}

func choices(gpus []GPU) string {
	if len(gpus) == 1 {
		return fmt.Sprintf("auto, %d or %s", gpus[0].Index, gpus[0].UUID)
	}
	return fmt.Sprintf("auto, %d to %d or a UUID", gpus[0].Index, gpus[len(gpus)-1].Index)
}

// best returns the fullest GPU that has room: whole ones stay free for those who
// need them.
func best(gpus []GPU, want limiter.Request, asked limiter.Words) (Grant, error) {
	var found *Grant
	var never error // why the request will never fit on a GPU
	unfit, usable := 0, 0
	for _, g := range gpus {
		if g.Err != nil {
			continue
		}
		usable++
		limit, err := means(g, want, asked)
		if err != nil {
			if unfit++; never == nil {
				never = err
			}
			continue
		}
		if capacity(g).Admit(g.Promised, limit) != nil {
			continue
		}
		if found == nil || g.Promised.Less(found.GPU.Promised) {
			found = &Grant{GPU: g, Limit: limit}
		}
	}
	switch {
	case found != nil:
		return *found, nil
	case usable == 0:
		return Grant{}, v1.Errorf(http.StatusServiceUnavailable, v1.CodeNoGPU, "no NVIDIA GPU is usable on this node: %v", gpus[0].Err)
	case unfit == usable:
		return Grant{}, never
	}
	return Grant{}, noFit(gpus, want)
}

// on places a request on that GPU.
func on(g GPU, want limiter.Request, asked limiter.Words) (Grant, error) {
	if g.Err != nil {
		return Grant{}, v1.Errorf(http.StatusServiceUnavailable, v1.CodeNoGPU, "GPU %d is not usable: %w", g.Index, g.Err)
	}
	limit, err := means(g, want, asked)
	if err != nil {
		return Grant{}, err
	}
	if err := capacity(g).Admit(g.Promised, limit); err != nil {
		return Grant{}, noFit([]GPU{g}, want)
	}
	return Grant{GPU: g, Limit: limit}, nil
}

// means is what a request comes to on a GPU, whoever else is there.
func means(g GPU, want limiter.Request, asked limiter.Words) (limiter.Limit, error) {
	limit, err := want.On(g.UsableBytes)
	if err != nil {
		return limiter.Limit{}, Refuse(g, err)
	}
	if limit.MemoryBytes < g.ContextBytes {
		return limiter.Limit{}, tooSmall(g, asked)
	}
	return limit, nil
}

// Resize checks new limits against what a GPU has promised to others, which
// must not contain the container's old ones. A limit that is not raised is never
// refused for want of room.
func Resize(g GPU, old, want limiter.Limit, asked limiter.Words) error {
	if want.MemoryBytes < old.MemoryBytes && want.MemoryBytes < g.ContextBytes {
		return tooSmall(g, asked)
	}
	check := want
	if want.MemoryBytes <= old.MemoryBytes {
		check.MemoryBytes = 0
	}
	if want.ComputeMilli <= old.ComputeMilli {
		check.ComputeMilli = 0
	}
	err := capacity(g).Admit(g.Promised, check)
	if err == nil {
		return nil
	}
	return v1.Errorf(http.StatusConflict, v1.CodeNoFit, "GPU %d has no room for it: %w. Who holds what: gpushare ps", g.Index, err)
}

func capacity(g GPU) limiter.Capacity { return limiter.Capacity{UsableBytes: g.UsableBytes} }

// Free is what a GPU has left to promise.
func Free(g GPU) (bytes uint64, milli uint32) {
	if g.Promised.MemoryBytes < g.UsableBytes {
		bytes = g.UsableBytes - g.Promised.MemoryBytes
	}
	if g.Promised.ComputeMilli < region.MilliGPU {
		milli = region.MilliGPU - g.Promised.ComputeMilli
	}
	return bytes, milli
}
