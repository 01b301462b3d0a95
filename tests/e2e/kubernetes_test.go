// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"context"
	"encoding/json"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/gpushare/gpushare/tests/node"
)

// cluster is a Kubernetes of one node, with the examples' containerd below it.
type cluster struct {
	*containerdNode
	kube *node.Kubernetes
	env  []string
}

// startCluster starts a cluster with a stand-in for the scheduler, which runs until
// the test ends.
func startCluster(t *testing.T) *cluster {
	t.Helper()
	bin := builtFor(t, "kubernetes")
	if _, err := exec.LookPath("kubectl"); err != nil {
		t.Skip("there is no kubectl here: install it, any version from 1.23 on")
	}
	k := newExampleNode(t, "containerd-2.4")
	kube, err := k.n.StartKubernetes(within(t), k.c, bin)
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("kubelet's log ends:\n%s", k.n.LogTail("kubelet", 30))
			t.Logf("kube-apiserver's log ends:\n%s", k.n.LogTail("kube-apiserver", 10))
		}
		if kube != nil {
			if err := kube.Close(); err != nil {
				t.Error(err)
			}
		}
		if err := k.c.Close(within(t)); err != nil {
			t.Error(err)
		}
		nodes.mu.Lock()
		defer nodes.mu.Unlock()
		if err := k.n.Close(); err != nil {
			t.Errorf("take the node down: %v", err)
		}
		delete(nodes.up, k.n)
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error)
	go func() { done <- kube.Schedule(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	return &cluster{k, kube, kube.Env()}
}

// podStatus is the part of a pod that is looked at here.
type podStatus struct {
	Status struct {
		Phase             string
		ContainerStatuses []struct {
			Name, ContainerID string
			RestartCount      int
			State             struct {
				Waiting, Terminated *struct{ Reason, Message string }
				Running             *struct{ StartedAt string }
			}
		}
	}
}

func (c *cluster) pod(t *testing.T, name string) podStatus {
	t.Helper()
	var p podStatus
	r := c.kube.Kubectl(within(t), "get", "pod", name, "-o", "json")
	if r.Err != nil {
		t.Fatal(r.Err)
	}
	if err := json.Unmarshal([]byte(r.Stdout), &p); err != nil {
		t.Fatal(err)
	}
	return p
}

// running are the ids of a pod's containers, all of which run and have never been
// started again.
func (c *cluster) running(t *testing.T, pod string) map[string]string {
	t.Helper()
	ids := map[string]string{}
	for _, s := range c.pod(t, pod).Status.ContainerStatuses {
		if s.State.Running == nil || s.RestartCount != 0 {
			t.Errorf("container %s of pod %s: %+v", s.Name, pod, s)
		}
		ids[s.Name] = strings.TrimPrefix(s.ContainerID, "containerd://")
	}
	return ids
}

// apply applies a file of the examples, with words replaced.
func (c *cluster) apply(t *testing.T, file string, replace ...string) {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(root, "examples/kubernetes", file))
	if err != nil {
		t.Fatal(err)
	}
	text := strings.NewReplacer(replace...).Replace(string(data))
	if text == string(data) {
		t.Fatalf("%s has none of %q", file, replace)
	}
	changed := filepath.Join(t.TempDir(), file)
	if err := os.WriteFile(changed, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	if r := c.kube.Kubectl(within(t), "apply", "-f", changed); r.Err != nil {
		t.Fatal(r.Err)
	}
}

// filled has a container take all that it gets, through kubectl.
func (c *cluster) filled(t *testing.T, pod, container, id string, size uint64) {
	t.Helper()
	r := c.kube.Kubectl(within(t), "exec", pod, "-c", container, "--", "alloc", "--fill")
	if r.Err != nil {
		t.Fatal(r.Err)
	}
	a, err := c.n.Account(within(t), id)
	if err != nil {
		t.Fatal(err)
	}
	limitCase{limit: size}.judge(t, r.Stdout, a.HighWaterBytes)
}

// The examples for Kubernetes under a real API server and kubelet: the commands of
// the README as they are, then what happens when things go wrong.
func TestKubernetes(t *testing.T) {
	c := startCluster(t)
	commands := scripts(t, "kubernetes")
	if len(commands) != 2 {
		t.Fatalf("%d blocks of commands, want one that makes two containers and one with a preset", len(commands))
	}
	if r := c.kube.Kubectl(within(t), "label", "node", "--all", "gpushare.io/node=true"); r.Err != nil {
		t.Fatal(r.Err)
	}
	shown(t, play(t, "kubernetes", c.env, commands[0]).Stdout, 6*gib, 2*gib)
	ids := c.running(t, "two-containers")
	sizes := maps.Clone(kubernetesExamples["two-containers.yaml"])
	for container, size := range sizes {
		c.filled(t, "two-containers", container, ids[container], size)
	}
	t.Run("a refused annotation is shown", func(t *testing.T) {
		c.refused(t, "misspelt", "memory.training", "memroy.training", "[GS-ANN]", "gpushare.io/memroy.training")
	})
	t.Run("what does not fit is refused by the node", func(t *testing.T) {
		c.refused(t, "large", "6Gi", "75Gi", "[GS-NO-FIT]")
	})
	t.Run("a limit is changed on the node", func(t *testing.T) {
		if r := c.n.CLI(within(t), "set", ids["training"][:12], "--gpu-memory", "7Gi"); r.Err != nil {
			t.Fatal(r.Err)
		}
		sizes["training"] = 7 * gib
		c.filled(t, "two-containers", "training", ids["training"], 7*gib)
	})
	t.Run("kubelet is killed and comes back", func(t *testing.T) { c.survivesKubelet(t, ids, sizes) })
	// Refused now, it is tried again and starts when the others are gone.
	c.apply(t, "quarter.yaml", "name: quarter", "name: patient", "profile: 1of4", "memory: 75Gi",
		"[nvidia-smi]", "[sleep, infinity]", "Never", "Always")
	t.Run("a preset, and the end", func(t *testing.T) {
		defer func() {
			if t.Failed() {
				t.Log(c.kube.Kubectl(within(t), "describe", "pod", "quarter").Stdout, c.n.CLI(within(t), "ps").Stdout)
			}
		}()
		shown(t, play(t, "kubernetes", c.env, commands[1]).Stdout, kubernetesExamples["quarter.yaml"]["main"])
	})
	t.Run("what did not fit starts when it does", func(t *testing.T) {
		if r := c.kube.Kubectl(within(t), "wait", "--for=condition=Ready", "pod/patient", "--timeout=120s"); r.Err != nil {
			t.Fatal(r.Err, c.kube.Kubectl(within(t), "get", "pods").Stdout)
		}
		if r := c.kube.Kubectl(within(t), "delete", "pod", "patient", "--grace-period=1"); r.Err != nil {
			t.Fatal(r.Err)
		}
		nobody(t, c.n)
	})
}

// refused applies the example under another name, with a word replaced by one that
// the node refuses, and finds the reason where users look for it.
func (c *cluster) refused(t *testing.T, name, from, to string, words ...string) {
	t.Helper()
	c.apply(t, "two-containers.yaml", "name: two-containers", "name: "+name, from, to)
	defer func() {
		if r := c.kube.Kubectl(within(t), "delete", "pod", name); r.Err != nil {
			t.Error(r.Err)
		}
	}()
	said := func() string {
		var all []string
		for _, s := range c.pod(t, name).Status.ContainerStatuses {
			if s.State.Running != nil && s.Name == "training" {
				t.Errorf("container %s of pod %s runs", s.Name, name)
			}
			if w := s.State.Waiting; w != nil {
				all = append(all, w.Message)
			}
			if w := s.State.Terminated; w != nil {
				all = append(all, w.Message)
			}
		}
		return strings.Join(all, "\n")
	}
	has := func(text string) bool {
		for _, w := range words {
			if !strings.Contains(text, w) {
				return false
			}
		}
		return true
	}
	soon(t, limit, "the pod's status says "+words[0], func() bool { return has(said()) })
	events := func() string {
		return c.kube.Kubectl(within(t), "get", "events", "--field-selector", "involvedObject.name="+name, "-o", "jsonpath={..message}").Stdout
	}
	soon(t, limit, "the pod's events say "+words[0], func() bool { return has(events()) })
	if t.Failed() {
		t.Logf("status: %s\nevents: %s", said(), events())
	}
}

// survivesKubelet kills kubelet while a program holds memory, and expects the same
// containers with the same limits under the next one.
func (c *cluster) survivesKubelet(t *testing.T, ids map[string]string, sizes map[string]uint64) {
	holder := talk(t, nil, c.c.CrictlArgs("exec", "-i", ids["notebook"], "alloc", "--take", "1GiB", "--hold", "stdin")...)
	defer holder.End()
	holding := func() uint64 {
		a, err := c.n.Account(within(t), ids["notebook"])
		if err != nil {
			t.Fatal(err)
		}
		return a.MemoryBytes
	}
	soon(t, limit, "a program holds memory", func() bool { return holding() > gib })
	held := holding()
	if err := c.kube.Kubelet().Kill(); err != nil {
		t.Fatal(err)
	}
	if err := c.kube.StartKubelet(within(t)); err != nil {
		t.Fatal(err)
	}
	if got := holding(); got != held {
		t.Errorf("SIMULATED: %d bytes are held after kubelet's death, %d before", got, held)
	}
	if err := holder.Next(); err != nil {
		t.Error(err)
	}
	if err := holder.Wait(); err != nil {
		t.Errorf("the program that held memory: %v: %s", err, holder.Stderr())
	}
	// A node is ready before its kubelet has heard of all pods.
	soon(t, limit, "kubelet knows the pod", func() bool {
		return c.kube.Kubectl(within(t), "exec", "two-containers", "-c", "training", "--", "true").Err == nil
	})
	now := c.running(t, "two-containers")
	for container, size := range sizes {
		if now[container] != ids[container] {
			t.Errorf("container %s was %s, is %s", container, ids[container], now[container])
		}
		c.filled(t, "two-containers", container, ids[container], size)
	}
}
