// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

package profile

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// MaxGPUs is the greatest number of devices of a node.
const MaxGPUs = 16

// Node is the cards of a node, in the order of their indices.
type Node struct {
	GPUs    []GPU
	Drivers []string // releases that the profiles want, "580"; more than one: they disagree
	Ignored []string // fields of files that nothing simulates, with the files' names
}

var countForm = regexp.MustCompile(`^([0-9]{1,4})x(.+)$`)

// Counts reports whether a part of a node's specification says how many cards it
// stands for: "8xh100".
func Counts(part string) bool { return countForm.MatchString(part) }

// ParseNode reads what cards a node has: "h100" (one), "8xh100", "4xa100,2xt4",
// "2x./mine.yaml". A file that lists devices stands for all of them.
func ParseNode(spec string) (Node, error) {
	var n Node
	for _, part := range strings.Split(spec, ",") {
		part = strings.TrimSpace(part)
		name, count := part, 0
		if m := countForm.FindStringSubmatch(part); m != nil {
			count, _ = strconv.Atoi(m[1])
			name = m[2]
			if count < 1 || count > MaxGPUs {
				return Node{}, fmt.Errorf("profile %q: want 1 to %d GPUs", part, MaxGPUs)
			}
		}
		if name == "" {
			return Node{}, fmt.Errorf("profile %q: want PROFILE or NxPROFILE, with commas between them", spec)
		}
		p, err := Load(name)
		if err != nil {
			return Node{}, err
		}
		gpus, err := p.cards(count)
		if err != nil {
			return Node{}, fmt.Errorf("profile %q: %w", part, err)
		}
		n.GPUs = append(n.GPUs, gpus...)
		for _, f := range p.Ignored {
			n.Ignored = append(n.Ignored, p.Name+": "+f)
		}
		if p.Driver != "" && !slices.Contains(n.Drivers, p.Driver) {
			n.Drivers = append(n.Drivers, p.Driver)
		}
	}
	if len(n.GPUs) > MaxGPUs {
		return Node{}, fmt.Errorf("profile %q: %d GPUs, a node has at most %d", spec, len(n.GPUs), MaxGPUs)
	}
	return n, nil
}

// cards returns count devices of a profile; 0: all that it lists, or one.
func (p Profile) cards(count int) ([]GPU, error) {
	if len(p.Devices) > 0 {
		if count > len(p.Devices) {
			return nil, fmt.Errorf("it lists %d devices only", len(p.Devices))
		}
		if count == 0 {
			count = len(p.Devices)
		}
		return slices.Clone(p.Devices[:count]), nil
	}
	return slices.Repeat([]GPU{p.GPU}, max(count, 1)), nil
}

// Validate checks the cards one by one and beside each other.
func (n Node) Validate() error {
	if len(n.GPUs) < 1 || len(n.GPUs) > MaxGPUs {
		return fmt.Errorf("%d GPUs: must be 1 to %d", len(n.GPUs), MaxGPUs)
	}
	uuid, bus := map[string]int{}, map[string]int{}
	for i, g := range n.GPUs {
		if err := g.Validate(); err != nil {
			return fmt.Errorf("gpu %d: %w", i, err)
		}
		for _, u := range []struct {
			seen  map[string]int
			what  string
			value string
		}{{uuid, "uuid", strings.ToLower(g.UUID)}, {bus, "pci.bus_id", strings.ToLower(g.PCI.BusID)}} {
			if u.value == "" {
				continue
			}
			if first, ok := u.seen[u.value]; ok {
				return fmt.Errorf("gpu %d: %w", i, fieldError(u.what, "%s: gpu %d has it, too", u.value, first))
			}
			u.seen[u.value] = i
		}
	}
	if len(bus) > 0 && len(bus) < len(n.GPUs) {
		return errors.New("pci.bus_id: either all GPUs of a node have one or none")
	}
	return nil
}
