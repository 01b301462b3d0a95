// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

package hook

import "testing"

// A pod's sandbox bears the annotations of its pod, also those for one container
// and bad ones: they are judged where the container is made, not there.
func TestSandboxAsksForNothing(t *testing.T) {
	for _, key := range []string{"gpushare.io/memory", "gpushare.io/memory.main", "gpushare.io/memroy"} {
		s := specOf(t, nil, map[string]string{"io.kubernetes.cri.container-type": "sandbox", key: "1Gi"})
		if a, err := s.Ask(); err != nil || a != (Ask{}) {
			t.Errorf("%s on a sandbox: %+v, %v", key, a, err)
		}
		s = specOf(t, nil, map[string]string{"io.kubernetes.cri.container-type": "container", key: "1Gi"})
		if a, err := s.Ask(); err == nil && a == (Ask{}) {
			t.Errorf("%s on a container asks for nothing and is no error", key)
		}
	}
}
