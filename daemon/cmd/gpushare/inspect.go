// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	v1 "github.com/gpushare/gpushare/daemon/api/v1"
	"github.com/gpushare/gpushare/limiter/quantity"
)

func (t *terminal) inspectCommand() *cli.Command {
	return &cli.Command{
		Name: "inspect", Usage: "say everything about containers: limits and where they come from, use, processes, events", ArgsUsage: "CONTAINER …",
		UsageText: "gpushare inspect train\ngpushare inspect -o json train llm",
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "output", Aliases: []string{"o"}, Value: "text", Usage: "write `FORM`: text or json"},
		},
		Action: t.inspect,
	}
}

// inspect shows those that are there, also if others are not.
func (t *terminal) inspect(c *cli.Context) error {
	f, err := form(c, "text", "json")
	if err != nil {
		return err
	}
	if !c.Args().Present() {
		return usagef("say which container (see: gpushare ps)")
	}
	cl, err := client(c)
	if err != nil {
		return err
	}
	found := []v1.Container{}
	var failed []error
	for _, ref := range c.Args().Slice() {
		one, err := cl.Container(c.Context, ref)
		if err == nil {
			found = append(found, one)
			continue
		}
		failed = append(failed, err)
		if code := v1.Code(err); code != v1.CodeNotFound && code != v1.CodeAmbiguous {
			break // it would be the same for the others
		}
	}
	if f == "json" {
		if err := t.json(found); err != nil {
			return err
		}
	} else if len(found) > 0 {
		if d, err := cl.Daemon(c.Context); err == nil {
			t.simulated(d.Simulated)
		}
		for i, one := range found {
			if i > 0 {
				fmt.Fprintln(t.out)
			}
			inspectText(t.out, one)
		}
	}
	for _, err := range failed[:max(0, len(failed)-1)] {
		t.report(err)
	}
	if len(failed) > 0 {
		return failed[len(failed)-1]
	}
	return nil
}

// sheet writes lines of a heading and what belongs to it.
type sheet struct{ out io.Writer }

func (s sheet) line(head, format string, args ...any) {
	fmt.Fprintln(s.out, strings.TrimRight(fmt.Sprintf("%-12s%s", head, oneLine(fmt.Sprintf(format, args...))), " "))
}

func inspectText(out io.Writer, c v1.Container) {
	s := sheet{out}
	d := c.Details
	if d == nil { // a daemon of before
		d = &v1.Details{Asked: c.Request}
	}
	name := c.Name
	if name == "" {
		name = "(no name)"
	}
	s.line("Container", "%s  %s  id %s", name, c.Engine, c.ID)
	if d.Pod != nil {
		s.line("Pod", "%s/%s, container %s", d.Pod.Namespace, d.Pod.Name, d.Pod.Container)
	}
	s.line("State", "%s, %s since %s, first process %s", condition(c), c.Phase, stamp(c.Created), orNone(c.PID))
	s.line("Asked", "%s", asked(d.Asked, c.Source))
	for _, l := range []struct{ key, name string }{{v1.LimitProfile, "profile"}, {v1.LimitMemory, "memory"}, {v1.LimitCompute, "compute"}, {v1.LimitComputeMax, "compute-max"}, {v1.LimitHostMemory, "host-memory"}} {
		if w, ok := d.Set[l.key]; ok {
			s.line("Set", "%s %s by gpushare set, %s", l.name, w.Word, stamp(w.Time))
		}
	}
	for _, g := range c.GPUs {
		inspectGPU(s, g)
	}
	if c.HostMemoryLimitBytes > 0 || c.HostMemoryUsedBytes > 0 {
		s.line("Host memory", "%s of %s (%d B) hold what does not fit; the GPU reads and writes it over its bus, far slower than its own",
			quantity.FormatBytes(c.HostMemoryUsedBytes), quantity.FormatBytes(c.HostMemoryLimitBytes), c.HostMemoryLimitBytes)
	}
	if c.ExportTables > 0 {
		s.line("Unknown", "%d private driver tables were handed out; calls through them are not seen", c.ExportTables)
	}
	inspectProcesses(s, c, d)
	for _, l := range []struct{ head, path string }{
		{"Directory", d.Directory}, {"Bundle", d.Bundle}, {"Runtime", d.RuntimeRoot}, {"Cgroup", d.Cgroup},
	} {
		if l.path != "" {
			s.line(l.head, "%s", l.path)
		}
	}
	head := "Events"
	for _, e := range d.Events {
		s.line(head, "%s  %s: %s", stamp(e.Time), e.Reason, e.Message)
		head = ""
	}
}

func inspectGPU(s sheet, g v1.ContainerGPU) {
	driver := "no driver figure"
	if g.MemoryDriverBytes != nil {
		driver = "driver " + quantity.FormatBytes(*g.MemoryDriverBytes)
	}
	over := ""
	if g.OverrunBytes > 0 {
		over = " and " + quantity.FormatBytes(g.OverrunBytes) + " beyond it"
	}
	ahead := ""
	if g.MemoryGuessedBytes > 0 {
		ahead = ", charged in advance " + quantity.FormatBytes(g.MemoryGuessedBytes)
	}
	s.line(fmt.Sprintf("GPU %d", g.Index), "%s  %s", g.UUID, g.Name)
	s.line("  memory", "limit %s (%d B), used %s%s: own account %s, growth %s%s, %s; peak %s; %d refused, %s of them", quantity.FormatBytes(g.MemoryLimitBytes), g.MemoryLimitBytes,
		quantity.FormatBytes(g.MemoryUsedBytes), over, quantity.FormatBytes(g.MemoryLedgerBytes), quantity.FormatBytes(g.MemoryGrowthBytes), ahead, driver, quantity.FormatBytes(g.MemoryPeakBytes),
		g.Denied, quantity.FormatBytes(g.DeniedBytes))
	s.line("  compute", "%s, ceiling %s; used %s, waited %s of the last seconds; %d launches, %d of them waited", guarantee(g.ComputeMilli), ceiling(g.ComputeMaxMilli),
		percent(g.ComputeUsedMilli), percent(g.ThrottledMilli), g.Launches, g.Throttles)
}

func inspectProcesses(s sheet, c v1.Container, d *v1.Details) {
	for _, l := range d.Libraries {
		age := "current"
		if !l.Current {
			age = "older than what starts now; restart the container to change"
		}
		dir := l.Directory
		if dir == "" {
			dir, age = "(unknown)", "in no directory that is there"
		}
		s.line("Library", "%s (%s) in %d processes", dir, age, l.Processes)
	}
	s.line("Processes", "%d, %d use a GPU", d.ProcessesTotal, c.Processes)
	for _, p := range d.Processes {
		slot := "no GPU"
		if p.Slot != nil {
			slot = fmt.Sprintf("slot %d, %s", *p.Slot, quantity.FormatBytes(p.MemoryBytes))
		}
		lib := ""
		if p.Library != "" {
			lib = ", library " + filepath.Base(p.Library)
		}
		s.line("", "pid %d (%d inside) %s: %s%s", p.PID, p.ContainerPID, p.Command, slot, lib)
	}
	if more := d.ProcessesTotal - len(d.Processes); more > 0 {
		s.line("", "and %d more", more)
	}
}

func stamp(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05Z") }

func orNone(pid int) string {
	if pid == 0 {
		return "none yet"
	}
	return fmt.Sprintf("pid %d", pid)
}

// asked are the words of a request with their source.
func asked(r v1.Request, source string) string {
	var out []string
	for _, w := range []struct{ name, word string }{
		{"profile", r.Profile}, {"memory", r.Memory}, {"compute", r.Compute}, {"compute-max", r.ComputeMax}, {"host-memory", r.HostMemory}, {"gpu", r.GPU},
	} {
		if w.word != "" {
			out = append(out, w.name+" "+w.word)
		}
	}
	if len(out) == 0 {
		return "nothing; the node's default share"
	}
	if source == "" {
		source = "unknown"
	}
	return fmt.Sprintf("%s (source: %s)", strings.Join(out, ", "), source)
}
