// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

package node

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/gpushare/gpushare/internal/config"
)

// hybrid is a machine with control groups of version 1 and a volume of an engine,
// single one with version 2.
const (
	hybrid = `21 1 8:1 / / rw shared:1 - ext4 /dev/sda1 rw
22 21 0:20 / /sys rw - sysfs sysfs rw
23 22 0:21 / /sys/fs/cgroup ro - tmpfs tmpfs ro
24 23 0:22 / /sys/fs/cgroup/devices rw - cgroup cgroup rw,devices
25 21 0:23 / /run rw - tmpfs tmpfs rw
26 25 0:24 / /run/gpushare/c/one rw - tmpfs tmpfs rw
27 21 0:23 /gpushare /var/lib/docker/volumes/a\040b/_data rw - tmpfs tmpfs rw
28 27 0:24 / /var/lib/docker/volumes/a\040b/_data/c/one rw - tmpfs tmpfs rw
29 21 0:25 / /dev rw - devtmpfs devtmpfs rw
30 21 0:25 / /mnt/dev rw - devtmpfs devtmpfs rw
31 21 8:1 /srv /export rw - ext4 /dev/sda1 rw
32 21 0:20 / /mnt/sys rw - sysfs sysfs rw
`
	single = `21 1 8:1 / / rw - ext4 /dev/sda1 rw
22 21 0:20 / /sys rw - sysfs sysfs rw
23 22 0:21 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw
`
)

func TestOrigin(t *testing.T) {
	for p, want := range map[string]string{
		"/var/lib/docker/volumes/a b/_data":             "/run/gpushare",
		"/var/lib/docker/volumes/a b/_data/state":       "/run/gpushare/state",
		"/var/lib/docker/volumes/a b/_data/c/one/limit": "/run/gpushare/c/one/limit",
		"/var/lib/docker/volumes/other/_data":           "/var/lib/docker/volumes/other/_data",
		"/mnt/dev":                                      "/dev",
		"/export/x":                                     "/srv/x", "/exports": "/exports", "/": "/", "/run": "/run",
	} {
		if got := origin(parseMounts(hybrid), p); got != want {
			t.Errorf("origin of %s is %s, want %s", p, got, want)
		}
	}
	if got := origin(parseMounts("garbage\n\n1 2 - \n"), "/x"); got != "/x" {
		t.Errorf("without a table: %s", got)
	}
}

func TestOpensCgroups(t *testing.T) {
	for _, c := range []struct {
		table, path                 string
		recursive, readOnly, wholly bool
		want                        bool
	}{
		{hybrid, "/sys/fs/cgroup", true, false, false, true},
		{hybrid, "/sys/fs/cgroup", true, true, false, true}, // what is mounted below stays writable
		{hybrid, "/sys", true, true, false, true},
		{hybrid, "/sys", true, true, true, false},
		{hybrid, "/sys", false, true, false, false},
		{hybrid, "/sys/fs/cgroup/devices", true, true, false, false},
		{hybrid, "/sys/fs/cgroup/devices/x", false, false, false, true},
		{hybrid, "/sys/class", true, false, false, false},
		{hybrid, "/mnt/sys", true, false, false, false},
		{hybrid, "/", true, true, false, true},
		{single, "/sys/fs/cgroup", true, true, false, false},
		{single, "/sys/fs/cgroup", true, false, false, true},
		{single, "/sys", true, true, false, true},
		{single, "/home", true, false, false, false},
	} {
		if got := opensCgroups(parseMounts(c.table), c.path, c.recursive, c.readOnly, c.wholly); got != c.want {
			t.Errorf("%+v: %t", c, got)
		}
	}
}

// The kernel's own table, after a bind mount such as a volume of an engine.
func TestOriginOfRealMount(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("mounts: needs root")
	}
	dir := t.TempDir()
	run, volume := filepath.Join(dir, "run"), filepath.Join(dir, "volume")
	if err := errors.Join(os.Mkdir(run, 0o755), os.Mkdir(volume, 0o755), unix.Mount(run, volume, "", unix.MS_BIND, "")); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = unix.Unmount(volume, unix.MNT_DETACH) })
	h, err := Host(&config.Config{RunDir: run}, dir)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := h.Origin(volume), h.Origin(run); got != want {
		t.Errorf("the volume's origin is %s, the directory's %s", got, want)
	}
}
