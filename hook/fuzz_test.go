// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

package hook

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
)

func FuzzEdit(f *testing.F) {
	for name := range goldens {
		f.Add(readFile(f, name+".in.json"))
	}
	f.Add([]byte(`{"linux":{"resources":{"devices":null},"devices":null},"mounts":null,"hooks":null,"process":null,"annotations":null}`))
	f.Add([]byte(`{"mounts":[{"destination":"../run/gpushare","type":"tmpfs"}],"linux":{"devices":[{"path":"/dev/nvidia9","major":-1}]}}`))
	f.Fuzz(func(t *testing.T, in []byte) {
		s, err := Parse(in)
		if err != nil {
			return
		}
		ask, _ := s.Ask()
		reasons := s.Reasons(ask, testHost)
		if same, err := s.Bytes(); err != nil || !sameJSON(in, same) {
			t.Fatalf("reading alone changed the spec: %v", err)
		}
		exposed, err := s.Check(testHost, Override{Privileged: true, HostNamespaces: true})
		if len(reasons) == 0 || err != nil {
			return
		}
		d, grant := testDriver(t, "hooks"), testGrant("0")
		grant.EveryDevice = slices.Contains(exposed, ExposedPrivileged)
		once, err := edit(in, d, grant)
		if err != nil {
			return
		}
		checkEdited(t, once, 0)
		twice, err := edit(once, d, grant)
		if err != nil {
			t.Fatalf("edited spec cannot be edited: %v", err)
		}
		if string(once) != string(twice) {
			t.Fatalf("edited once\n%s\ntwice\n%s", once, twice)
		}
	})
}

func sameJSON(a, b []byte) bool {
	x, err := decode(a)
	if err != nil {
		return false
	}
	y, err := decode(b)
	if err != nil {
		return false
	}
	p, _ := json.Marshal(x)
	q, _ := json.Marshal(y)
	return string(p) == string(q)
}

func FuzzAsk(f *testing.F) {
	f.Add("GPUSHARE_MEMORY=8Gi", "gpushare.io/compute", "30%")
	f.Add("GPUSHARE_PROFILE=1of2", "gpushare.io/gpu", "0")
	f.Add("GPUSHARE_MEM", "gpushare.io/memory.a", "")
	f.Fuzz(func(t *testing.T, variable, key, value string) {
		s := specOf(t, []string{variable}, map[string]string{key: value})
		ask, err := s.Ask()
		if err != nil {
			return
		}
		// Nothing under our prefixes may pass without being understood.
		if strings.HasPrefix(variable, EnvPrefix) && ask.Source != SourceEnv && ask.Source != SourceBoth {
			t.Errorf("%q passed unseen: %+v", variable, ask)
		}
		if strings.HasPrefix(key, AnnotationPrefix) && key != ClaimAnnotation && ask.Source == "" {
			t.Errorf("%q passed unseen: %+v", key, ask)
		}
	})
}
