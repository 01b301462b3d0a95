// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

// Package directory makes and removes containers' directories: each a small
// tmpfs of its own that holds the limits page, the ledger, the control socket
// and the two places at which the real driver's libraries are mounted.
//
// The tenant sees the directory read-only and may write the ledger and the
// socket. Everything has its full size from the start, so the file system
// never grows; it goes away with its last mount.
package directory

import (
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/gpushare/gpushare/daemon/proc"
	"github.com/gpushare/gpushare/limiter/region"
)

// ErrNotMounted is returned for a directory whose file system is gone.
var ErrNotMounted = errors.New("its file system is not mounted")

// inodes is how many a directory needs: the root, limits, ledger, the socket and
// its successor, driver and two files in it.
const inodes = 9

// Dir is an open directory. Limits, Ledger and Control are closed by Close.
type Dir struct {
	Path    string
	Device  string // as mountinfo writes it
	Limits  *region.Limits
	Ledger  *region.Ledger
	Control *net.UnixConn // control.sock, for datagrams
}

// Create makes the directory of the container below parent, complete. label is
// the SELinux label of the container's mounts, empty for none. On an error
// nothing is left.
func Create(parent, id, label string, gpus []region.GPULimit) (_ *Dir, err error) {
	if err := proc.ValidID(id); err != nil {
		return nil, fmt.Errorf("make directory: %w", err)
	}
	d := &Dir{Path: filepath.Join(parent, id)}
	if err := os.Mkdir(d.Path, 0o755); err != nil {
		return nil, fmt.Errorf("make directory: %w", err)
	}
	defer func() {
		if err != nil {
			d.Close()
			err = errors.Join(err, Remove(parent, id))
		}
	}()
	options, err := mountOptions(label, len(gpus))
	if err != nil {
		return nil, fmt.Errorf("make directory %s: %w", d.Path, err)
	}
	if err := unix.Mount("gpushare", d.Path, "tmpfs", unix.MS_NOSUID|unix.MS_NODEV, options); err != nil {
		return nil, fmt.Errorf("mount tmpfs (%s) at %s: %w", options, d.Path, err)
	}
	if err := d.fill(gpus); err != nil {
		return nil, err
	}
	return d, nil
}

func mountOptions(label string, gpus int) (string, error) {
	size := region.LedgerSize(gpus) + region.LimitsSize
	o := fmt.Sprintf("mode=0755,size=%d,nr_inodes=%d", size, inodes)
	if label == "" {
		return o, nil
	}
	if _, err := os.Stat("/sys/fs/selinux/enforce"); err != nil {
		return o, nil // the kernel would refuse the option
	}
	for _, c := range []byte(label) {
		if c <= ' ' || c > '~' || strings.IndexByte(`"\`, c) >= 0 {
			return "", fmt.Errorf("mount label %q has characters that no label has", label)
		}
	}
	return o + `,context="` + label + `"`, nil
}

// fill writes what is in the directory. Modes are set explicitly, since the
// umask of whoever started us is not ours to know.
func (d *Dir) fill(gpus []region.GPULimit) (err error) {
	if d.Limits, err = region.CreateLimits(filepath.Join(d.Path, "limits"), gpus); err != nil {
		return err
	}
	ledger := filepath.Join(d.Path, "ledger")
	if err := region.CreateLedger(ledger, len(gpus)); err != nil {
		return err
	}
	if d.Ledger, err = region.OpenLedger(ledger, len(gpus)); err != nil {
		return err
	}
	driver := filepath.Join(d.Path, "driver")
	if err := os.Mkdir(driver, 0o755); err != nil {
		return fmt.Errorf("make directory: %w", err)
	}
	for _, name := range []string{"cuda.real", "nvml.real"} {
		if err := os.WriteFile(filepath.Join(driver, name), nil, 0o444); err != nil {
			return fmt.Errorf("make mount point: %w", err)
		}
		if err := os.Chmod(filepath.Join(driver, name), 0o444); err != nil {
			return fmt.Errorf("make mount point: %w", err)
		}
	}
	for _, dir := range []string{driver, d.Path} {
		if err := os.Chmod(dir, 0o755); err != nil {
			return fmt.Errorf("make directory: %w", err)
		}
	}
	return d.attach()
}

// Open opens the directory that an earlier daemon made, and puts a new socket in
// it. It returns ErrNotMounted if its file system is gone.
func Open(parent, id string) (_ *Dir, err error) {
	if err := proc.ValidID(id); err != nil {
		return nil, fmt.Errorf("open directory: %w", err)
	}
	d := &Dir{Path: filepath.Join(parent, id)}
	mounted, err := isMounted(d.Path)
	if err != nil {
		return nil, fmt.Errorf("open directory: %w", err)
	}
	if !mounted {
		return nil, fmt.Errorf("open directory %s: %w", d.Path, ErrNotMounted)
	}
	defer func() {
		if err != nil {
			d.Close()
		}
	}()
	if d.Limits, err = region.OpenLimits(filepath.Join(d.Path, "limits")); err != nil {
		return nil, err
	}
	if d.Ledger, err = region.OpenLedger(filepath.Join(d.Path, "ledger"), d.Limits.GPUs()); err != nil {
		return nil, err
	}
	if err := d.attach(); err != nil {
		return nil, err
	}
	return d, nil
}

// attach makes the control socket and notes the device number.
func (d *Dir) attach() (err error) {
	if d.Device, err = proc.Device(d.Path); err != nil {
		return err
	}
	d.Control, err = bind(d.Path)
	return err
}

// isMounted reports whether something is mounted at path. A path that does not
// exist has nothing mounted.
func isMounted(path string) (bool, error) {
	var here, above unix.Stat_t
	if err := unix.Lstat(path, &here); err != nil {
		if errors.Is(err, os.ErrNotExist) {
			return false, nil
		}
		return false, fmt.Errorf("look up %s: %w", path, err)
	}
	if err := unix.Lstat(filepath.Dir(path), &above); err != nil {
		return false, fmt.Errorf("look up %s: %w", filepath.Dir(path), err)
	}
	return here.Dev != above.Dev, nil
}

// Close closes what is open of the directory; the directory stays.
func (d *Dir) Close() {
	if d.Control != nil {
		d.Control.Close()
	}
	if d.Ledger != nil {
		d.Ledger.Close()
	}
	if d.Limits != nil {
		d.Limits.Close()
	}
}

// Remove unmounts and removes the directory of the container. One that is not
// there is no error. Processes that still have files of it keep those.
func Remove(parent, id string) error {
	if err := proc.ValidID(id); err != nil {
		return fmt.Errorf("remove directory: %w", err)
	}
	path := filepath.Join(parent, id)
	for {
		mounted, err := isMounted(path)
		if err != nil {
			return fmt.Errorf("remove directory: %w", err)
		}
		if !mounted {
			break
		}
		if err := unix.Unmount(path, unix.MNT_DETACH|unix.UMOUNT_NOFOLLOW); err != nil {
			return fmt.Errorf("unmount %s: %w", path, err)
		}
	}
	if err := os.RemoveAll(path); err != nil {
		return fmt.Errorf("remove directory: %w", err)
	}
	return nil
}

// List returns the ids of the containers that have a directory below parent.
func List(parent string) ([]string, error) {
	entries, err := os.ReadDir(parent)
	if err != nil {
		return nil, fmt.Errorf("list directories: %w", err)
	}
	var ids []string
	for _, e := range entries {
		if proc.ValidID(e.Name()) == nil {
			ids = append(ids, e.Name())
		}
	}
	return ids, nil
}
