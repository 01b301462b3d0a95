// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/gpushare/gpushare/tests/node"
)

// handlers are those of the CRI plugin that lead to our code: as ways, the engines.
func (k *containerdNode) handlers(t *testing.T, test func(t *testing.T, e criEngine)) {
	for _, w := range k.ways() {
		if e, ok := w.engine.(criEngine); ok {
			t.Run(w.name, func(t *testing.T) { test(t, e) })
		}
	}
}

// ctrs are the ways by ctr.
func (k *containerdNode) ctrs(t *testing.T, test func(t *testing.T, e ctrEngine)) {
	for _, w := range k.ways() {
		if e, ok := w.engine.(ctrEngine); ok {
			t.Run(w.name, func(t *testing.T) { test(t, e) })
		}
	}
}

// fill is the case of a program that was started by other means than check.
func fill(bytes uint64) limitCase { return limitCase{limit: bytes} }

// An annotation asks for a share as an environment variable does: ctr's own, a
// pod's, one of a pod's for one container, and a container's.
func TestRequestByAnnotation(t *testing.T) {
	const own = "gpushare.io/memory.main"
	eachContainerd(t, func(t *testing.T, k *containerdNode) {
		k.ctrs(t, func(t *testing.T, e ctrEngine) {
			flags := append(e.flags[:len(e.flags):len(e.flags)], "--annotation", "gpushare.io/memory=700MiB")
			c, r := ctrEngine{k, flags}.run(t, nil, "alloc", "--fill")
			if r.Err != nil {
				t.Fatal(r.Err)
			}
			fill(700*mib).judge(t, r.Stdout, high(t, k.n, c))
		})
		k.handlers(t, func(t *testing.T, e criEngine) {
			for _, c := range []struct {
				name           string
				pod, container map[string]string
				env            []string
				want           uint64
			}{
				{"pod", map[string]string{"gpushare.io/memory": "700Mi"}, nil, nil, 700 * mib},
				{"pod, one container", map[string]string{"gpushare.io/memory": "100Gi", own: "800Mi", "gpushare.io/memory.other": "1Gi"}, nil, nil, 800 * mib},
				{"container", nil, map[string]string{"gpushare.io/memory": "900Mi"}, nil, 900 * mib},
				{"the same by environment", map[string]string{own: "700Mi"}, nil, share("700Mi"), 700 * mib},
			} {
				t.Run(c.name, func(t *testing.T) {
					p := e.pod(t, c.pod)
					id, r := p.Run(within(t), node.CRIContainer{Name: "main", Args: []string{"alloc", "--fill"}, Annotations: c.container, Env: c.env})
					if r.Err != nil {
						t.Fatal(r.Err)
					}
					fill(c.want).judge(t, r.Stdout, high(t, k.n, e.container(p, id)))
				})
			}
		})
	})
}

// A request that cannot be meant is refused, and the engine's own command says why.
func TestBadRequestContainerd(t *testing.T) {
	eachContainerd(t, func(t *testing.T, k *containerdNode) {
		k.ctrs(t, func(t *testing.T, e ctrEngine) {
			for annotation, word := range map[string]string{
				"gpushare.io/memroy=1Gi":    "gpushare.io/memory",
				"gpushare.io/memory=2Gi":    "keep one of them",
				"gpushare.io/memory.a=1Gi":  "gpushare.io/memory",
				"gpushare.io/memory=80TiB ": "80",
			} {
				flags := append(e.flags[:len(e.flags):len(e.flags)], "--annotation", annotation)
				_, r := ctrEngine{k, flags}.run(t, share("1Gi"), "echo", "started")
				refused(t, r, word)
			}
		})
		k.handlers(t, func(t *testing.T, e criEngine) {
			for _, c := range []struct {
				name string
				pod  map[string]string
				env  []string
				word string
			}{
				{"misspelt annotation", map[string]string{"gpushare.io/memroy": "1Gi"}, nil, "did you mean gpushare.io/memory?"},
				{"misspelt for one container", map[string]string{"gpushare.io/memori.main": "1Gi"}, nil, "gpushare.io/memory"},
				{"misspelt variable", map[string]string{"gpushare.io/memory": "1Gi"}, []string{"GPUSHARE_MEM=1Gi"}, "did you mean GPUSHARE_MEMORY?"},
				{"contradiction", map[string]string{"gpushare.io/memory": "2Gi"}, share("1Gi"), "keep one of them"},
				{"compute alone", map[string]string{"gpushare.io/compute": "30%"}, nil, "gpushare.io/memory"},
			} {
				t.Run(c.name, func(t *testing.T) {
					_, r := e.pod(t, c.pod).Run(within(t), node.CRIContainer{Name: "main", Args: []string{"echo", "started"}, Env: c.env})
					refused(t, r, c.word)
				})
			}
			t.Run("privileged", func(t *testing.T) {
				privileged := func(m map[string]any) {
					m["linux"].(map[string]any)["security_context"].(map[string]any)["privileged"] = true
				}
				p := e.pod(t, map[string]string{"gpushare.io/memory": "1Gi"}, privileged)
				_, r := p.Run(within(t), node.CRIContainer{Name: "main", Args: []string{"echo", "started"}, Edit: privileged})
				refused(t, r, "GPU container with", "refused")
			})
		})
		if r := k.n.CLI(within(t), "ps", "-q"); strings.TrimSpace(r.Stdout) != "" || r.Err != nil {
			t.Errorf("a refused container left a share: %s %v", r.Stdout, r.Err)
		}
	})
}

// Containers that are created at once, also within one pod, each get their own
// share: nothing is guessed from time or size.
func TestParallelPods(t *testing.T) {
	const count, each = 5, 4
	eachContainerd(t, func(t *testing.T, k *containerdNode) {
		var engines []criEngine
		for _, w := range k.ways() {
			if e, ok := w.engine.(criEngine); ok {
				engines = append(engines, e)
			}
		}
		type result struct {
			name string
			want uint64
			id   string
			out  node.Result
		}
		results := make([]result, count*each)
		pods := make([]*node.Pod, count)
		for i := range pods {
			annotations := map[string]string{}
			for j := range each {
				// Every second is as large as one of another pod.
				size := uint64(600+100*j) * mib
				if j%2 == 0 {
					size += uint64(i) * 7 * mib
				}
				results[i*each+j] = result{name: fmt.Sprintf("c%d", j), want: size}
				annotations[fmt.Sprintf("gpushare.io/memory.c%d", j)] = fmt.Sprintf("%dB", size)
			}
			pods[i] = engines[i%len(engines)].pod(t, annotations)
		}
		var wg sync.WaitGroup
		for i := range results {
			wg.Go(func() {
				r := &results[i]
				r.id, r.out = pods[i/each].Run(within(t), node.CRIContainer{Name: r.name, Args: []string{"alloc", "--fill"}})
			})
		}
		wg.Wait()
		for i, r := range results {
			if r.out.Err != nil {
				t.Errorf("pod %d, %s: %v", i/each, r.name, r.out.Err)
				continue
			}
			fill(r.want).judge(t, r.out.Stdout, high(t, k.n, container{id: r.id}))
		}
	})
}

// Two containers of one pod hold their own shares at the same time, and ps shows both.
func TestPodOfTwo(t *testing.T) {
	eachContainerd(t, func(t *testing.T, k *containerdNode) {
		k.handlers(t, func(t *testing.T, e criEngine) {
			p := e.pod(t, map[string]string{"gpushare.io/memory.one": "1Gi", "gpushare.io/memory.two": "3Gi"})
			one := e.start(t, p, node.CRIContainer{Name: "one", Args: []string{"sleep", "100000"}})
			two := e.start(t, p, node.CRIContainer{Name: "two", Args: []string{"sleep", "100000"}})
			held := map[*container]*node.Session{}
			for _, c := range []struct {
				*container
				limit uint64
			}{{&one, gib}, {&two, 3 * gib}} {
				s := c.enter(t, "alloc", "--fill", "--hold", "stdin")
				held[c.container] = s
				expect(t, s, "holding")
				if got := account(t, k.n, *c.container).MemoryBytes; got != c.limit {
					t.Errorf("%d bytes in use, limit %d", got, c.limit)
				}
			}
			ps := k.n.CLI(within(t), "ps", "-q", "--no-trunc").Stdout
			if !strings.Contains(ps, one.id) || !strings.Contains(ps, two.id) || strings.Contains(ps, p.ID) {
				t.Errorf("ps should show both containers and not the sandbox: %s", ps)
			}
			// Known by what Kubernetes calls them.
			c := inspected(t, k.n, container{id: p.Name + "/two"})
			if c.ID != two.id || c.Details.Pod == nil || c.Details.Pod.Name != p.Name || c.Details.Pod.Container != "two" {
				t.Errorf("%s/two is %s, pod %+v", p.Name, c.ID, c.Details.Pod)
			}
			for c, s := range held {
				if err := s.Wait(); err != nil {
					t.Errorf("the holder in %s: %v: %s", c.id, err, s.Stderr())
				}
			}
		})
	})
}

// A container that has nothing to do with GPUs, and a pod's sandbox, are handed to
// runc byte for byte as containerd wrote them, also when the pod asks for a share.
func TestUntouchedContainerd(t *testing.T) {
	eachContainerd(t, func(t *testing.T, k *containerdNode) {
		k.ctrs(t, func(t *testing.T, e ctrEngine) {
			c := e.background(t, "NVIDIA_VISIBLE_DEVICES=all")
			untouched(t, k, "default", c.id)
		})
		k.handlers(t, func(t *testing.T, e criEngine) {
			p := e.pod(t, map[string]string{"gpushare.io/memory.main": "1Gi"})
			plain := e.start(t, p, node.CRIContainer{Name: "plain", Args: []string{"sleep", "100000"}})
			main := e.start(t, p, node.CRIContainer{Name: "main", Args: []string{"sleep", "100000"}})
			untouched(t, k, "k8s.io", p.ID)
			untouched(t, k, "k8s.io", plain.id)
			if before, after := specs(t, k, "k8s.io", main.id); before == after {
				t.Error("the container with a share was not changed: this test sees nothing")
			}
		})
	})
}

func untouched(t *testing.T, k *containerdNode, namespace, id string) {
	t.Helper()
	if before, after := specs(t, k, namespace, id); before != after {
		t.Errorf("config.json was changed:\n%s\n%s", before, after)
	}
}

// specs returns a container's spec as containerd holds it, and config.json.
func specs(t *testing.T, k *containerdNode, namespace, id string) (before, after string) {
	t.Helper()
	r := k.c.Ctr(within(t), "--namespace", namespace, "container", "info", "--spec", id)
	if r.Err != nil {
		t.Fatal(r.Err)
	}
	var compact strings.Builder
	if err := compactJSON(&compact, r.Stdout); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(k.c.BundleFile(namespace, id, "config.json"))
	if err != nil {
		t.Fatal(err)
	}
	return compact.String(), strings.TrimSpace(string(data))
}

// compactJSON takes the white space out, and nothing else.
func compactJSON(w *strings.Builder, text string) error {
	var raw json.RawMessage
	if err := json.Unmarshal([]byte(text), &raw); err != nil {
		return fmt.Errorf("read spec: %w", err)
	}
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	if err := e.Encode(raw); err != nil {
		return fmt.Errorf("write spec: %w", err)
	}
	s := strings.TrimSpace(w.String())
	w.Reset()
	w.WriteString(s)
	return nil
}
