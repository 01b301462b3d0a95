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
	root string
	gpus int
	n    *node.Node
	out  string // for the scripts' results
	sets map[string]set
}

// outcome is what one run of a script came to.
type outcome struct {
	stdout, stderr string
	code           int
	high, left     uint64 // bytes by the simulator's account: most at once, after the end
	took           time.Duration

	// What the script wrote.
	Client    string `json:"client"`
	Device    string `json:"device"`
	Held      uint64 `json:"held"`       // bytes when the error came
	FreeAfter uint64 `json:"free_after"` // bytes free when all was given back
	Error     string `json:"error"`
	// Outcomes of the client's own tests, by name.
	Outcomes map[string]string `json:"outcomes"`
	// Missing is what the script did not find and could not do without.
	Missing string `json:"missing"`
	// Notes are what else was seen.
	Notes map[string]string `json:"notes"`
}

// newPlace fetches what the machine's clients need and brings the node up.
func newPlace(ctx context.Context, root string, m machine) (*place, error) {
	p := &place{root: root, gpus: max(m.opts.GPUs, 1), sets: map[string]set{}}
	var err error
	for _, c := range m.clients {
		if _, ok := p.sets[c.wheels()]; ok {
			continue
		}
		if p.sets[c.wheels()], err = newSet(ctx, root, c.wheels()); err != nil {
			return nil, err
		}
	}
	images := map[string]bool{}
	for _, c := range m.clients {
		images[c.image()] = true
	}
	for image := range images {
		if r := node.Run(ctx, nil, filepath.Join(root, "tests/setup/image.sh"), image, p.image(image)); r.Err != nil {
			return nil, r.Err
		}
	}
	m.opts.Root = root
	if p.n, err = node.Start(ctx, m.opts); err != nil {
		return nil, err
	}
	p.out = filepath.Join(p.n.Dir, "out")
	err = os.MkdirAll(p.out, 0o755)
	for image := range images {
		if err == nil {
			err = p.n.Import(ctx, p.image(image), image)
		}
	}
	if err != nil {
		return nil, errors.Join(err, p.n.Close())
	}
	return p, nil
}

// image is the name of the container image that a client runs in.
func (c client) image() string {
	if c.compiles {
		return "compiler"
	}
	return "python"
}

func (p *place) image(name string) string { return filepath.Join(p.root, ".cache/images", name) }

func (p *place) script(name string) string {
	return filepath.Join(p.root, "tests/clients/py", name+".py")
}

// settings are those that both ways have in common: no file beside the scripts, caches
// of their own, and tinygrad knows only a system-wide NVRTC.
func settings(c client, wheels, tmp, cudart string) []string {
	env := append([]string{"HOME=" + tmp, "CACHEDB=" + tmp + "/tinygrad.db", "PYTHONDONTWRITEBYTECODE=1",
		"TRITON_CACHE_DIR=" + tmp + "/" + c.name() + ".triton",
		"NVRTC_PATH=" + wheels + "/nvidia/cuda_nvrtc/lib/libnvrtc.so.12"}, c.env...)
	if c.packages == torch {
		// The packages' search path names their own directory first.
		env = append(env, "LD_PRELOAD="+cudart)
	}
	return env
}

// toolVariable is the variable with the path of a tool, such as NVIDIA_SMI.
func toolVariable(tool string) string {
	return strings.ToUpper(strings.ReplaceAll(tool, "-", "_"))
}

// standIn is the file of the stand-in CUDA runtime that PyTorch is run over.
const standIn = "build/tests/cudart/libcudart.so.13"

// bare runs a script on the host, over the simulated driver alone.
func (p *place) bare(ctx context.Context, c client, limit uint64) (outcome, error) {
	var o outcome
	ctx, cancel := context.WithTimeout(ctx, 8*time.Minute)
	defer cancel()
	s := p.sets[c.wheels()]
	if s.missing != "" {
		return o, missing{s.missing}
	}
	if r := p.n.Sim(ctx, "status", "--reset"); r.Err != nil {
		return o, r.Err
	}
	driver := p.n.DriverLibraries()
	result := filepath.Join(p.out, c.name()+".bare.json")
	if c.libraries != "" {
		driver += ":" + filepath.Join(s.wheels, c.libraries)
	}
	argv, env, err := s.bare(p.image(c.image()), driver, filepath.Join(p.n.Dir, "base-"+c.wheels()))
	if err != nil {
		return o, err
	}
	argv = append(argv, p.script(c.script), strconv.FormatUint(limit, 10), result)
	if c.tool != "" {
		dir, path, err := newTool(ctx, p.root, c.tool)
		if err != nil {
			return o, err
		}
		env = append(env, toolVariable(c.tool)+"="+filepath.Join(dir, path))
	}
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	var stdout, stderr strings.Builder
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	cmd.Env = append(append(settings(c, s.wheels, p.out, filepath.Join(p.root, standIn)), env...), "PATH=/usr/bin:/bin")
	err = cmd.Run()
	o.stdout, o.stderr, o.code = stdout.String(), stderr.String(), cmd.ProcessState.ExitCode()
	if err != nil {
		return o, fmt.Errorf("run %s: %w: %s%s", c.name(), err, o.stdout, o.stderr)
	}
	if o.high, o.left, err = p.gpu(ctx); err != nil {
		return o, err
	}
	return o, o.read(result)
}

// gpu returns the simulator's account of its GPUs, added up.
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
	if len(st.GPUs) != p.gpus {
		return 0, 0, fmt.Errorf("read simgpu status: %d GPUs, want %d", len(st.GPUs), p.gpus)
	}
	for _, g := range st.GPUs {
		high += g.HighBytes
		left += g.UsedBytes
	}
	return high, left, nil
}

// limited runs a script in a container with a share of each GPU.
func (p *place) limited(ctx context.Context, c client, limit uint64) (outcome, error) {
	var o outcome
	ctx, cancel := context.WithTimeout(ctx, 8*time.Minute)
	defer cancel()
	s := p.sets[c.wheels()]
	if s.missing != "" {
		return o, missing{s.missing}
	}
	gpus := "0"
	for i := 1; i < p.gpus; i++ {
		gpus += "," + strconv.Itoa(i)
	}
	const cudart = "/opt/cudart/libcudart.so.13"
	interpreter, wheels := s.inside()
	argv := []string{"create", "--runtime", node.Runtime, "--network", "none", "--ipc", "private", "--shm-size", "1g",
		"-e", fmt.Sprintf("GPUSHARE_MEMORY=%dB", limit), "-e", "GPUSHARE_COMPUTE=50%", "-e", "GPUSHARE_GPU=" + gpus,
		"-v", s.wheels + ":" + wheels + ":ro", "-v", filepath.Dir(p.script(c.script)) + ":/clients:ro", "-v", p.out + ":/out"}
	if c.packages == torch {
		argv = append(argv, "-v", filepath.Join(p.root, standIn)+":"+cudart+":ro")
	}
	if s.python != "" {
		argv = append(argv, "-v", s.prefix()+":/opt/python:ro", "-e", "PYTHONPATH="+wheels,
			"-e", "LD_LIBRARY_PATH="+strings.TrimSuffix("/opt/python/lib:"+filepath.Join(wheels, c.libraries), ":"+wheels))
	}
	if c.tool != "" {
		dir, path, err := newTool(ctx, p.root, c.tool)
		if err != nil {
			return o, err
		}
		// The directory: a mount of a file of the driver's would be left out.
		argv = append(argv, "-v", dir+":/opt/tool:ro", "-e", toolVariable(c.tool)+"="+filepath.Join("/opt/tool", path))
	}
	for _, e := range settings(c, wheels, "/tmp", cudart) {
		argv = append(argv, "-e", e)
	}
	result := c.name() + ".limited.json"
	argv = append(argv, c.image(), interpreter, "/clients/"+c.script+".py", strconv.FormatUint(limit, 10), "/out/"+result)
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
	return o, o.read(filepath.Join(p.out, result))
}

func (o *outcome) read(file string) error {
	data, err := os.ReadFile(file)
	if err != nil {
		return fmt.Errorf("read a script's result: %w", err)
	}
	if err := json.Unmarshal(data, o); err != nil {
		return fmt.Errorf("read a script's result %s: %w", file, err)
	}
	if o.Missing != "" {
		return missing{"there is not " + o.Missing}
	}
	return nil
}
