// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/gpushare/gpushare/tests/node"
)

// changed is set in the environment of a test that runs in a mount namespace.
const changed = "GPUSHARE_TEST_NAMESPACE"

// namespaced runs the calling test again in a mount namespace that script has
// changed, as the only test of a process of its own, and says what that printed. In
// that process, which is given flags, it returns false, and the test goes on.
func namespaced(t *testing.T, script string, flags ...string) (printed string, done bool) {
	t.Helper()
	if os.Getenv(changed) != "" {
		return "", false
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	argv := []string{"unshare", "--mount", "sh", "-eu", "-c", script + "\n" + `exec "$@"`, "sh",
		self, "-test.run", "^" + t.Name() + "$", "-test.v", "-test.timeout", "8m"}
	ctx, cancel := context.WithTimeout(context.Background(), 9*time.Minute)
	defer cancel()
	r := node.Run(ctx, []string{changed + "=1"}, append(argv, flags...)...)
	t.Logf("in a namespace of its own:\n%s", r.Stdout)
	if r.Err != nil {
		t.Error(r.Err)
	} else if strings.Contains(r.Stdout, "--- SKIP") {
		t.Skip("skipped there")
	}
	return r.Stdout, true
}

// driverInDev makes a /dev that has the driver's nodes, as a machine with a GPU has:
// in a user namespace runc cannot make nodes and mounts the host's.
const driverInDev = `
old=$(mktemp -d)
mount --rbind /dev "$old"
mount -t tmpfs none /dev
for n in null zero full random urandom tty; do cp -a "$old/$n" /dev/; done
mkdir /dev/pts /dev/shm
mount --rbind "$old/pts" /dev/pts
mount --rbind "$old/shm" /dev/shm
ln -s pts/ptmx /dev/ptmx
ln -s /proc/self/fd /dev/fd
mknod -m 666 /dev/nvidiactl c 195 255
mknod -m 666 /dev/nvidia0 c 195 0
mknod -m 666 /dev/nvidia-uvm c 510 0
umount -l "$old"
rmdir "$old"`

// A container in a user namespace of its own is held to its share, as its root and
// as another user, with hooks of the driver's and with a libcuda of the image's.
func TestUserNamespace(t *testing.T) {
	if _, done := namespaced(t, driverInDev); done {
		return
	}
	n := up(t, node.Options{NoEngine: true, CDIHooks: true})
	newer := otherVersion(t)
	rootfs := ownImage(t, n, newer, "/opt/x", build(t, n))
	if r := node.Run(within(t), nil, "chown", "-hR", "100000:100000", rootfs); r.Err != nil {
		t.Fatal(r.Err)
	}
	mapping := []any{map[string]any{"containerID": 0, "hostID": 100000, "size": 65536}}
	for name, user := range map[string]int{"root": 0, "user": 1000} {
		t.Run(name, func(t *testing.T) {
			b, err := n.NewBundle(within(t), name, node.Spec{
				Rootfs: rootfs, Args: []string{"/program", "libcuda.so.1"}, Env: []string{"LD_LIBRARY_PATH=/opt/x", "GPUSHARE_MEMORY=1Gi"},
				Edit: func(spec map[string]any) {
					l := spec["linux"].(map[string]any)
					l["namespaces"] = append(l["namespaces"].([]any), map[string]any{"type": "user"})
					l["uidMappings"], l["gidMappings"] = mapping, mapping
					spec["process"].(map[string]any)["user"] = map[string]any{"uid": user, "gid": user}
				},
			})
			if err != nil {
				t.Fatal(err)
			}
			r := b.Run(within(t))
			if r.Err != nil || !strings.HasPrefix(r.Stdout, fmt.Sprintf("version %d last 2 ", otherDriver(t).CUDA)) || r.Stderr != "" {
				t.Errorf("%q %q %v", r.Stdout, r.Stderr, r.Err)
			}
			if got := high(t, n, container{id: name}); got > gib || got < gib-1024 {
				t.Errorf("by the simulator's account at most %d in use, limit %d", got, gib)
			}
		})
	}
}
