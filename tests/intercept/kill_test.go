// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

package intercept

import "testing"

// A process that is killed between any two instructions loses nothing and leaves
// nothing: see cuda-intercept/test/stepkill.c.
func TestKillAtEveryInstruction(t *testing.T) {
	if sanitized() {
		t.Skip("the sanitizers' own instructions are not ours to test")
	}
	program := compile(t, "stepkill.c")
	driver := standIn(t)
	for what, stride := range map[string]string{"alloc": "3", "free": "2", "context": "11", "start": "29"} {
		t.Run(what, func(t *testing.T) {
			limit := standInLimit()
			limit.ContextBytes = mib / 16
			c := newContainer(t, limit)
			c.driver = driver
			if out, err := c.run(program, what, stride); err != nil || out != "" {
				t.Errorf("%v\n%s", err, out)
			}
		})
	}
}
