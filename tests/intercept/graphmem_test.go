// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

package intercept

import "testing"

// Ways to make an executable graph, and the forms of a launch: see pools.c.
const instantiateWays = 5

// TestGraphMemory: what graphs allocate is charged when a launch takes it, however the
// node came about, whatever made the graph executable.
func TestGraphMemory(t *testing.T) {
	const limit = 256 * mib
	onProfiles(t, limit, func(t *testing.T, p *pooler) {
		most := limit - p.exec
		p.want(0, "stream 1 0")
		// A node frees what another has allocated; the device keeps it.
		for way := range 4 {
			for inst := range instantiateWays {
				p.want(0, "node %d 1 %d 1", way, most)
				p.want(0, "node %d 2 %d 1", way, most+1)
				p.want(0, "inst %d 1 0", inst)
				p.settled("a graph that was not launched", p.exec)
				p.want(0, "launch 1 0")
				p.want(0, "launch2 1 1") // and again, from what the device keeps
				p.want(0, "sync -1")
				p.settled("launched", limit)
				p.want(0, "gone 1")
				p.want(0, "inst %d 2 0", inst)
				p.want(2, "launch 2 0")
				p.want(2, "launch2 2 0")
				p.want(2, "upload 2 0")
				p.want(2, "upload2 2 0")
				p.want(0, "gone 2")
				p.want(0, "graphtrim 0")
				p.settled("trimmed", 0)
				p.want(0, "newgraph 1")
				p.want(0, "newgraph 2")
			}
		}
		// Instantiation that uploads is refused for what a launch would take.
		p.want(0, "node 0 0 %d 1", limit+1)
		for inst := 3; inst < instantiateWays; inst++ {
			p.want(2, "inst %d 0 2", inst)
		}
		p.want(0, "newgraph 0")
		p.settled("refused", 0)
		// What the device keeps for graphs gives way to other memory and the other
		// way round.
		p.want(0, "node 1 0 %d 1", most)
		p.want(0, "inst 2 0 0")
		for range 3 {
			p.want(0, "launch 0 0")
			p.want(0, "linear 1 %d", most)
			p.want(2, "launch 0 0")
			p.want(0, "freesync 1")
			p.want(0, "launch 0 0")
			p.want(0, "alloc 1 %d -1 1", most-most%cardStep)
			p.want(2, "launch 0 1")
			p.want(0, "free 1 1")
			p.want(0, "launch 0 1") // the pool gives way, too
		}
		p.want(0, "gone 0")
		p.want(0, "graphtrim 0")
		p.settled("gave way", 0)
		// Who can have no executable graph is told so.
		p.want(0, "linear 1 %d", limit)
		for inst := range instantiateWays {
			p.want(0, "node 0 3 %d 1", mib)
			if p.card {
				p.want(2, "inst %d 3 0", inst)
			} else {
				p.want(0, "inst %d 3 0", inst)
				p.want(0, "gone 3")
			}
			p.want(0, "newgraph 3")
		}
	})
}

// TestGraphMemoryLeftAllocated: memory that a launch leaves to the program, which frees
// it outside, or the next launch does.
func TestGraphMemoryLeftAllocated(t *testing.T) {
	const limit = 256 * mib
	onProfiles(t, limit, func(t *testing.T, p *pooler) {
		most := limit - p.exec
		p.want(0, "stream 1 0")
		p.want(0, "node 0 0 %d 0", most)
		p.want(0, "inst 2 0 1") // frees at the next launch
		for range 3 {
			p.want(0, "launch 0 0")
			p.want(2, "linear 1 %d", p.grain)
			p.settled("left", limit)
		}
		p.want(0, "freesync 0")
		p.want(0, "linear 1 %d", p.grain)
		p.want(0, "freesync 1")
		p.want(0, "launch 0 1")
		p.want(0, "free 0 1")
		p.want(0, "gone 0")
		p.want(0, "graphtrim 0")
		p.settled("freed", 0)

		// In a capture nothing is charged, refused or illegal.
		p.want(0, "linear 5 %d", most)
		p.want(0, "begin 1")
		p.want(0, "alloc 2 %d -1 1", 100*mib)
		p.want(0, "alloc 3 %d -1 1", most)
		p.want(0, "free 2 1")
		p.want(0, "free 3 1")
		p.want(0, "end 1 2")
		p.want(0, "inst 2 2 0")
		p.want(2, "launch 2 1")
		p.want(0, "freesync 5")
		p.want(2, "launch 2 1") // both live at once
		p.want(0, "gone 2")
		p.want(0, "sync -1")
		p.settled("captured", 0)
	})
}

// TestGraphMemoryOfSeveral: a graph in another one, and graphs that cannot all keep what
// they had.
func TestGraphMemoryOfSeveral(t *testing.T) {
	const limit = 256 * mib
	onProfiles(t, limit, func(t *testing.T, p *pooler) {
		rest := limit - p.exec - 100*mib
		p.want(0, "stream 1 0")
		p.want(0, "begin 1")
		p.want(0, "alloc 6 %d -1 1", 100*mib)
		p.want(0, "free 6 1")
		p.want(0, "end 1 6")
		p.want(0, "child 7 6")
		p.want(0, "inst 1 7 0")
		p.want(0, "linear 5 %d", rest)
		p.want(0, "launch 7 0")
		p.want(0, "freesync 5")
		p.want(0, "graphtrim 0")
		p.want(0, "linear 5 %d", rest+p.grain)
		p.want(2, "launch 7 0")
		p.want(0, "freesync 5")
		p.want(0, "gone 7")
		p.settled("child", 0)
		for g := 10; g < 12; g++ {
			p.want(0, "node 0 %d %d 1", g, 160*mib)
			p.want(0, "inst 2 %d 0", g)
		}
		for i := range 6 {
			p.want(0, "launch %d 0", 10+i%2)
		}
		p.want(0, "gone 10")
		p.want(0, "gone 11")
		p.want(0, "graphtrim 0")
		p.settled("two graphs", 0)
	})
}
