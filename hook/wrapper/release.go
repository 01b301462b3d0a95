// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

package wrapper

import (
	"context"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/gpushare/gpushare/hook"
	"github.com/gpushare/gpushare/hook/create"
	"github.com/gpushare/gpushare/internal/config"
)

// releaseTimeout bounds what a delete may cost.
const releaseTimeout = 50 * time.Millisecond

// maxState bounds what is read of a runtime's state file, in bytes.
const maxState = 16 << 20

// release tells the daemon that a container of ours is being deleted. It is a hint,
// given only once its first process is gone, or is about to be killed: then the daemon
// refuses and looks closely. Without it the daemon finds out by itself. So nothing
// here can fail.
func release(c *config.Config, inv *invocation, low string, daemon create.Claims) {
	id := inv.ids[0]
	if !create.ValidID(id) {
		return
	}
	var stat unix.Stat_t
	if unix.Lstat(filepath.Join(c.ContainersDir(), id), &stat) != nil {
		return
	}
	state, err := readState(filepath.Join(runtimeRoot(inv, low), id, "state.json"))
	if err == nil && (!state.ours() || state.alive() && !inv.force) {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), releaseTimeout)
	defer cancel()
	_ = daemon.Release(ctx, id)
}

// state is the part of runc's state.json that tells whose a container is and
// whether it lives.
type state struct {
	PID    int    `json:"init_process_pid"`
	Start  uint64 `json:"init_process_start"`
	Config struct {
		Labels []string `json:"labels"`
	} `json:"config"`
}

func readState(path string) (*state, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	var s state
	return &s, json.NewDecoder(io.LimitReader(f, maxState)).Decode(&s)
}

// ours says whether the spec that the container was made of bore our mark:
// another runtime root may have a container of the same id. runc keeps
// annotations among the labels, as key=value.
func (s *state) ours() bool {
	for _, label := range s.Config.Labels {
		if strings.HasPrefix(label, hook.ClaimAnnotation+"=") {
			return true
		}
	}
	return false
}

// alive says whether the container's first process still runs.
func (s *state) alive() bool {
	if s.PID <= 0 {
		return false
	}
	data, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(s.PID), "stat"))
	if err != nil {
		return false
	}
	// The name, in parentheses, may itself contain spaces and parentheses.
	_, rest, ok := cutLast(string(data), ") ")
	fields := strings.Fields(rest)
	if !ok || len(fields) < 20 {
		return false
	}
	start, err := strconv.ParseUint(fields[19], 10, 64)
	return err == nil && start == s.Start && fields[0] != "Z" && fields[0] != "X"
}

func cutLast(s, sep string) (before, after string, found bool) {
	if i := strings.LastIndex(s, sep); i >= 0 {
		return s[:i], s[i+len(sep):], true
	}
	return s, "", false
}
