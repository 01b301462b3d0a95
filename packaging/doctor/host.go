// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/gpushare/gpushare/hook/node"
	"github.com/gpushare/gpushare/internal/config"
)

// askTimeout bounds a program's answer to --version.
const askTimeout = 5 * time.Second

func (n Node) host(ctx context.Context, r *Report) {
	kernel(r)
	runtimes := config.Default().Runtimes
	if n.Config != nil {
		runtimes = n.Config.Runtimes
	}
	path, err := node.LowLevelRuntime(runtimes)
	if err != nil {
		r.fail("host", err.Error(), "apt-get install runc")
	} else if text, err := ask(ctx, path, "--version"); err != nil {
		r.fail("host", err.Error(), path+" --version")
	} else {
		r.Checks = append(r.Checks, lowLevel(path, text))
		r.count()
	}
	if path, err := exec.LookPath("nvidia-ctk"); err == nil {
		if text, err := ask(ctx, path, "--version"); err == nil {
			r.Checks = append(r.Checks, toolkit(text))
			r.count()
		}
	}
}

// count sums anew after a check was added by hand.
func (r *Report) count() {
	r.Failures, r.Warnings = 0, 0
	for _, c := range r.Checks {
		switch c.State {
		case Failure:
			r.Failures++
		case Warning:
			r.Warnings++
		}
	}
}

// kernel tries the calls that the hook makes in every container's start.
func kernel(r *Report) {
	var name unix.Utsname
	_ = unix.Uname(&name)
	version := unix.ByteSliceToString(name.Release[:])
	calls := []struct {
		name, since string
		try         func() error
	}{
		{"openat2", "5.6", func() error {
			fd, err := unix.Openat2(unix.AT_FDCWD, "/", &unix.OpenHow{Flags: unix.O_PATH | unix.O_CLOEXEC, Resolve: unix.RESOLVE_IN_ROOT})
			if err == nil {
				_ = unix.Close(fd)
			}
			return err
		}},
		{"open_tree", "5.2", func() error {
			fd, err := unix.OpenTree(unix.AT_FDCWD, "/", unix.OPEN_TREE_CLOEXEC)
			if err == nil {
				_ = unix.Close(fd)
			}
			return err
		}},
		{"move_mount", "5.2", func() error { return unix.MoveMount(-1, "", -1, "", 0) }},
		{"mount_setattr", "5.12", func() error { return unix.MountSetattr(-1, "", unix.AT_EMPTY_PATH, &unix.MountAttr{}) }},
		{"pidfd_open", "5.3", func() error {
			fd, err := unix.PidfdOpen(os.Getpid(), 0)
			if err == nil {
				_ = unix.Close(fd)
			}
			return err
		}},
	}
	var missing []string
	for _, c := range calls {
		if errors.Is(c.try(), unix.ENOSYS) {
			missing = append(missing, c.name+" (since "+c.since+")")
		}
	}
	if len(missing) > 0 {
		r.fail("host", fmt.Sprintf("kernel %s lacks %s, which every GPU container's start needs", version, strings.Join(missing, ", ")), "install a kernel of 5.12 or newer")
		return
	}
	r.ok("host", fmt.Sprintf("kernel %s has all that the hook needs", version))
}

func ask(ctx context.Context, program string, args ...string) (string, error) {
	if err := config.CheckRootOwned(program); err != nil {
		return "", fmt.Errorf("%s would be run as root: %w", program, err)
	}
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	out, err := exec.CommandContext(ctx, program, args...).Output()
	if err != nil {
		return "", fmt.Errorf("%s %s: %w", program, strings.Join(args, " "), err)
	}
	return string(out), nil
}

var number = regexp.MustCompile(`(\d+)\.(\d+)\.(\d+)`)

// numbers finds the first version in a text; nil if there is none.
func numbers(text string) []int {
	m := number.FindStringSubmatch(text)
	if m == nil {
		return nil
	}
	out := make([]int, 3)
	for i := range out {
		out[i], _ = strconv.Atoi(m[i+1])
	}
	return out
}

// lowLevel judges the version of runc or crun. What a container can do to the host
// through an older runc (CVE-2025-31133, -52565, -52881), no limiter makes good.
func lowLevel(path, text string) Check {
	first, _, _ := strings.Cut(strings.TrimSpace(text), "\n")
	v := numbers(text)
	c := Check{Area: "host", State: OK, Text: fmt.Sprintf("%s: %s", path, first)}
	if !strings.HasPrefix(first, "runc") || v == nil {
		return c
	}
	floor := []int{1, 4, 0}
	switch {
	case v[0] == 1 && v[1] == 3:
		floor = []int{1, 3, 3}
	case v[0] == 1 && v[1] == 2:
		floor = []int{1, 2, 8}
	}
	if slices.Compare(v, floor) >= 0 {
		return c
	}
	c.State, c.Fix = Failure, "apt-get install --only-upgrade runc"
	c.Text = fmt.Sprintf("%s is version %d.%d.%d, through which containers can write to the host (CVE-2025-31133, CVE-2025-52565, CVE-2025-52881); 1.2.8, 1.3.3 and 1.4.0 mend it", path, v[0], v[1], v[2])
	if strings.Contains(text, "+ds") || strings.Contains(text, "deb") || strings.Contains(text, "ubuntu") {
		c.State, c.Fix = Warning, "apt-get install --only-upgrade runc"
		c.Text += "; a distribution may have mended it under the old number"
	}
	return c
}

// toolkit judges the version of NVIDIA's container toolkit.
func toolkit(text string) Check {
	v := numbers(text)
	if v == nil || slices.Compare(v, []int{1, 19, 1}) >= 0 {
		return Check{Area: "host", State: OK, Text: "nvidia-container-toolkit " + strings.Trim(strings.Join(strings.Fields(fmt.Sprint(v)), "."), "[]")}
	}
	return Check{Area: "host", State: Warning, Fix: "apt-get install --only-upgrade nvidia-container-toolkit",
		Text: fmt.Sprintf("nvidia-container-toolkit %d.%d.%d: its hooks, which its CDI specification names, can be led outside a container's files (CVE-2026-24260); 1.19.1 mends it", v[0], v[1], v[2])}
}
