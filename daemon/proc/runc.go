// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

package proc

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// maxState bounds what is read of a runtime's state file in bytes: it contains
// the container's configuration.
const maxState = 32 << 20

// ErrNoState is returned when the runtime has no state of a container (yet, or
// any more).
var ErrNoState = errors.New("the runtime has no state of it")

// ErrBadID is returned for a container id that is not a plain file name.
var ErrBadID = errors.New("not a container id")

// ValidID reports whether id can be a container's id: what runc accepts, at most
// 128 bytes.
func ValidID(id string) error {
	if id == "" || len(id) > 128 || id == "." || id == ".." {
		return fmt.Errorf("%.140q: %w", id, ErrBadID)
	}
	for _, c := range []byte(id) {
		ok := c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || strings.IndexByte("_+-.", c) >= 0
		if !ok {
			return fmt.Errorf("%.140q: %w", id, ErrBadID)
		}
	}
	return nil
}

// RuntimeInit reads what the low-level runtime (runc, or crun where it says the
// same) knows of the container: its first process. It returns ErrNoState, or
// ErrGone if the state names a process that has ended.
func RuntimeInit(root, id string) (ID, error) {
	if err := ValidID(id); err != nil {
		return ID{}, err
	}
	raw, err := readState(root, id)
	if err != nil {
		return ID{}, err
	}
	init, err := parseState(raw)
	if err != nil {
		return ID{}, fmt.Errorf("read the runtime's state of %s: %w", id, err)
	}
	now, err := Lookup(init.PID)
	if err != nil {
		return ID{}, err
	}
	if init.Start != 0 && now.Start != init.Start {
		return ID{}, fmt.Errorf("read the runtime's state of %s: %w", id, ErrGone)
	}
	return now, nil
}

// readState reads runc's state.json, else crun's status.
func readState(root, id string) ([]byte, error) {
	for _, name := range []string{"state.json", "status"} {
		path := filepath.Join(root, id, name)
		f, err := os.OpenFile(path, os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
		if errors.Is(err, os.ErrNotExist) || errors.Is(err, unix.ENOTDIR) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("read the runtime's state: %w", err)
		}
		raw, err := io.ReadAll(io.LimitReader(f, maxState+1))
		f.Close()
		if err != nil {
			return nil, fmt.Errorf("read the runtime's state: %w", err)
		}
		if len(raw) > maxState {
			return nil, fmt.Errorf("read the runtime's state %s: more than %d bytes", path, maxState)
		}
		return raw, nil
	}
	return nil, ErrNoState
}

// parseState understands runc (init_process_pid, init_process_start) and crun
// (pid, process-start-time).
func parseState(raw []byte) (ID, error) {
	var s struct {
		RuncPID   json.Number `json:"init_process_pid"`
		RuncStart json.Number `json:"init_process_start"`
		CrunPID   json.Number `json:"pid"`
		CrunStart json.Number `json:"process-start-time"`
	}
	if err := json.Unmarshal(raw, &s); err != nil {
		return ID{}, err
	}
	pid, start := s.RuncPID, s.RuncStart
	if pid == "" {
		pid, start = s.CrunPID, s.CrunStart
	}
	n, err := strconv.ParseInt(pid.String(), 10, 32)
	if err != nil || n <= 0 {
		return ID{}, fmt.Errorf("no process in it: %w", ErrNoState)
	}
	out := ID{PID: int(n)}
	if start != "" {
		if out.Start, err = strconv.ParseUint(start.String(), 10, 64); err != nil {
			return ID{}, fmt.Errorf("start time: %w", err)
		}
	}
	return out, nil
}
