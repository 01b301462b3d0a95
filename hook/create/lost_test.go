// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

package create

import (
	"context"
	"testing"

	v1 "github.com/gpushare/gpushare/daemon/api/v1"
	"github.com/gpushare/gpushare/hook"
	"github.com/gpushare/gpushare/internal/config"
)

// answers is a daemon whose answer to a claim is err.
type answers struct {
	err      error
	released []string
}

func (a *answers) Claim(context.Context, v1.ClaimRequest) (v1.Claim, error) { return v1.Claim{}, a.err }

func (a *answers) Release(ctx context.Context, id string) error {
	if ctx.Err() == nil {
		a.released = append(a.released, id)
	}
	return nil
}

// A claim whose answer got lost is given back, also after the caller has gone; one
// that was refused is not.
func TestLostAnswer(t *testing.T) {
	spec, err := hook.Parse([]byte("{}"))
	if err != nil {
		t.Fatal(err)
	}
	gone, cancel := context.WithCancel(context.Background())
	cancel()
	for code, want := range map[string]int{v1.CodeDaemonDown: 1, v1.CodeInternal: 0} {
		d := &answers{err: v1.Errorf(0, code, "no answer")}
		p := planned{spec: spec}
		if _, err := p.carryOut(gone, &config.Config{}, &Container{ID: "c1"}, &bundle{}, d); err == nil {
			t.Errorf("%s: no error", code)
		}
		if len(d.released) != want {
			t.Errorf("%s: released %q, want %d", code, d.released, want)
		}
	}
}
