// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"strings"
	"testing"
)

func TestRun(t *testing.T) {
	const head = "docker run --runtime=gpushare -e GPUSHARE_MEMORY="
	for _, tc := range []struct{ in, want string }{
		{"--gpu-memory 6Gi img", head + "6Gi img"},
		{"--gpu-memory 6Gi --gpu-compute 25% img sh -c true", head + "6Gi -e GPUSHARE_COMPUTE=25% img sh -c true"},
		{"--gpu-memory=8g img", head + "8Gi img"},
		{"--gpu-memory=1.5GB img", head + "1536Mi img"},
		{"--gpu-memory=1000B img", head + "1000B img"},
		{"--gpu-memory 25% --gpu-compute 0.3 --gpu-compute-max none --gpu 1 img", head + "25% -e GPUSHARE_COMPUTE=0.3 -e GPUSHARE_COMPUTE_MAX=none -e GPUSHARE_GPU=1 img"},
		{"--gpu-profile 1of4 --gpu 1 img", "docker run --runtime=gpushare -e GPUSHARE_PROFILE=1of4 -e GPUSHARE_GPU=1 img"},
		{"--gpu-memory 6Gi --gpu-host-memory 12g img", head + "6Gi -e GPUSHARE_HOST_MEMORY=12Gi img"},
		{"--gpu-profile 1of4 --gpu-host-memory=1000B img", "docker run --runtime=gpushare -e GPUSHARE_PROFILE=1of4 -e GPUSHARE_HOST_MEMORY=1000B img"},
		// Ours are found among docker's, and docker's values are not taken for the image.
		{"-it --rm --name x --gpu-memory 6Gi -v /a:/b img", head + "6Gi -it --rm --name x -v /a:/b img"},
		{"-itv /a:/b --gpu-memory 6Gi img", head + "6Gi -itv /a:/b img"},
		{"-p80:80 -e A=B --gpu-memory 6Gi img", head + "6Gi -p80:80 -e A=B img"},
		{"--name=x --network none -d --gpu-memory 6Gi img", head + "6Gi --name=x --network none -d img"},
		// What follows the image is the container's own.
		{"--gpu-memory 6Gi img --gpu-memory 7Gi --print", head + "6Gi img --gpu-memory 7Gi --print"},
		{"--gpu-memory 6Gi -- img -x", head + "6Gi -- img -x"},
	} {
		_, errs, status, argv := call(append([]string{"run"}, strings.Fields(tc.in)...)...)
		if got := strings.Join(argv, " "); got != tc.want || status != 0 || strings.Count(errs, "\n") != 1 {
			t.Errorf("%s:\ngot  %s (%d, %q)\nwant %s", tc.in, got, status, errs, tc.want)
		}
	}
}

// What docker's units were taken to mean is said.
func TestRunEchoes(t *testing.T) {
	_, errs, _, _ := call("run", "--gpu-memory", "8g", "--gpu-compute", "30%", "img")
	if want := "gpushare: memory 8 GiB, compute 30% (--print shows the docker command)\n"; errs != want {
		t.Errorf("%q, want %q", errs, want)
	}
}

func TestRunPrints(t *testing.T) {
	out, errs, status, argv := call("run", "--print", "--gpu-memory", "8g", "img", "sh", "-c", "it's; $x")
	if want := `docker run --runtime=gpushare -e GPUSHARE_MEMORY=8Gi img sh -c 'it'\''s; $x'` + "\n"; out != want || errs != "" || status != 0 || argv != nil {
		t.Errorf("%q %q %d %v, want %q", out, errs, status, argv, want)
	}
}

// A mistake is told as docker tells its own: with status 125, and docker is not
// started.
func TestRunRefuses(t *testing.T) {
	for in, want := range map[string]string{
		"img":                                   "--gpu-memory is missing",
		"":                                      "which image?",
		"--gpu-memory":                          "a value is missing",
		"--gpu-memory= img":                     "is empty",
		"--gpu-memory 8Gi":                      "which image?",
		"--gpu-memory 8Gi --gpu-memory 9Gi img": "given twice",
		"--gpu-memory 8 img":                    "the unit is missing",
		"--gpu-memory 8Gi --gpu-host-memory 50% img":                   "--gpu-host-memory \"50%\": host memory is not counted in parts",
		"--gpu-host-memory 8Gi img":                                    "--gpu-memory is missing",
		"--gpu-memory 8Gi --gpu-host-mem 8Gi img":                      "did you mean --gpu-host-memory?",
		"--gpu-memory 8Gb img":                                         "bits",
		"--gpu-memory 8Gi --gpu-compute 30 img":                        "did you mean 30%?",
		"--gpu-mem 8Gi img":                                            "unknown flag --gpu-mem: did you mean --gpu-memory?",
		"--gpu-memory 8Gi --gpu-frobnicate img":                        "unknown flag --gpu-frobnicate; see: gpushare run --help",
		"--gpu-memory 8Gi --gpu-compute 30% --gpu-compute-max 20% img": "below the guaranteed 30%",
		"--gpu-profile 1of4 --gpu-memory 8Gi img":                      "leave out the other words",
		"--gpu-profile 1of99 img":                                      "is no profile: write 1of2",
		"--gpu-memory 8Gi --runtime runc img":                          "--runtime",
		"--gpu-memory 8Gi --gpus all img":                              "--gpus",
	} {
		out, errs, status, argv := call(append([]string{"run"}, strings.Fields(in)...)...)
		if status != 125 || argv != nil || out != "" || !strings.Contains(errs, want) || !strings.HasPrefix(errs, "gpushare: ") {
			t.Errorf("%s: %d %q, docker %v; want %q", in, status, errs, argv, want)
		}
	}
}

func TestRunHelp(t *testing.T) {
	if out, _, status, _ := call("run", "--help"); status != 0 || !strings.Contains(out, "--gpu-compute-max") {
		t.Errorf("%d %q", status, out)
	}
}
