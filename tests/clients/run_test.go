// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

//go:build clients

package clients

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/gpushare/gpushare/tests/node"
)

// place is where the clients run.
type place struct {
	root, wheels, image string
	n                   *node.Node
	out                 string // for the scripts' results
	base                string // the host's view of the wheels, as a user's own packages
}

// outcome is what one run of a script came to.
type outcome struct {
	stdout, stderr string
	code           int
	high, left     uint64 // bytes by the simulator's account: most at once, after the end

	// What the script wrote.
	Client    string `json:"client"`
	Device    string `json:"device"`
	Held      uint64 `json:"held"`       // bytes when the error came
	FreeAfter uint64 `json:"free_after"` // bytes free when all was given back
	Error     string `json:"error"`
	// Outcomes of the client's own tests, by name.
	Outcomes map[string]string `json:"outcomes"`
}

// libraries of Debian's own packages.
const libraries = "usr/lib/x86_64-linux-gnu"

func (p *place) prepare(ctx context.Context) error {
	p.out, p.base = filepath.Join(p.n.Dir, "out"), filepath.Join(p.n.Dir, "base")
	site := filepath.Join(p.base, "lib/python3.11/site-packages")
	for _, d := range []string{p.out, filepath.Dir(site)} {
		if err := os.MkdirAll(d, 0o755); err != nil {
			return err
		}
	}
	if err := os.Symlink(p.wheels, site); err != nil {
		return err
	}
	return p.n.Import(ctx, p.image, "python")
}

func (p *place) script(name string) string {
	return filepath.Join(p.root, "tests/clients/py", name+".py")
}

// settings are those that both ways have in common: no file beside the scripts, and
// tinygrad knows only a system-wide NVRTC.
func settings(wheels, tmp string) []string {
	return []string{"HOME=" + tmp, "CACHEDB=" + tmp + "/tinygrad.db", "PYTHONDONTWRITEBYTECODE=1",
		"NVRTC_PATH=" + wheels + "/nvidia/cuda_nvrtc/lib/libnvrtc.so.12"}
}

// bare runs a script on the host, over the simulated driver alone. The interpreter is
// that of the container's image, whatever the host has, under its own loader.
func (p *place) bare(ctx context.Context, script string, limit uint64) (outcome, error) {
	var o outcome
	ctx, cancel := context.WithTimeout(ctx, 8*time.Minute)
	defer cancel()
	if r := p.n.Sim(ctx, "status", "--reset"); r.Err != nil {
		return o, r.Err
	}
	driver, libs := p.n.DriverLibraries(), filepath.Join(p.image, libraries)
	result := filepath.Join(p.out, script+".bare.json")
	cmd := exec.CommandContext(ctx, filepath.Join(libs, "ld-linux-x86-64.so.2"), "--library-path", libs+":"+driver,
		filepath.Join(p.image, "usr/bin/python3.11"), p.script(script), strconv.FormatUint(limit, 10), result)
	var stdout, stderr strings.Builder
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	cmd.Env = append(settings(p.wheels, p.out), "PATH=/usr/bin:/bin", "LD_LIBRARY_PATH="+driver,
		"PYTHONHOME="+filepath.Join(p.image, "usr"), "PYTHONUSERBASE="+p.base)
	err := cmd.Run()
	o.stdout, o.stderr, o.code = stdout.String(), stderr.String(), cmd.ProcessState.ExitCode()
	if err != nil {
		return o, fmt.Errorf("run %s: %w: %s%s", script, err, o.stdout, o.stderr)
	}
	if o.high, o.left, err = p.gpu(ctx); err != nil {
		return o, err
	}
	return o, o.read(result)
}

// gpu returns the simulator's account of its only GPU.
func (p *place) gpu(ctx context.Context) (high, left uint64, err error) {
	r := p.n.Sim(ctx, "status", "-o", "json")
	if r.Err != nil {
		return 0, 0, r.Err
	}
	var st struct {
		GPUs []struct {
			UsedBytes uint64 `json:"used_bytes"`
			HighBytes uint64 `json:"high_bytes"`
		} `json:"gpus"`
	}
	if err := json.Unmarshal([]byte(r.Stdout), &st); err != nil {
		return 0, 0, fmt.Errorf("read simgpu status: %w", err)
	}
	if len(st.GPUs) != 1 {
		return 0, 0, fmt.Errorf("read simgpu status: %d GPUs", len(st.GPUs))
	}
	return st.GPUs[0].HighBytes, st.GPUs[0].UsedBytes, nil
}

// limited runs a script in a container with a share.
func (p *place) limited(ctx context.Context, script string, limit uint64) (outcome, error) {
	var o outcome
	ctx, cancel := context.WithTimeout(ctx, 8*time.Minute)
	defer cancel()
	const wheels = "/usr/local/lib/python3.11/dist-packages"
	argv := []string{"create", "--name", script, "--runtime", node.Runtime, "--network", "none",
		"-e", fmt.Sprintf("GPUSHARE_MEMORY=%dB", limit), "-e", "GPUSHARE_COMPUTE=50%",
		"-v", p.wheels + ":" + wheels + ":ro", "-v", filepath.Dir(p.script(script)) + ":/clients:ro", "-v", p.out + ":/out"}
	for _, e := range settings(wheels, "/tmp") {
		argv = append(argv, "-e", e)
	}
	argv = append(argv, "python", "python3", "/clients/"+script+".py", strconv.FormatUint(limit, 10), "/out/"+script+".limited.json")
	r := p.n.Docker(ctx, argv...)
	if r.Err != nil {
		return o, r.Err
	}
	id := strings.TrimSpace(r.Stdout)
	defer p.n.Docker(context.Background(), "rm", "-f", id)
	r = p.n.Docker(ctx, "start", "-a", id)
	o.stdout, o.stderr, o.code = r.Stdout, r.Stderr, r.Code
	a, err := p.n.Account(ctx, id)
	o.high, o.left = a.HighWaterBytes, a.MemoryBytes
	if err = errors.Join(r.Err, err); err != nil {
		return o, err
	}
	return o, o.read(filepath.Join(p.out, script+".limited.json"))
}

func (o *outcome) read(file string) error {
	data, err := os.ReadFile(file)
	if err != nil {
		return fmt.Errorf("read a script's result: %w", err)
	}
	if err := json.Unmarshal(data, o); err != nil {
		return fmt.Errorf("read a script's result %s: %w", file, err)
	}
	return nil
}
