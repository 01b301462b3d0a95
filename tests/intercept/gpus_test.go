// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

package intercept

import (
	"encoding/hex"
	"fmt"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/gpushare/gpushare/limiter/region"
)

// cards makes a container with those limits in MiB on the node's GPUs in their order;
// 0 leaves one out.
func (n *node) cards(limits ...uint64) *container {
	n.t.Helper()
	var gpus []region.GPULimit
	for i, l := range limits {
		if l > 0 {
			gpus = append(gpus, n.limit(i, l*mib))
		}
	}
	return n.containerOn(gpus...)
}

// visible sets CUDA_VISIBLE_DEVICES.
func (c *container) visible(devices string) *container {
	c.env = append(c.env, "CUDA_VISIBLE_DEVICES="+devices)
	return c
}

// used is what the simulator counts on each GPU.
func (n *node) used() []uint64 {
	n.t.Helper()
	var all []uint64
	for _, g := range n.gpus() {
		all = append(all, g.Used)
	}
	return all
}

// onlyOn wants that the container's ledger and the simulator both count bytes on that
// GPU and nothing on any other.
func (n *node) onlyOn(c *container, gpu int, bytes uint64) {
	n.t.Helper()
	want := make([]uint64, len(n.gpus()))
	want[gpu] = bytes
	if got := n.used(); !slices.Equal(got, want) {
		n.t.Errorf("the simulator counts %d, want %d", got, want)
	}
	if got := c.ledger(); !slices.Equal(got, want[:len(got)]) {
		n.t.Errorf("the ledger counts %d, want %d", got, want)
	}
}

func (n *node) empty() {
	n.t.Helper()
	waitFor(n.t, "empty GPUs", func() bool { return slices.Max(n.used()) == 0 })
}

// A subset of the container's GPUs, by index or by UUID: the limit holds, and what is
// taken is counted on the GPU that it is taken from.
func TestMEM01ASubsetOfGPUs(t *testing.T) {
	n := simulateGPUs(t, 4)
	program := compile(t, "views.c")
	uuids := n.gpus()
	for _, tt := range []struct {
		visible string
		first   int
	}{{"2,3", 2}, {"3,1", 3}, {uuids[2].UUID, 2}, {uuids[3].UUID[:12] + "," + uuids[0].UUID, 3}} {
		c := n.cards(1024, 1024, 1024, 1024).visible(tt.visible)
		s := c.session(program)
		s.want(fmt.Sprintf("init 0 %d", strings.Count(tt.visible, ",")+1), "init")
		s.want("use 0", "use 0")
		s.want(uuids[tt.first].UUID, "uuid 0")
		s.want("alloc 2", "alloc %d", 2048*mib)
		s.want("alloc 0", "alloc %d", 512*mib)
		n.onlyOn(c, tt.first, 512*mib+contextBytes)
		s.close()
		n.empty()
	}
}

// Each GPU to its own limit, in small steps, in any order of the devices: nothing is
// charged to the other one, and no context is left on it.
func TestMEM03OrderOfGPUs(t *testing.T) {
	const limit, part, step = 5800, 4096 * mib, 256 * mib
	n := simulateGPUs(t, 2)
	program := compile(t, "views.c")
	for _, order := range [][]int{{0}, {1}, {0, 1}, {1, 0}} {
		c := n.cards(limit, limit).visible(strings.Trim(strings.ReplaceAll(fmt.Sprint(order), " ", ","), "[]"))
		s := c.session(program)
		s.want(fmt.Sprintf("init 0 %d", len(order)), "init")
		want := make([]uint64, 2)
		for dev, gpu := range order {
			s.want("use 0", "use %d", dev)
			for range part / step {
				s.want("alloc 0", "alloc %d", step)
			}
			want[gpu] = part + contextBytes
			if got := n.used(); !slices.Equal(got, want) {
				t.Errorf("%d: the simulator counts %d, want %d", order, got, want)
			}
			if got := c.ledger(); !slices.Equal(got, want) {
				t.Errorf("%d: the ledger counts %d, want %d", order, got, want)
			}
		}
		s.close()
		n.empty()
	}
}

// Of one to four GPUs the container sees so many, each with its own size, through
// both libraries.
func TestPROC08CountAndSizes(t *testing.T) {
	n := simulateGPUs(t, 4)
	program := compile(t, "views.c")
	limits := []uint64{1024, 512, 2048, 256}
	for k := 1; k <= 4; k++ {
		c := n.cards(limits[:k]...)
		// The engine gives the container the nodes of its GPUs; here there are all of them.
		c.visible(strings.Join([]string{"0", "1", "2", "3"}[:k], ","))
		s := c.session(program)
		s.want(fmt.Sprintf("init 0 %d", k), "init")
		answer := "nvml"
		for i := range 4 {
			if i < k {
				answer += fmt.Sprintf(" %d:%d:0", i, limits[i]*mib)
				continue
			}
			answer += fmt.Sprintf(" %d:4", i) // NVML_ERROR_NO_PERMISSION
		}
		s.want(answer, "nvml")
		for i := range k {
			s.want("use 0", "use %d", i)
			s.want(fmt.Sprintf("look %d %d", limits[i]*mib, limits[i]*mib-contextBytes), "look")
			s.want(fmt.Sprintf("fill %d 2", limits[i]*mib-contextBytes), "fill %d", mib)
		}
		s.close()
		n.empty()
	}
}

// Whatever CUDA_VISIBLE_DEVICES says, the devices are those that the driver shows
// without us, and each has the limit of its UUID.
func TestVisibleDevices(t *testing.T) {
	long(t)
	n := simulateGPUs(t, 4)
	program := compile(t, "views.c")
	var uuids []string
	limit := map[string]uint64{}
	for i, g := range n.gpus() {
		uuids = append(uuids, g.UUID)
		limit[g.UUID] = uint64(i+1) * 256 * mib
	}
	for _, visible := range []string{
		"0", "3", "0,1,2,3", "3,2,1,0", "2,0", " 1", "1 ,2", "01", "0x1",
		uuids[1], uuids[3] + "," + uuids[1], uuids[2][:8], "GPU-", uuids[0][:10] + ",2", strings.ToUpper(uuids[0]),
		"0,0", "1,2,1", uuids[1] + ",1", // one twice
		"9", "1,9,2", "x", "1,x", "-1", "1,-1,2", "", ",", "1,", "NoDevFiles",
		"MIG-" + uuids[0], "MIG-" + uuids[0][4:], "MIG-" + uuids[0] + "/1/0",
	} {
		for _, order := range []string{"", "PCI_BUS_ID", "FASTEST_FIRST"} {
			bare := n.containerOn(n.limit(0, 1)).visible(visible)
			bare.env = append(bare.env, "LD_LIBRARY_PATH="+n.dir+"/lib")
			// In the page the GPUs stand in another order than the driver's.
			limited := n.containerOn(n.limit(2, limit[uuids[2]]), n.limit(0, limit[uuids[0]]), n.limit(3, limit[uuids[3]]), n.limit(1, limit[uuids[1]])).visible(visible)
			if order != "" {
				bare.env = append(bare.env, "CUDA_DEVICE_ORDER="+order)
				limited.env = append(limited.env, "CUDA_DEVICE_ORDER="+order)
			}
			b, l := bare.session(program), limited.session(program)
			answer := b.do("init")
			l.want(answer, "init")
			var code, count int
			if _, err := fmt.Sscanf(answer, "init %d %d", &code, &count); err != nil {
				t.Fatalf("%q: %q", visible, answer)
			}
			for i := range count {
				uuid := b.do("uuid %d", i)
				l.want(uuid, "uuid %d", i)
				l.want("use 0", "use %d", i)
				l.want(fmt.Sprintf("look %d %d", limit[uuid], limit[uuid]-contextBytes), "look")
			}
			if order == "" {
				t.Logf("%q: %s", visible, answer)
			}
			b.close()
			l.close()
		}
	}
}

// A container with sixteen GPUs, its page the wrong way round, and one with every
// other of them.
func TestSixteenGPUs(t *testing.T) {
	n := simulateGPUs(t, 16)
	program := compile(t, "views.c")
	var page []region.GPULimit
	for i := 15; i >= 0; i-- {
		page = append(page, n.limit(i, uint64(i+1)*64*mib))
	}
	var half []region.GPULimit
	var names []string
	for i := 1; i < 16; i += 2 {
		half = append(half, n.limit(i, 64*mib))
		names = append(names, fmt.Sprint(i))
	}
	a, b := n.containerOn(page...).session(program), n.containerOn(half...).visible(strings.Join(names, ",")).session(program)
	a.want("init 0 16", "init")
	b.want("init 0 8", "init")
	for i := range 16 {
		a.want("use 0", "use %d", i)
		a.want(fmt.Sprintf("fill %d 2", uint64(i+1)*64*mib-contextBytes), "fill %d", 4*mib)
		a.want(fmt.Sprintf("look %d 0", (i+1)*64*mib), "look")
		if i%2 == 1 {
			b.want("use 0", "use %d", i/2)
			b.want(fmt.Sprintf("look %d %d", 64*mib, 64*mib-contextBytes), "look")
		}
	}
	for i, used := range n.used() {
		if want := uint64(i+1)*64*mib + uint64(i%2)*contextBytes; used != want {
			t.Errorf("GPU %d: %d bytes in use, want %d", i, used, want)
		}
	}
	a.close()
	b.close()
}

// Two cards of different make, which round differently. NVML counts them as they stand
// on the bus, CUDA from the fastest on unless told otherwise.
func TestMixedNode(t *testing.T) {
	n := simulateGPUs(t, 0, "--profile", "t4,h100")
	program := compile(t, "views.c")
	limits := []uint64{512 * mib, 1024 * mib}
	for order, first := range map[string]int{"": 1, "FASTEST_FIRST": 1, "PCI_BUS_ID": 0} {
		c := n.cards(limits[0]/mib, limits[1]/mib)
		c.env = append(c.env, "CUDA_DEVICE_ORDER="+order)
		if order == "" {
			c.env = c.env[:len(c.env)-1]
		}
		s := c.session(program)
		s.want("init 0 2", "init")
		for dev := range 2 {
			limit := limits[dev^first]
			s.want(n.gpus()[dev^first].UUID, "uuid %d", dev)
			s.want("use 0", "use %d", dev)
			s.want(fmt.Sprintf("look %d %d", limit, limit-contextBytes), "look")
			s.want(fmt.Sprintf("fill %d 2", limit-contextBytes), "fill %d", 2*mib)
			s.want(fmt.Sprintf("look %d 0", limit), "look")
		}
		s.want(fmt.Sprintf("nvml 0:%d:%d 1:%d:%d", limits[0], limits[0], limits[1], limits[1]), "nvml")
		if got := n.used(); !slices.Equal(got, c.ledger()) {
			t.Errorf("the simulator counts %d, the ledger %d", got, c.ledger())
		}
		s.close()
		n.empty()
	}
}

// Whether GPUs reach each other is the driver's answer, and using it costs nothing.
func TestPeersAreLeftAlone(t *testing.T) {
	n := simulateGPUs(t, 2)
	program := compile(t, "views.c")
	bare := n.cards(1, 1)
	bare.env = append(bare.env, "LD_LIBRARY_PATH="+n.dir+"/lib")
	c := n.cards(1024, 1024)
	b, l := bare.session(program), c.session(program)
	for _, line := range []string{"init", "use 0", "alloc 1048576", "peer 0 1", "peer 1 0", "peer 0 7", "sync"} {
		l.want(b.do("%s", line), "%s", line)
	}
	b.close()
	if got := n.used(); !slices.Equal(got, c.ledger()) {
		t.Errorf("the simulator counts %d, the ledger %d", got, c.ledger())
	}
	l.close()
}

// A GPU falls off the bus: its programs are told so, what they asked for in vain is not
// charged, a program on the other GPU goes on, and after its return a new program has
// it all.
func TestLostGPU(t *testing.T) {
	n := simulateGPUs(t, 2)
	program := compile(t, "views.c")
	c := n.cards(1024, 1024)
	a, b := c.session(program), c.session(program)
	for i, s := range []*session{a, b} {
		s.want("init 0 2", "init")
		s.want("use 0", "use %d", i)
		s.want("alloc 0", "alloc %d", 100*mib)
	}
	before := c.ledger()
	n.simgpu("kill-gpu", "--gpu", "0")
	for _, line := range []string{"alloc 1048576", "use 1", "sync"} {
		if answer := a.do("%s", line); strings.HasSuffix(answer, " 0") || strings.HasSuffix(answer, " 2") {
			t.Errorf("%s on a lost GPU: %q", line, answer)
		}
	}
	if answer := a.do("look"); !strings.HasPrefix(answer, "look fails: ") {
		t.Errorf("on a lost GPU: %q", answer)
	}
	if got := c.ledger(); !slices.Equal(got, before) {
		t.Errorf("charged for what the driver refused: %d, before %d; simulator %d", got, before, n.used())
	}
	held := uint64(100*mib + contextBytes)
	b.want(fmt.Sprintf("nvml 0:15 1:%d:%d", 1024*mib, held), "nvml") // NVML_ERROR_GPU_IS_LOST
	b.want("alloc 0", "alloc %d", 100*mib)
	b.want(fmt.Sprintf("look %d %d", 1024*mib, 1024*mib-held-100*mib), "look")
	a.close()
	n.simgpu("revive-gpu", "--gpu", "0")
	a = c.session(program)
	a.want("init 0 2", "init")
	a.want("use 0", "use 0")
	all := fmt.Sprintf("look %d %d", 1024*mib, 1024*mib-contextBytes)
	waitFor(t, "the dead program's bytes", func() bool { return a.do("look") == all })
	if got, want := n.used()[0], uint64(contextBytes); got != want {
		t.Errorf("after its return the simulator counts %d, want %d", got, want)
	}
	a.close()
	b.close()
}

// MIG: the simulator has instances in NVML and CDI only, a CUDA program sees the whole
// card, so no limit on one can be tried. NVML shows the instance that the page names
// by its UUID, and none that it does not.
func TestMIGByName(t *testing.T) {
	n := simulateGPUs(t, 1, "--profile", "a100", "--memory", "40GiB")
	n.simgpu("mig", "create", "--gpu", "0", "1g.5gb")
	program := compile(t, "mig.c")
	out, err := n.container(1024 * mib).run(program)
	name, rest, _ := strings.Cut(out, " ")
	if err != nil || !strings.HasPrefix(name, "MIG-") || rest != "4 0 0 0\n" {
		t.Fatalf("an instance that is not the container's: %v, %q", err, out)
	}
	g := n.limit(0, 512*mib)
	id, err := hex.DecodeString(strings.ReplaceAll(strings.TrimPrefix(name, "MIG-"), "-", ""))
	if err != nil || copy(g.UUID[:], id) != 16 {
		t.Fatalf("uuid %q: %v", name, err)
	}
	if out, err = n.containerOn(g).run(program); err != nil || out != fmt.Sprintf("%s 0 %d 0 %d\n", name, 512*mib, 512*mib) {
		t.Errorf("its own instance: %v, %q", err, out)
	}
}

// simgpu runs a command on the node.
func (n *node) simgpu(args ...string) {
	n.t.Helper()
	at := 1 // after the command's words
	if args[0] == "mig" {
		at = 2
	}
	argv := slices.Concat(args[:at], []string{"--dir", n.dir}, args[at:])
	if out, err := exec.Command(n.bin, argv...).CombinedOutput(); err != nil {
		n.t.Fatalf("simgpu %v: %v\n%s", argv, err, out)
	}
}
