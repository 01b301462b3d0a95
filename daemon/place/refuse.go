// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

package place

import (
	"errors"
	"fmt"
	"net/http"
	"strings"

	v1 "github.com/gpushare/gpushare/daemon/api/v1"
	"github.com/gpushare/gpushare/limiter"
	"github.com/gpushare/gpushare/limiter/quantity"
)

// Refuse turns what limiter says of a request on a GPU into a refusal.
func Refuse(g GPU, err error) error {
	var above *limiter.CapError
	if errors.As(err, &above) {
		return v1.Errorf(http.StatusForbidden, v1.CodeCap,
			"%s of GPU %d: %w, set by this node's administrator in config.toml: ask for less, or have the cap raised",
			above.Field, g.Index, err)
	}
	return v1.Errorf(http.StatusConflict, v1.CodeNoFit, "no such share on GPU %d (%s): %w; write a smaller profile, or memory in bytes", g.Index, g.Name, err)
}

// mebi rounds bytes up to a limit that can be typed, in multiples of 64 MiB.
func mebi(bytes uint64) string {
	const step = 64 << 20
	return fmt.Sprintf("%dMi", (bytes+step-1)/step*64)
}

// down rounds bytes down to an amount that can be typed.
func down(bytes uint64) string {
	if bytes%(1<<30) == 0 {
		return fmt.Sprintf("%dGi", bytes>>30)
	}
	return fmt.Sprintf("%dMi", bytes>>20)
}

func tooSmall(g GPU, asked limiter.Words) error {
	what, least := fmt.Sprintf("memory %.60q", asked.Memory), mebi(g.ContextBytes+1)
	if asked.Profile != "" {
		what, least = fmt.Sprintf("profile %.60q", asked.Profile), least+" of memory instead"
	}
	takes := "takes"
	if !g.Measured {
		takes = "is taken to need"
	}
	return v1.Errorf(http.StatusConflict, v1.CodeMemTooSmall,
		"%s is too small on GPU %d: a CUDA context alone %s %s here (%s); write at least %s",
		what, g.Index, takes, quantity.FormatBytes(g.ContextBytes), g.Name, least)
}

// size is what is asked for, on the first GPU where it means something.
func size(gpus []GPU, want limiter.Request) string {
	for _, g := range gpus {
		limit, err := want.On(g.UsableBytes)
		if err != nil {
			continue
		}
		ask := quantity.FormatBytes(limit.MemoryBytes)
		if limit.ComputeMilli > 0 {
			ask += " and " + quantity.FormatShare(limit.ComputeMilli)
		}
		if !want.Profile.IsZero() {
			ask = fmt.Sprintf("profile %s (%s)", want.Profile, ask)
		}
		return ask
	}
	return "what is asked for"
}

// noFit says what each GPU has left and what would fit now.
func noFit(gpus []GPU, want limiter.Request) error {
	var left []string
	for _, g := range gpus {
		if g.Err != nil {
			left = append(left, fmt.Sprintf("GPU %d: not usable", g.Index))
			continue
		}
		bytes, milli := Free(g)
		left = append(left, fmt.Sprintf("GPU %d: %s, %s", g.Index, quantity.FormatBytes(bytes), quantity.FormatShare(milli)))
	}
	advice := "who holds what: gpushare ps"
	if fits := largest(gpus, want); fits != "" {
		advice = fmt.Sprintf("the largest that fits now is %s; %s", fits, advice)
	}
	ask := size(gpus, want)
	subject := "no GPU has"
	if len(gpus) == 1 {
		subject = fmt.Sprintf("GPU %d has not", gpus[0].Index)
	}
	return v1.Errorf(http.StatusConflict, v1.CodeNoFit, "%s %s to give: %s; %s", subject, ask, strings.Join(left, " · "), advice)
}

// largest is the most of what is asked for that one of the GPUs has left, in words
// that can be asked for; empty if none has anything. A GPU that has all of the
// compute share goes before one that has more memory.
func largest(gpus []GPU, want limiter.Request) string {
	best, bestMilli, whole := uint64(0), uint32(0), false
	asksCompute := false
	for _, g := range gpus {
		if g.Err != nil {
			continue
		}
		bytes, milli := Free(g)
		asked, err := want.On(g.UsableBytes)
		if err == nil {
			bytes = min(bytes, asked.MemoryBytes)
		}
		asksCompute = asksCompute || asked.ComputeMilli > 0
		milli = min(milli, asked.ComputeMilli)
		all := milli == asked.ComputeMilli
		if bytes < max(g.ContextBytes, 1<<20) || bytes>>20<<20 < g.ContextBytes {
			continue
		}
		if best == 0 || all && !whole || all == whole && bytes > best {
			best, bestMilli, whole = bytes, milli, all
		}
	}
	switch {
	case best == 0:
		return ""
	case !asksCompute:
		return "memory " + down(best)
	case bestMilli == 0:
		return "memory " + down(best) + " without compute"
	}
	return "memory " + down(best) + " with compute " + quantity.FormatShare(bestMilli)
}
