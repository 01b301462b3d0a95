// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

package intercept

import (
	"bytes"
	"context"
	"encoding/binary"
	"os"
	"path/filepath"
	"time"

	"github.com/gpushare/gpushare/limiter/region"
)

// soaking tells whether to make the full count of what else is a sample: some
// minutes in all. `make soak-intercept` does.
func soaking() bool { return os.Getenv("GPUSHARE_TEST_SOAK") != "" }

// often is how often to do a thing: few times, or the full count.
func often(few, full int) int {
	if soaking() {
		return full
	}
	return few
}

// swept is the sum of the ledger of the first GPU after a look for the dead, as the
// daemon takes it.
func (c *container) swept() uint64 {
	c.t.Helper()
	l, err := region.OpenLedger(filepath.Join(c.dir, "ledger"), c.limits.GPUs())
	if err != nil {
		c.t.Fatal(err)
	}
	defer l.Close()
	u, err := l.Sweep()
	if err != nil {
		c.t.Fatal(err)
	}
	return u.GPU[0].Bytes
}

// bySlot is what each process that has a slot is charged on the first GPU.
func (c *container) bySlot() map[uint32]uint64 {
	c.t.Helper()
	b, err := os.ReadFile(filepath.Join(c.dir, "ledger"))
	if err != nil {
		c.t.Fatal(err)
	}
	of := map[uint32]uint64{}
	for i := range int64(c.slotHigh()) {
		slot := b[region.LedgerHeaderSize+i*region.SlotSize:]
		if binary.NativeEndian.Uint32(slot) == region.SlotUsed {
			of[binary.NativeEndian.Uint32(slot[4:])] = binary.NativeEndian.Uint64(b[region.UsedOffset(0, int(i)):])
		}
	}
	return of
}

// slotHigh is how many slots were ever in use at once, or nearly so.
func (c *container) slotHigh() uint32 {
	c.t.Helper()
	b, err := os.ReadFile(filepath.Join(c.dir, "ledger"))
	if err != nil {
		c.t.Fatal(err)
	}
	return binary.NativeEndian.Uint32(b[20:])
}

// runLong is run for what takes minutes.
func (c *container) runLong(program string, args ...string) (string, error) {
	c.t.Helper()
	ctx, cancel := context.WithTimeout(c.t.Context(), 10*time.Minute)
	defer cancel()
	var out bytes.Buffer
	cmd := c.command(ctx, program, args...)
	cmd.Stdout, cmd.Stderr = &out, &out
	err := cmd.Run()
	return out.String(), err
}
