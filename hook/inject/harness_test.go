// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

package inject

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// The hook runs in a mount namespace of its own: the test's program, started
// again, with this variable set.
const inNamespace = "GPUSHARE_TEST_INJECT"

func TestMain(m *testing.M) {
	if os.Getenv(inNamespace) != "" {
		os.Exit(inside())
	}
	os.Exit(m.Run())
}

// order is what the program in the namespace is to do.
type order struct {
	Dir     string // the world's
	Options Options
	// NoDriver leaves out the mounts of our libraries that the spec has.
	NoDriver bool
	// Shared makes this path of the container a shared mount.
	Shared string
	// Times is how often the hook runs, 0 for once; the last error counts.
	Times int
	// UserNamespace takes the host's capabilities away.
	UserNamespace bool
	// Overlay makes the root an overlay, as engines do; ReadOnly also read-only.
	Overlay, ReadOnly bool
	// Look are paths of the container whose content is wanted afterwards.
	Look []string
}

// outcome is what it saw.
type outcome struct {
	Error       string
	Mounts      []string // the points of new mounts
	Seen        map[string]string
	Nanoseconds int64 // of all runs together
}

func inside() int {
	runtime.LockOSThread()
	var o order
	if err := json.NewDecoder(os.Stdin).Decode(&o); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	result, err := o.carryOut()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	_ = json.NewEncoder(os.Stdout).Encode(result)
	return 0
}

// carryOut does what a runtime does before the hook, then runs it.
func (o *order) carryOut() (*outcome, error) {
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return nil, fmt.Errorf("make all mounts private: %w", err)
	}
	rootfs := filepath.Join(o.Dir, "rootfs")
	if o.Overlay {
		options := fmt.Sprintf("lowerdir=%s,upperdir=%s/upper,workdir=%s/work", rootfs, o.Dir, o.Dir)
		if err := unix.Mount("overlay", rootfs, "overlay", 0, options); err != nil {
			return nil, fmt.Errorf("make an overlay: %w", err)
		}
	} else if err := unix.Mount(rootfs, rootfs, "", unix.MS_BIND|unix.MS_REC, ""); err != nil {
		return nil, fmt.Errorf("bind the root: %w", err)
	}
	if o.ReadOnly {
		if err := unix.Mount("", rootfs, "", unix.MS_REMOUNT|unix.MS_BIND|unix.MS_RDONLY, ""); err != nil {
			return nil, fmt.Errorf("make the root read-only: %w", err)
		}
	}
	binds := [][2]string{
		{"c", ContainerDir}, {"c/ledger", ContainerDir + "/ledger"},
		{"driver/libcuda.so.999.1", cudaReal}, {"driver/libnvidia-ml.so.999.1", nvmlReal},
	}
	if !o.NoDriver {
		binds = append(binds, [2]string{"ours/libcuda.so.1", libDir + "/libcuda.so.1"},
			[2]string{"ours/libnvidia-ml.so.1", libDir + "/libnvidia-ml.so.1"},
			[2]string{"driver/libnvidia-ptxjitcompiler.so.1", libDir + "/libnvidia-ptxjitcompiler.so.1"})
	}
	for _, b := range binds {
		if err := unix.Mount(filepath.Join(o.Dir, b[0]), rootfs+b[1], "", unix.MS_BIND, ""); err != nil {
			return nil, fmt.Errorf("bind %s: %w", b[1], err)
		}
	}
	if o.Shared != "" {
		p := rootfs + o.Shared
		if err := errors.Join(unix.Mount(p, p, "", unix.MS_BIND, ""), unix.Mount("", p, "", unix.MS_SHARED, "")); err != nil {
			return nil, fmt.Errorf("share %s: %w", p, err)
		}
	}
	before, err := mountPoints()
	if err != nil {
		return nil, err
	}
	result := &outcome{Seen: map[string]string{}}
	start := time.Now()
	for range max(1, o.Times) {
		if err := Run(&o.Options); err != nil {
			result.Error = err.Error()
		}
	}
	result.Nanoseconds = time.Since(start).Nanoseconds()
	after, err := mountPoints()
	if err != nil {
		return nil, err
	}
	for id, point := range after {
		if _, old := before[id]; !old {
			result.Mounts = append(result.Mounts, point)
		}
	}
	r, err := openRoot(rootfs)
	if err != nil {
		return nil, err
	}
	defer r.close()
	for _, name := range o.Look {
		f, err := r.file(name)
		if err != nil {
			result.Seen[name] = err.Error()
			continue
		}
		data, err := f.read(1 << 20)
		if err != nil {
			result.Seen[name] = err.Error()
			continue
		}
		text := strings.TrimRight(string(data), "\x00")
		result.Seen[name] = text[strings.LastIndexByte(text, 0)+1:] // what follows the ELF part
	}
	return result, nil
}

// mountPoints maps the mounts' unique ids to where they are.
func mountPoints() (map[string]string, error) {
	data, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return nil, err
	}
	points := map[string]string{}
	for _, line := range strings.Split(strings.TrimSpace(string(data)), "\n") {
		f := strings.Fields(line)
		points[f[0]] = f[4]
	}
	return points, nil
}

const libDir = "/usr/lib/x86_64-linux-gnu"

// world is a host with a container's root file system.
type world struct {
	t   testing.TB
	dir string
	order
}

func newWorld(t testing.TB) *world {
	t.Helper()
	if os.Getuid() != 0 {
		t.Skip("needs root for mount namespaces")
	}
	if raceDetector {
		t.Skip("the hook has one thread: the race detector finds nothing and makes each of its starts ten times as long")
	}
	if runtime.GOARCH != "amd64" {
		t.Skip("the test images are for amd64")
	}
	w := &world{t: t, dir: t.TempDir()}
	w.order = order{Dir: w.dir, Options: Options{
		Root: w.path("rootfs"), CUDA: w.path("ours/libcuda.so.1"), NVML: w.path("ours/libnvidia-ml.so.1"),
		CUDAReal: w.path("driver/libcuda.so.999.1"), Compat: Route, Arg0: "sh", SearchPath: "/usr/bin:/bin", WorkDir: "/",
	}}
	w.library("ours/libcuda.so.1", "our cuda")
	w.library("ours/libnvidia-ml.so.1", "our nvml")
	w.library("driver/libcuda.so.999.1", "host cuda")
	w.library("driver/libnvidia-ml.so.999.1", "host nvml")
	w.library("driver/libnvidia-ptxjitcompiler.so.1", "host jit")
	for _, name := range []string{"limits", "ledger", "driver/cuda.real", "driver/nvml.real"} {
		w.write("c/"+name, "")
	}
	// What must stay as it is, whatever the image wants.
	w.library("outside/libcuda.so.1", "outside cuda")
	w.library("outside/libcuda.so.1234.5", "outside cuda 1234")
	w.library("outside/libnvidia-ml.so.1", "outside nvml")
	w.library("outside/lib/deep/libcuda.so.1", "outside deep")
	w.write("outside/ld.so.cache", "outside cache")

	data, err := os.ReadFile("/lib64/ld-linux-x86-64.so.2")
	if err != nil {
		t.Skipf("needs this machine's glibc loader: %v", err)
	}
	w.write("rootfs/lib64/ld-linux-x86-64.so.2", string(data))
	w.library("rootfs"+libDir+"/libc.so.6", "libc")
	for _, name := range []string{"libcuda.so.1", "libnvidia-ml.so.1", "libnvidia-ptxjitcompiler.so.1"} {
		w.write("rootfs"+libDir+"/"+name, "") // the runtime's mount points
	}
	w.library("rootfs/usr/bin/sh", "sh")
	w.mkdir("rootfs" + ContainerDir)
	w.mkdir("rootfs/proc")
	return w
}

func (w *world) path(name string) string { return filepath.Join(w.dir, name) }

func (w *world) mkdir(name string) {
	w.t.Helper()
	if err := os.MkdirAll(w.path(name), 0o755); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) write(name, text string) {
	w.t.Helper()
	w.mkdir(filepath.Dir(name))
	if err := os.WriteFile(w.path(name), []byte(text), 0o755); err != nil {
		w.t.Fatal(err)
	}
}

// library writes the least that a loader would take for a library of this
// architecture, with a text behind it.
func (w *world) library(name, text string) {
	w.t.Helper()
	head := make([]byte, elfHeaderSize)
	copy(head, "\x7fELF\x02\x01\x01")
	binary.LittleEndian.PutUint16(head[18:], machine)
	w.write(name, string(head)+text)
}

func (w *world) link(target, name string) {
	w.t.Helper()
	w.mkdir(filepath.Dir(name))
	if err := os.Symlink(target, w.path(name)); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) remove(name string) {
	w.t.Helper()
	if err := os.RemoveAll(w.path(name)); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) node(name string, mode uint32, dev uint64) {
	w.t.Helper()
	w.mkdir(filepath.Dir(name))
	if err := unix.Mknod(w.path(name), mode|0o666, int(dev)); err != nil {
		w.t.Fatal(err)
	}
}

// cache writes an ld.so.cache with these "name path" entries.
func (w *world) cache(entries ...[2]string) {
	w.t.Helper()
	w.write("rootfs/etc/ld.so.cache", string(cacheOf(cacheFlags, entries...)))
}

func cacheOf(flags uint32, entries ...[2]string) []byte {
	le := binary.LittleEndian
	data := append([]byte(cacheNew), make([]byte, cacheHeaderSize-len(cacheNew))...)
	le.PutUint32(data[20:], uint32(len(entries)))
	texts := []byte{}
	base := cacheHeaderSize + len(entries)*cacheEntrySize
	at := func(s string) uint32 {
		p := base + len(texts)
		texts = append(append(texts, s...), 0)
		return uint32(p)
	}
	for _, e := range entries {
		record := make([]byte, cacheEntrySize)
		le.PutUint32(record, flags)
		le.PutUint32(record[4:], at(e[0]))
		le.PutUint32(record[8:], at(e[1]))
		data = append(data, record...)
	}
	return append(data, texts...)
}

// hook runs the hook and checks what holds for every image: no mount outside of
// the root, and nothing outside read or changed.
func (w *world) hook() *outcome {
	w.t.Helper()
	w.outside() // makes all look unread
	before := w.outside()
	text, err := json.Marshal(w.order)
	if err != nil {
		w.t.Fatal(err)
	}
	cmd := exec.Command("/proc/self/exe")
	cmd.Env = []string{inNamespace + "=1"}
	cmd.Stdin = strings.NewReader(string(text))
	cmd.SysProcAttr = &syscall.SysProcAttr{Unshareflags: syscall.CLONE_NEWNS}
	if w.UserNamespace {
		mapping := []syscall.SysProcIDMap{{ContainerID: 0, HostID: 0, Size: 65536}}
		cmd.SysProcAttr = &syscall.SysProcAttr{
			Cloneflags:  syscall.CLONE_NEWUSER | syscall.CLONE_NEWNS,
			UidMappings: mapping, GidMappings: mapping,
		}
	}
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		w.t.Fatalf("hook: %v: %s", err, stderr.String())
	}
	var result outcome
	if err := json.Unmarshal(out, &result); err != nil {
		w.t.Fatalf("hook: %v: %s", err, out)
	}
	for _, point := range result.Mounts {
		if !strings.HasPrefix(point, w.path("rootfs")+"/") {
			w.t.Errorf("mounted at %s, outside of the root", point)
		}
	}
	if strings.Contains(result.Error, "\n") {
		w.t.Errorf("more than one line: %q", result.Error)
	}
	if after := w.outside(); after != before {
		w.t.Errorf("outside was\n%s\nand is\n%s", before, after)
	}
	return &result
}

// old is the access time that outside's files have until somebody reads them.
var old = unix.NsecToTimespec(1_000_000_000 * 1_000_000_000)

// outside describes every file beside the root: identity, size, times, content.
func (w *world) outside() string {
	w.t.Helper()
	var b strings.Builder
	for _, dir := range []string{"outside", "driver", "ours"} {
		err := filepath.Walk(w.path(dir), func(p string, info os.FileInfo, err error) error {
			if err != nil {
				return err
			}
			st := info.Sys().(*syscall.Stat_t)
			fmt.Fprintf(&b, "%s %d %o %d %d", p, st.Ino, st.Mode, st.Size, st.Mtim.Nano())
			if dir == "outside" && info.Mode().IsRegular() {
				fmt.Fprintf(&b, " read %v", st.Atim.Sec != old.Sec)
				data, err := readAndReset(p)
				if err != nil {
					return err
				}
				fmt.Fprintf(&b, " %.8x", sha256.Sum256([]byte(data)))
			}
			b.WriteByte('\n')
			return nil
		})
		if err != nil {
			w.t.Fatal(err)
		}
	}
	return strings.ReplaceAll(b.String(), " read false", "")
}

// readAndReset reads a file and makes it look unread: with an access time as old
// as the modification time the next reader leaves a trace (relatime).
func readAndReset(name string) (string, error) {
	f, err := os.Open(name)
	if err != nil {
		return "", err
	}
	defer f.Close()
	data, err := io.ReadAll(f)
	if err != nil {
		return "", err
	}
	times := []unix.Timespec{old, old}
	return string(data), unix.UtimesNanoAt(unix.AT_FDCWD, name, times, 0)
}
