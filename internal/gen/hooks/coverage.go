// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

var meaning = map[string]string{
	"charge":    "takes device memory: charged against the limit before the driver is asked",
	"release":   "gives device memory back: credited after the driver has freed it",
	"lifecycle": "other rows need to know of it",
	"view":      "shows the card: answered from the container's limit and ledger",
	"gate":      "work for the GPU, or a wait for it: held to the share of GPU time",
	"capture":   "begins or ends a recording: what is recorded is not gated",
	"lookup":    "hands out functions: a hooked one's address is replaced by ours",
	"share":     "memory that more than one process holds",
	"refuse":    "state of a card that others use",
	"forward":   "nothing to do",
}

// The states of a name.
const (
	enforced  = "enforced"
	viewed    = "viewed"
	refused   = "refused"
	forwarded = "forwarded"
	notYet    = "not yet"
)

var states = []struct{ name, meaning string }{
	{enforced, "our wrapper stands before the driver; the test named fails without it"},
	{viewed, "our wrapper answers for the container; the test named fails without it"},
	{refused, "our wrapper answers NVML_ERROR_NO_PERMISSION and does not ask the driver"},
	{forwarded, "not defined by us: the name resolves to the real library, for the reason named"},
	{notYet, "as forwarded, though it should have a wrapper"},
}

// entry is one line of the page.
type entry struct {
	row
	state, remark string
}

func (t table) entries() []entry {
	var all []entry
	for _, h := range t.hooks {
		e := entry{row: h.row, state: enforced, remark: "`" + t.test(h) + "`"}
		switch h.class {
		case "view":
			e.state = viewed
		case "refuse":
			e.state, e.remark = refused, t.reasons[h.why]+"; "+e.remark
		}
		all = append(all, e)
	}
	for _, r := range t.forward {
		all = append(all, entry{r, forwarded, t.reasons[r.why]})
	}
	for _, r := range t.later {
		all = append(all, entry{r, notYet, t.reasons[r.why]})
	}
	slices.SortFunc(all, func(a, b entry) int { return cmp.Compare(a.symbol, b.symbol) })
	return all
}

// coverage is the reference page.
func coverage(tables []table) string {
	var b strings.Builder
	fmt.Fprintf(&b, "<!-- SPDX-FileCopyrightText: The gpushare authors -->\n<!-- SPDX-License-Identifier: Apache-2.0 -->\n<!-- %s -->\n\n", mark)
	b.WriteString("# What gpushare does with every call of the driver\n\n")
	b.WriteString("Every name that NVIDIA's libraries export, CUDA 11.4 to 13.5, made from\n`cuda-intercept/hooks/*.def`.\n\n| state |")
	for _, t := range tables {
		fmt.Fprintf(&b, " %s |", t.lib.document)
	}
	b.WriteString(" what it means |\n|---|" + strings.Repeat("---:|", len(tables)) + "---|\n")
	for _, s := range states {
		fmt.Fprintf(&b, "| %s |", s.name)
		for _, t := range tables {
			fmt.Fprintf(&b, " %d |", count(t, s.name))
		}
		fmt.Fprintf(&b, " %s |\n", s.meaning)
	}
	b.WriteString("| all |")
	for _, t := range tables {
		fmt.Fprintf(&b, " %d |", len(t.rows()))
	}
	b.WriteString(" |\n\n| class | what it is about |\n|---|---|\n")
	for _, c := range append(slices.Clone(classes), "refuse", "forward") {
		fmt.Fprintf(&b, "| %s | %s |\n", c, meaning[c])
	}
	b.WriteString("\nA name that the driver at hand lacks is not found through us either:\n[names that a driver lacks](../../cuda-intercept/README.md#names-that-a-driver-lacks).\n")
	for _, t := range tables {
		fmt.Fprintf(&b, "\n## %s\n\n%s\n\n| name | state | class | since | test, or reason |\n|---|---|---|---|---|\n", t.lib.document, t.lib.since)
		for _, e := range t.entries() {
			fmt.Fprintf(&b, "| `%s` | %s | %s | %s | %s |\n", e.symbol, e.state, e.class, version(e.since), e.remark)
		}
	}
	return b.String()
}

func count(t table, state string) int {
	n := 0
	for _, e := range t.entries() {
		if e.state == state {
			n++
		}
	}
	return n
}

// version writes 11040 as 11.4; old ABIs carry numbers such as 3020 as 3.2.
func version(since string) string {
	var n int
	fmt.Sscanf(since, "%d", &n)
	if n == 0 {
		return "-"
	}
	return fmt.Sprintf("%d.%d", n/1000, n%1000/10)
}
