// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// Where docker is by default.
const (
	dockerSocket  = "/var/run/docker.sock"
	dockerConfig  = "/etc/docker/daemon.json"
	dockerPIDFile = "/var/run/docker.pid"
)

// docker tells dockerd of our runtime by its path, the one form that every version
// honours: 20.10 and 23 run plain runc for a runtime given by type.
type docker struct {
	opts    Options
	api     *dockerClient
	proc    *process // nil: not running, or not to be found
	info    DockerInfo
	running bool
	file    *file
	runtime string
}

func newDocker(ctx context.Context, o Options) (*docker, error) {
	if o.Socket == "" {
		o.Socket = dockerSocket
	}
	d := &docker{opts: o, api: newDockerClient(o.Socket), runtime: filepath.Join(o.BinDir, "gpushare-runtime")}
	var err error
	if d.info, err = d.api.info(ctx); err == nil {
		d.running = true
	} else if !o.DryRun && !(o.NoRestart && o.NoProbe) {
		return nil, refuse("dockerd does not answer at %s: %w; start it, or name its socket with --socket, or only write the file with --no-restart --no-probe", o.Socket, err)
	}
	path := o.Config
	if d.running {
		if d.proc, err = d.find(ctx); err == nil {
			reads, given := d.proc.flag("config-file")
			if !given {
				reads = dockerConfig
			}
			if path != "" && !sameFile(path, reads) {
				return nil, refuse("the dockerd behind %s (pid %d) reads %s, not %s", o.Socket, d.proc.pid, reads, path)
			}
			path = reads
			if given, is := d.proc.flag("add-runtime"); is {
				return nil, refuse("dockerd (pid %d) is started with --add-runtime %s; it refuses to start if daemon.json has runtimes as well: move that runtime into daemon.json first", d.proc.pid, given)
			}
		} else if !o.NoRestart && !o.DryRun {
			return nil, refuse("dockerd answers at %s, but its process cannot be found (%w), so it cannot be told to reload; add --no-restart and reload it yourself", o.Socket, err)
		}
	}
	if path == "" {
		path = dockerConfig
	}
	d.file, err = readFile(path)
	return d, err
}

// find returns dockerd's process: the listener, or with systemd's socket activation
// the one that the pid file or systemd names.
func (d *docker) find(ctx context.Context) (*process, error) {
	p, err := listener(ctx, d.opts.Socket)
	if err != nil {
		return nil, err
	}
	if p.is("dockerd") {
		return p, nil
	}
	if p, err := byPIDFile(dockerPIDFile, "dockerd"); err == nil || !systemd() {
		return p, err
	}
	main, err := systemctl(ctx, "show", "--property", "MainPID", "--value", "docker.service")
	if err != nil {
		return nil, err
	}
	pid, err := strconv.Atoi(main)
	if err != nil || pid <= 1 {
		return nil, errors.New("neither its pid file nor systemd names it")
	}
	if p, err = processOf(pid); err == nil && !p.is("dockerd") {
		err = fmt.Errorf("docker.service runs %s", p.exe)
	}
	return p, err
}

func (d *docker) plan(_ context.Context, install bool) (*edit, error) {
	f := d.file
	e := &edit{file: f, activation: "dockerd reloads its configuration (SIGHUP); containers go on"}
	record, original := f.history()
	if !install {
		if err := notDefault(f.path, f.content()); err != nil {
			return nil, err
		}
		if record != nil {
			e.after, e.base = original, original
			return e, nil
		}
		after, found, err := withoutRuntime(f.path, f.content())
		if err != nil {
			return nil, err
		}
		if _, _, err := withRuntime(f.path, f.content(), d.runtime); err != nil && readRecord(f.recordPath()) == nil {
			return nil, err // somebody else's runtime of our name
		}
		if found {
			e.notes = append(e.notes, f.path+" has been edited since; only our own key of it is taken out")
		}
		e.after, e.base = after, after
		return e, nil
	}
	after, same, err := withRuntime(f.path, f.content(), d.runtime)
	if err != nil {
		return nil, err
	}
	if same {
		e.after, e.base = f.content(), f.content()
		return e, nil
	}
	e.after, e.base = after, f.content()
	switch {
	case record != nil:
		e.base = original
		if e.after, _, err = withRuntime(f.path, original, d.runtime); err != nil {
			return nil, err
		}
	case f.exists:
		rest, found, err := withoutRuntime(f.path, f.content())
		if err != nil {
			return nil, err
		}
		if found {
			e.base = rest
		}
	}
	return e, nil
}

// check lets dockerd's own parser read the file, where it has one to call.
func (d *docker) check(ctx context.Context) error {
	data, err := os.ReadFile(d.file.real)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("read %s back: %w", d.file.path, err)
	}
	if _, _, _, err := parseDaemonJSON(d.file.path, data); err != nil || d.proc == nil {
		return err
	}
	return validate(ctx, d.proc.exe, d.file.real)
}

// activate makes dockerd read its file again.
func (d *docker) activate(context.Context) (string, error) {
	if (d.proc == nil || d.opts.NoRestart) && d.sticks() {
		return "restart docker: a reload does not make it forget a runtime", nil
	}
	if d.proc == nil {
		return "reload docker: kill -HUP its process, or systemctl reload docker", nil
	}
	if d.opts.NoRestart {
		return fmt.Sprintf("reload docker: kill -HUP %d", d.proc.pid), nil
	}
	fd, err := unix.PidfdOpen(d.proc.pid, 0)
	if err != nil {
		return "", fmt.Errorf("reload dockerd (pid %d): %w", d.proc.pid, err)
	}
	defer unix.Close(fd)
	if now, err := processOf(d.proc.pid); err != nil || !now.is("dockerd") {
		return "", fmt.Errorf("reload dockerd (pid %d): it has ended", d.proc.pid)
	}
	if err := unix.PidfdSendSignal(fd, unix.SIGHUP, nil, 0); err != nil {
		return "", fmt.Errorf("reload dockerd (pid %d): %w", d.proc.pid, err)
	}
	return "", nil
}

// knows asks dockerd whether it lists our runtime.
func (d *docker) knows(ctx context.Context) (bool, error) {
	info, err := d.api.info(ctx)
	if err != nil {
		return false, err
	}
	r, there := info.Runtimes[Handler]
	return there && r.Path == d.runtime, nil
}

// users names the containers that were made with our runtime. They cannot be
// started again without it.
func (d *docker) users(ctx context.Context) []string {
	ctx, cancel := context.WithTimeout(ctx, answerTimeout)
	defer cancel()
	var list []struct {
		ID    string `json:"Id"`
		Names []string
	}
	if err := d.api.call(ctx, http.MethodGet, "/containers/json?all=1", nil, nil, &list); err != nil {
		return nil
	}
	var names []string
	for _, c := range list {
		var one struct {
			HostConfig struct{ Runtime string }
		}
		data, err := d.api.raw(ctx, http.MethodGet, "/containers/"+c.ID+"/json", nil, nil)
		if err != nil || json.Unmarshal(data, &one) != nil || one.HostConfig.Runtime != Handler {
			continue
		}
		name := c.ID[:min(12, len(c.ID))]
		if len(c.Names) > 0 {
			name = strings.TrimPrefix(c.Names[0], "/")
		}
		names = append(names, name)
	}
	return names
}
