// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

package test

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestNotSupported calls all that nvidia-ml-py has of a device and compares what
// is not supported with the list in simgpu/api, card by card.
func TestNotSupported(t *testing.T) {
	ofLibraries(t)
	plain(t, "Python does not start with one's library")
	wheels, err := filepath.Abs("../../.cache/clients")
	if err != nil {
		t.Fatal(err)
	}
	if p := os.Getenv("SIMGPU_WHEELS"); p != "" {
		wheels = p
	}
	if _, err := os.Stat(filepath.Join(wheels, "pynvml.py")); err != nil {
		t.Skip("nvidia-ml-py is not there (tests/setup/wheels.sh gets it): ", err)
	}
	list, err := os.ReadFile("../api/nvml-not-supported.tsv")
	if err != nil {
		t.Fatal(err)
	}
	for _, card := range []string{"t4", "a100", "l40s", "h100", "b200", "rtx4090", "rtx-pro-6000"} {
		t.Run(card, func(t *testing.T) {
			var want, got []string
			for _, l := range strings.Split(strings.TrimSpace(string(list)), "\n")[1:] {
				name, cards, _ := strings.Cut(l, "\t")
				if cards == "all" || slices.Contains(strings.Fields(cards), card) {
					want = append(want, name)
				}
			}
			n := up(t, "--profile", card, "--driver", "newest")
			cmd := exec.Command("python3", "py/supported.py")
			cmd.Env = append(os.Environ(), "LD_LIBRARY_PATH="+filepath.Join(n.dir, "lib"), "PYTHONPATH="+wheels)
			for _, l := range strings.Split(strings.TrimSpace(n.finish(cmd)), "\n") {
				name, code, _ := strings.Cut(l, "\t")
				switch code {
				case "3":
					got = append(got, "nvmlDeviceGet"+name)
				case "0", "6": // an answer, or nothing to tell
				default:
					t.Errorf("%s: %s", name, code)
				}
			}
			for _, name := range want {
				if !slices.Contains(got, name) {
					t.Errorf("%s answers, and is listed as not supported", name)
				}
			}
			for _, name := range got {
				if !slices.Contains(want, name) {
					t.Errorf("%s is not supported, and not in the list", name)
				}
			}
		})
	}
}
