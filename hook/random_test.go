// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

package hook

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
)

// pieces are entries that engines, users and other vendors put into specs.
var pieces = map[string][]string{
	"mounts": {
		`{"destination":"/proc","type":"proc","source":"proc"}`,
		`{"destination":"/run","type":"tmpfs","source":"tmpfs"}`,
		`{"destination":"/run/gpushare","type":"tmpfs","source":"tmpfs","options":["rw"]}`,
		`{"destination":"/run/gpushare/../gpushare/limits","type":"bind","source":"/tmp/x","options":["bind","rw"]}`,
		`{"destination":"run/gpushare/ledger","type":"bind","source":"/tmp/x","options":["bind","rw"]}`,
		`{"destination":"/usr/lib/x86_64-linux-gnu","type":"bind","source":"/tmp/lib","options":["rbind","rw"]}`,
		`{"destination":"/usr/lib/x86_64-linux-gnu/libcuda.so.1","type":"bind","source":"/tmp/lib/libcuda.so.1","options":["rbind"]}`,
		`{"destination":"/usr","type":"bind","source":"/tmp/usr","options":["rbind"],"x":{"y":1}}`,
		`{"destination":"/dev/nvidia0","type":"bind","source":"/dev/nvidia0","options":["bind"]}`,
		`{"destination":"/opt/libnvidia-ml.so","source":"/opt/libnvidia-ml.so","options":["rbind"]}`,
		`{"destination":"/lib/firmware/nvidia/1/gsp.bin","source":"/lib/firmware/nvidia/1/gsp.bin","options":["bind"]}`,
	},
	"devices": {
		`{"path":"/dev/fuse","type":"c","major":10,"minor":229,"x":null}`,
		`{"path":"/dev/nvidia0","type":"c","major":195,"minor":0}`,
		`{"path":"/dev/nvidia7","type":"c","major":195,"minor":7}`,
		`{"path":"/dev/other","type":"c","major":195,"minor":3}`,
		`{"path":"/dev/nvidia-uvm","type":"c","major":511,"minor":0}`,
		`{"path":"/dev/nvidia-caps/nvidia-cap1","type":"c","major":512,"minor":1}`,
		`{"path":"/dev/dri/card1","type":"c","major":226,"minor":1}`,
		`{"path":"/dev/sda","type":"b","major":195,"minor":0}`,
		`{"path":"/dev/p","type":"u","major":195,"minor":1}`,
		`{"path":"/dev/fifo","type":"p"}`,
	},
	"rules": {
		`{"allow":false,"access":"rwm"}`,
		`{"allow":true,"access":"rwm"}`,
		`{"allow":true,"type":"a"}`,
		`{"allow":true,"type":"c","major":195,"access":"rw"}`,
		`{"allow":true,"type":"c","major":195,"minor":5,"access":"m"}`,
		`{"allow":true,"type":"c","major":511,"access":"rw"}`,
		`{"allow":true,"type":"c","major":-1,"minor":-1,"access":"rwm"}`,
		`{"allow":true,"type":"c","access":"m"}`,
		`{"allow":true,"type":"c","major":226,"minor":1,"access":"rwm"}`,
		`{"allow":true,"type":"b","access":"rwm"}`,
		`{"allow":true,"type":"c","major":1,"minor":3,"access":"rwm","x":[]}`,
	},
	"hooks": {
		`{"path":"/usr/bin/nvidia-container-runtime-hook","args":["nvidia-container-runtime-hook","prestart"]}`,
		`{"path":"/usr/bin/nvidia-cdi-hook","args":["nvidia-cdi-hook","update-ldcache"]}`,
		`{"path":"/usr/bin/nvidia-ctk","args":["nvidia-ctk","hook","create-symlinks"]}`,
		`{"path":"/usr/bin/site","env":["A=1"]}`,
	},
	"env": {`"PATH=/bin"`, `"NVIDIA_VISIBLE_DEVICES=all"`, `"NVIDIA_VISIBLE_DEVICES=0"`, `"NVIDIA_CTK_LIBCUDA_DIR=/evil"`, `"LD_PRELOAD=/x.so"`, `"NVIDIA_VISIBLE_DEVICES"`},
}

func pick(r *rand.Rand, kind string) string {
	var chosen []string
	for range r.IntN(8) {
		chosen = append(chosen, pieces[kind][r.IntN(len(pieces[kind]))])
	}
	return "[" + strings.Join(chosen, ",") + "]"
}

// Whatever the spec holds and in whatever order: after the edit only what was
// granted is reachable, and a second edit changes nothing.
func TestEditRandomSpecs(t *testing.T) {
	const seed = 1
	r := rand.New(rand.NewPCG(seed, 0))
	drivers := []*Driver{testDriver(t, "plain"), testDriver(t, "hooks")}
	for i := range 3000 {
		in := fmt.Sprintf(`{"root":{"path":"rootfs"},"process":{"env":%s},"mounts":%s,"linux":{"devices":%s,"resources":{"devices":%s}},"hooks":{"prestart":%s,"createContainer":%s}}`,
			pick(r, "env"), pick(r, "mounts"), pick(r, "devices"), pick(r, "rules"), pick(r, "hooks"), pick(r, "hooks"))
		d, grant := drivers[r.IntN(len(drivers))], testGrant("0")
		grant.EveryDevice = r.IntN(2) == 0
		once, err := edit([]byte(in), d, grant)
		if err != nil {
			t.Fatalf("seed %d, spec %d: %v\n%s", seed, i, err, in)
		}
		checkEdited(t, once, 0)
		twice, err := edit(once, d, grant)
		if err != nil || string(once) != string(twice) {
			t.Fatalf("seed %d, spec %d: second edit differs (%v)\n%s\nonce\n%s\ntwice\n%s", seed, i, err, in, once, twice)
		}
		if t.Failed() {
			t.Fatalf("seed %d, spec %d\n%s\n%s", seed, i, in, once)
		}
	}
}
