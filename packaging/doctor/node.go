// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/pelletier/go-toml/v2"
	"golang.org/x/sys/unix"
	cdi "tags.cncf.io/container-device-interface/specs-go"

	v1 "github.com/gpushare/gpushare/daemon/api/v1"
	"github.com/gpushare/gpushare/hook/node"
	"github.com/gpushare/gpushare/internal/config"
	"github.com/gpushare/gpushare/limiter/quantity"
	"github.com/gpushare/gpushare/packaging/engine"
)

// configuration shows what the administrator allows beyond the rules.
func (n Node) configuration(r *Report) {
	if n.ConfigErr != nil {
		// Every GPU container is refused until the file is right.
		r.fail("configuration", n.ConfigErr.Error()+"; driver and daemon are not looked at until it is right", "gpushare config check")
		return
	}
	if n.Config.Path == "" {
		r.ok("configuration", "no config.toml; all defaults")
		return
	}
	r.ok("configuration", n.Config.Path+" is valid")
	for _, m := range n.Config.ExtraDriverMounts {
		r.ok("configuration", "extra_driver_mounts puts "+m+" into each GPU container")
	}
	if lends, err := n.Config.HostBytes(); err == nil && lends > 0 {
		n.hostMemory(r, lends)
	}
	// Read by name, so that an override is shown by whatever version knows it.
	var all struct {
		Override map[string]any `toml:"override"`
	}
	data, err := os.ReadFile(n.Config.Path)
	if err != nil || toml.Unmarshal(data, &all) != nil {
		return
	}
	var on []string
	for k, v := range all.Override {
		if v == true {
			on = append(on, k)
		}
	}
	slices.Sort(on)
	for _, k := range on {
		r.warn("configuration", fmt.Sprintf("override.%s = true: such containers run, and can undo their limit", k),
			"sudoedit "+n.Config.Path)
	}
}

// hostMemory says what the node lends of its own memory, and whether it has that.
func (n Node) hostMemory(r *Report, lends uint64) {
	var info unix.Sysinfo_t
	if err := unix.Sysinfo(&info); err != nil {
		r.fail("configuration", fmt.Sprintf("host_memory cannot be compared with the memory of this host: %v", err), "cat /proc/meminfo")
		return
	}
	has := uint64(info.Totalram) * uint64(info.Unit)
	if lends > has {
		r.warn("configuration", fmt.Sprintf("host_memory = %q lends containers more than this host has (%s): programs would be killed for want of memory instead of being refused it",
			n.Config.HostMemory, quantity.FormatBytes(has)), "sudoedit "+n.Config.Path)
		return
	}
	r.ok("configuration", fmt.Sprintf("host_memory lends %s of this host's %s to containers, for device memory that does not fit", quantity.FormatBytes(lends), quantity.FormatBytes(has)))
}

// driver looks at the CDI specification that containers get the driver from.
func (n Node) driver(r *Report) {
	d, err := node.LoadDriver(n.Config.DriverCDISpec)
	const generate = "nvidia-ctk cdi generate --output=/etc/cdi/nvidia.yaml"
	if err != nil {
		r.fail("driver", err.Error(), generate)
		return
	}
	edits := []*cdi.ContainerEdits{&d.Spec.ContainerEdits}
	for i := range d.Spec.Devices {
		edits = append(edits, &d.Spec.Devices[i].ContainerEdits)
	}
	var gone []string
	has := map[string]bool{}
	for _, e := range edits {
		for _, m := range e.Mounts {
			for _, l := range []string{"libcuda.so", "libnvidia-ml.so"} {
				if strings.HasPrefix(filepath.Base(m.ContainerPath), l) {
					has[l] = true
				}
			}
			if _, err := os.Stat(m.HostPath); err != nil {
				gone = append(gone, m.HostPath)
			}
		}
	}
	for _, l := range []string{"libcuda.so", "libnvidia-ml.so"} {
		if !has[l] {
			gone = append(gone, l+" (not in the specification)")
		}
	}
	switch {
	case len(gone) > 0:
		r.fail("driver", fmt.Sprintf("the CDI specification is out of date, %d files are missing: %s", len(gone), strings.Join(gone[:min(3, len(gone))], ", ")), generate)
	case len(d.Spec.Devices) == 0:
		r.fail("driver", "the CDI specification has no GPU", generate)
	default:
		r.ok("driver", fmt.Sprintf("CDI specification with %d devices, all its files are there", len(d.Spec.Devices)))
	}
}

func (n Node) daemon(ctx context.Context, r *Report) {
	d, err := n.Daemon(ctx)
	if err != nil {
		fix := "gpushared"
		if systemd() {
			fix = "systemctl enable --now gpushared"
		}
		if v1.Code(err) != v1.CodeDaemonDown {
			fix = "gpushare daemon"
		}
		r.fail("daemon", err.Error(), fix)
	} else {
		r.Simulated = d.Simulated
		if d.Version != n.Version {
			fix := fmt.Sprintf("kill %d; gpushared", d.PID)
			if systemd() {
				fix = "systemctl restart gpushared"
			}
			r.warn("daemon", fmt.Sprintf("gpushared is version %s, this command %s", d.Version, n.Version), fix)
		} else {
			r.ok("daemon", fmt.Sprintf("gpushared %s runs, pid %d", d.Version, d.PID))
		}
		if usable := slices.ContainsFunc(d.GPUs, func(g v1.GPU) bool { return g.Reason == "" }); !usable || d.DriverVersion == "" {
			r.fail("daemon", "no usable GPU: NVML is not reachable for gpushared: "+d.Reason, "nvidia-smi")
		} else {
			r.ok("daemon", fmt.Sprintf("driver %s, %d GPUs by NVML", d.DriverVersion, len(d.GPUs)))
		}
		for _, w := range d.Warnings {
			r.warn("daemon", w, "gpushare daemon")
		}
	}
	for _, p := range []struct {
		path string
		mode os.FileMode
	}{{n.Config.ContainersDir(), 0o700}, {n.Config.SocketPath(), 0o600}} {
		info, err := os.Stat(p.path)
		if errors.Is(err, os.ErrNotExist) {
			continue // said already: the daemon does not run
		}
		if err == nil {
			err = config.CheckRootOwned(filepath.Dir(p.path))
		}
		switch {
		case err != nil:
			r.fail("daemon", err.Error(), fixOwner(err, filepath.Dir(p.path)))
		case info.Mode().Perm()&^p.mode != 0:
			r.fail("daemon", fmt.Sprintf("%s can be used by others than root (mode %04o)", p.path, info.Mode().Perm()), fmt.Sprintf("chmod %04o %s", p.mode, p.path))
		default:
			r.ok("daemon", fmt.Sprintf("%s is root's alone (mode %04o)", p.path, info.Mode().Perm()))
		}
	}
}

func systemd() bool {
	_, err := os.Stat("/run/systemd/system")
	return err == nil
}

// programs looks at what is run as root, and at what tenants run.
func (n Node) programs(r *Report) {
	const again = "make install"
	bad := false
	for _, name := range []string{"gpushare-runtime", "gpushare-hook", "containerd-shim-gpushare-v1"} {
		path := filepath.Join(n.BinDir, name)
		info, err := os.Stat(path)
		var fs unix.Statfs_t
		switch {
		case err != nil:
			r.fail("programs", err.Error(), again)
		case info.Mode()&0o111 == 0:
			r.fail("programs", fmt.Sprintf("%s cannot be executed (mode %04o)", path, info.Mode().Perm()), "chmod 0755 "+path)
		case config.CheckRootOwned(path) != nil:
			err := config.CheckRootOwned(path)
			r.fail("programs", err.Error(), fixOwner(err, path))
		case unix.Statfs(path, &fs) == nil && fs.Flags&unix.ST_NOEXEC != 0:
			r.fail("programs", path+" lies on a file system that is mounted noexec", "install below another PREFIX")
		default:
			continue
		}
		bad = true
	}
	c := *n.Config
	if c.LibraryDir == "" {
		c.LibraryDir = n.LibDir
	}
	cuda, _, err := node.Libraries(&c)
	if err != nil {
		r.fail("programs", err.Error(), fixOwner(err, n.LibDir))
		bad = true
	}
	if !bad {
		r.ok("programs", fmt.Sprintf("programs in %s and libraries in %s are root's alone", n.BinDir, filepath.Dir(cuda)))
	}
}

func fixOwner(err error, path string) string {
	if !errors.Is(err, config.ErrUnsafe) {
		return "make install"
	}
	if first, _, ok := strings.Cut(err.Error(), " can be written"); ok {
		return "chmod go-w " + first[strings.LastIndexByte(first, ' ')+1:]
	}
	return "chown root:root " + path
}

func (n Node) engines(ctx context.Context, r *Report) {
	known := 0
	var ask []string
	for _, e := range []struct{ name, socket, program string }{
		{engine.Docker, n.DockerSocket, "gpushare-runtime"},
		{engine.Containerd, n.ContainerdSocket, "containerd-shim-gpushare-v1"},
	} {
		s, err := engine.Look(ctx, e.name, e.socket)
		install := "gpushare install --engine " + e.name
		title := strings.TrimSpace(e.name + " " + s.Version)
		switch {
		case errors.Is(err, engine.ErrAbsent):
			continue
		case err != nil && e.name == engine.Docker:
			r.warn("engines", fmt.Sprintf("%s does not answer: %s", title, err), "docker info")
			continue
		case err != nil:
			// docker's containerd has no CRI plugin, and needs none.
			r.add("engines", OK, fmt.Sprintf("%s: %s; ctr and nerdctl need no configuration", title, err), "")
			continue
		case s.Trap != "":
			r.fail("engines", s.Trap, install)
		case !s.Known:
			ask = append(ask, install)
			r.add("engines", OK, fmt.Sprintf("%s does not know %q", title, engine.Handler), "")
			continue
		case s.Program != "" && !executable(s.Program):
			r.fail("engines", fmt.Sprintf("%s runs %s for %q, which is not there", title, s.Program, engine.Handler), install)
		case s.Program != "" && s.Program != filepath.Join(n.BinDir, e.program):
			r.warn("engines", fmt.Sprintf("%s runs %s for %q, not the one of this installation in %s", title, s.Program, engine.Handler, n.BinDir), install)
		default:
			r.ok("engines", fmt.Sprintf("%s knows %q", title, engine.Handler))
		}
		known++
	}
	if known == 0 {
		fix := "gpushare install --engine docker"
		if len(ask) > 0 {
			fix = ask[0]
		}
		r.fail("engines", fmt.Sprintf("no running engine knows %q", engine.Handler), fix)
	}
}

func executable(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0
}
