// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/gpushare/gpushare/internal/config"
)

const (
	// probeTimeout bounds the whole of a probe.
	probeTimeout = 60 * time.Second
	// cleanTimeout bounds taking away what a probe made, also after an interrupt.
	cleanTimeout = 20 * time.Second
	// probeLabel and probeName mark what a probe makes, so that what a killed one
	// left is found by the next.
	probeLabel = "gpushare.probe"
	probeName  = "gpushare-probe"
)

// probeProgram is the program that the probe's container runs.
func probeProgram(o Options) (string, error) {
	path := filepath.Join(o.LibDir, "probe")
	if _, err := os.Stat(path); err != nil {
		return "", fmt.Errorf("the probe program is missing: %w; use a gpushare that make install has put in its place", err)
	}
	return path, config.CheckRootOwned(path)
}

// unique is a name that nothing else has.
func unique() string {
	b := make([]byte, 6)
	_, _ = rand.Read(b) // never fails
	return probeName + "-" + hex.EncodeToString(b)
}

// said judges what the probe program printed and how it ended.
func said(output string, status int) error {
	line := strings.TrimSpace(output)
	if status == 0 && strings.HasPrefix(line, "denied at the limit") {
		return nil
	}
	if line == "" {
		line = "nothing"
	}
	return fmt.Errorf("the probe container was not held to its limit; it says (status %d): %.300s", status, line)
}

// probe runs a container through docker that must be denied at limit bytes. Its
// image is made of this host's own files and removed afterwards.
func (d *docker) probe(ctx context.Context, limit uint64) (err error) {
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	program, err := probeProgram(d.opts)
	if err != nil {
		return err
	}
	root, err := probeRoot(program)
	if err != nil {
		return err
	}
	var archive bytes.Buffer
	if err := writeTar(&archive, root); err != nil {
		return err
	}
	name := unique()
	defer func() {
		clean, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanTimeout)
		defer cancel()
		err = errors.Join(err, d.sweep(clean))
	}()
	if err := d.sweep(ctx); err != nil {
		return err
	}
	// What is being made is waited for, also after a Ctrl-C: dockerd would go on making
	// it, and it could not be swept away before it is there.
	making, done := context.WithTimeout(context.WithoutCancel(ctx), cleanTimeout)
	defer done()
	if _, err := d.api.raw(making, http.MethodPost, "/images/create", url.Values{"fromSrc": {"-"}, "repo": {probeName}, "tag": {name}}, &archive); err != nil {
		return fmt.Errorf("make the probe's image: %w", err)
	}
	create := map[string]any{
		"Image":           probeName + ":" + name,
		"Cmd":             []string{probePath, fmt.Sprint(limit)},
		"Env":             []string{fmt.Sprintf("GPUSHARE_MEMORY=%dB", limit)},
		"Labels":          map[string]string{probeLabel: name},
		"NetworkDisabled": true,
		"HostConfig":      map[string]any{"Runtime": Handler, "NetworkMode": "none"},
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	var made struct {
		ID string `json:"Id"`
	}
	if err := d.api.call(making, http.MethodPost, "/containers/create", url.Values{"name": {name}}, create, &made); err != nil {
		return fmt.Errorf("create the probe container: %w", err)
	}
	at := "/containers/" + made.ID
	if err := d.api.call(ctx, http.MethodPost, at+"/start", nil, nil, nil); err != nil {
		return fmt.Errorf("start the probe container: %w", err)
	}
	var ended struct{ StatusCode int }
	if err := d.api.call(ctx, http.MethodPost, at+"/wait", nil, nil, &ended); err != nil {
		return fmt.Errorf("wait for the probe container: %w", err)
	}
	logs, err := d.api.raw(ctx, http.MethodGet, at+"/logs", url.Values{"stdout": {"1"}, "stderr": {"1"}}, nil)
	if err != nil {
		return fmt.Errorf("read what the probe container says: %w", err)
	}
	return said(unframe(logs), ended.StatusCode)
}

// unframe takes docker's eight-byte heads out of a container's output.
func unframe(data []byte) string {
	var out strings.Builder
	for len(data) >= 8 {
		n := min(int(binary.BigEndian.Uint32(data[4:8])), len(data)-8)
		out.Write(data[8 : 8+n])
		data = data[8+n:]
	}
	return out.String()
}

// sweep removes the containers and images of probes, this one's and killed ones'.
func (d *docker) sweep(ctx context.Context) error {
	var containers []struct {
		ID string `json:"Id"`
	}
	filter := fmt.Sprintf(`{"label":[%q]}`, probeLabel)
	if err := d.api.call(ctx, http.MethodGet, "/containers/json", url.Values{"all": {"1"}, "filters": {filter}}, nil, &containers); err != nil {
		return fmt.Errorf("look for probe containers: %w", err)
	}
	for _, c := range containers {
		if err := d.remove(ctx, "/containers/"+c.ID, url.Values{"force": {"1"}, "v": {"1"}}); err != nil {
			return fmt.Errorf("remove the probe container: %w", err)
		}
	}
	var images []struct {
		ID string `json:"Id"`
	}
	filter = fmt.Sprintf(`{"reference":[%q]}`, probeName)
	if err := d.api.call(ctx, http.MethodGet, "/images/json", url.Values{"filters": {filter}}, nil, &images); err != nil {
		return fmt.Errorf("look for probe images: %w", err)
	}
	for _, i := range images {
		if err := d.remove(ctx, "/images/"+i.ID, url.Values{"force": {"1"}}); err != nil {
			return fmt.Errorf("remove the probe's image: %w", err)
		}
	}
	return nil
}

func (d *docker) remove(ctx context.Context, path string, query url.Values) error {
	err := d.api.call(ctx, http.MethodDelete, path, query, nil, nil)
	var refused *dockerError
	if errors.As(err, &refused) && refused.status == http.StatusNotFound {
		return nil
	}
	return err
}

// probe runs a container through containerd and our shim that must be denied at limit
// bytes, with ctr, which is there wherever containerd is.
func (c *containerd) probe(ctx context.Context, limit uint64) (err error) {
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	if c.ctr == "" {
		return errors.New("there is no ctr command to start a probe container with")
	}
	if err := config.CheckRootOwned(c.ctr); err != nil {
		return fmt.Errorf("%s would be run as root: %w", c.ctr, err)
	}
	program, err := probeProgram(c.opts)
	if err != nil {
		return err
	}
	root, err := probeRoot(program)
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", probeName+"-")
	if err != nil {
		return fmt.Errorf("make the probe's root file system: %w", err)
	}
	defer os.RemoveAll(dir)
	rootfs := filepath.Join(dir, "rootfs")
	if err := os.Mkdir(rootfs, 0o755); err != nil {
		return fmt.Errorf("make the probe's root file system: %w", err)
	}
	if err := writeDir(rootfs, root); err != nil {
		return err
	}
	name := unique()
	defer func() {
		clean, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanTimeout)
		defer cancel()
		err = errors.Join(err, c.sweep(clean, name))
	}()
	out, err := c.ctl(ctx, "run", "--rm", "--rootfs", "--runtime", c.shim, "--fifo-dir", filepath.Join(dir, "fifo"), "--cgroup", "/"+name, "--env", fmt.Sprintf("GPUSHARE_MEMORY=%dB", limit),
		rootfs, name, probePath, fmt.Sprint(limit))
	var failed *exec.ExitError
	if err != nil && !errors.As(err, &failed) {
		return fmt.Errorf("run the probe container: %w", err)
	}
	status := 0
	if failed != nil {
		status = failed.ExitCode()
	}
	return said(out, status)
}

// sweep removes a probe's container and its namespace. What ctr had begun when it was
// ended may still be on its way, so it is looked for until it is gone.
func (c *containerd) sweep(ctx context.Context, name string) error {
	for {
		// What is gone already, as it is after a probe that went well, says so.
		_, _ = c.ctl(ctx, "tasks", "rm", "--force", name)
		_, _ = c.ctl(ctx, "containers", "rm", name)
		_, err := c.ctl(ctx, "namespaces", "rm", probeName)
		left, listErr := c.ctl(ctx, "namespaces", "ls", "--quiet")
		if listErr == nil && !slices.Contains(strings.Fields(left), probeName) {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("remove the probe container: %w", errors.Join(err, listErr, ctx.Err()))
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// ctl runs ctr in the probe's namespace and returns its output. A container that ends
// badly is no error of ctr's own, but its words may be on either stream.
func (c *containerd) ctl(ctx context.Context, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, c.ctr, append([]string{"--address", c.opts.Socket, "--namespace", probeName}, args...)...)
	cmd.Env = []string{"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"}
	cmd.WaitDelay = time.Second
	var out, said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &said
	err := cmd.Run()
	if ctx.Err() != nil {
		err = ctx.Err()
	}
	if err != nil && out.Len() == 0 {
		return lastLine(said.String()), err
	}
	return out.String(), err
}
