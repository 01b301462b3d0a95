// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

package hook

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
)

// specOf makes a small spec of env and annotations.
func specOf(t testing.TB, env []string, annotations map[string]string) *Spec {
	t.Helper()
	data, err := json.Marshal(map[string]any{
		"process": map[string]any{"env": env}, "annotations": annotations,
	})
	if err != nil {
		t.Fatal(err)
	}
	s, err := Parse(data)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestAsk(t *testing.T) {
	cri := func(more map[string]string) map[string]string {
		more["io.kubernetes.cri.container-name"] = "app"
		return more
	}
	for name, c := range map[string]struct {
		env         []string
		annotations map[string]string
		want        Ask
	}{
		"nothing":                  {[]string{"PATH=/bin", "NVIDIA_VISIBLE_DEVICES=all"}, nil, Ask{}},
		"env":                      {[]string{"GPUSHARE_MEMORY=8Gi", "GPUSHARE_COMPUTE=30%", "GPUSHARE_COMPUTE_MAX=none", "GPUSHARE_GPU=1"}, nil, Ask{Memory: "8Gi", Compute: "30%", ComputeMax: "none", GPU: "1", Source: SourceEnv}},
		"annotations":              {nil, map[string]string{"gpushare.io/memory": "8Gi", "gpushare.io/compute": "0.3", "gpushare.io/compute-max": "50%", "gpushare.io/gpu": "0"}, Ask{Memory: "8Gi", Compute: "0.3", ComputeMax: "50%", GPU: "0", Source: SourceAnnotation}},
		"both, equal":              {[]string{"GPUSHARE_MEMORY=8Gi"}, map[string]string{"gpushare.io/memory": "8Gi"}, Ask{Memory: "8Gi", Source: SourceBoth}},
		"both, different words":    {[]string{"GPUSHARE_COMPUTE=10%"}, map[string]string{"gpushare.io/memory": "8Gi"}, Ask{Memory: "8Gi", Compute: "10%", Source: SourceBoth}},
		"twice the same":           {[]string{"GPUSHARE_MEMORY=8Gi", "GPUSHARE_MEMORY=8Gi"}, nil, Ask{Memory: "8Gi", Source: SourceEnv}},
		"our own mark":             {nil, map[string]string{ClaimAnnotation: "c1 sha256:00"}, Ask{}},
		"for one container":        {nil, cri(map[string]string{"gpushare.io/memory": "1Gi", "gpushare.io/memory.app": "2Gi"}), Ask{Memory: "2Gi", Source: SourceAnnotation}},
		"for another container":    {nil, cri(map[string]string{"gpushare.io/memory.side": "2Gi"}), Ask{}},
		"host memory":              {[]string{"GPUSHARE_MEMORY=8Gi", "GPUSHARE_HOST_MEMORY=16Gi"}, nil, Ask{Memory: "8Gi", HostMemory: "16Gi", Source: SourceEnv}},
		"host memory by profile":   {nil, map[string]string{"gpushare.io/profile": "1of4", "gpushare.io/host-memory": "16Gi"}, Ask{Profile: "1of4", HostMemory: "16Gi", Source: SourceAnnotation}},
		"host memory of one":       {nil, cri(map[string]string{"gpushare.io/memory": "1Gi", "gpushare.io/host-memory": "1Gi", "gpushare.io/host-memory.app": "2Gi", "gpushare.io/host-memory.side": "3Gi"}), Ask{Memory: "1Gi", HostMemory: "2Gi", Source: SourceAnnotation}},
		"profile":                  {[]string{"GPUSHARE_PROFILE=1of4", "GPUSHARE_GPU=1"}, nil, Ask{Profile: "1of4", GPU: "1", Source: SourceEnv}},
		"profile, annotated":       {nil, map[string]string{"gpushare.io/profile": "slice-4g"}, Ask{Profile: "slice-4g", Source: SourceAnnotation}},
		"profile and GPU":          {[]string{"GPUSHARE_GPU=1"}, map[string]string{"gpushare.io/profile": "1of2"}, Ask{Profile: "1of2", GPU: "1", Source: SourceBoth}},
		"own profile, pod's words": {nil, cri(map[string]string{"gpushare.io/memory": "1Gi", "gpushare.io/compute": "10%", "gpushare.io/gpu": "1", "gpushare.io/profile.app": "1of2"}), Ask{Profile: "1of2", GPU: "1", Source: SourceAnnotation}},
		"own words, pod's profile": {nil, cri(map[string]string{"gpushare.io/memory.app": "1Gi", "gpushare.io/profile": "1of2"}), Ask{Memory: "1Gi", Source: SourceAnnotation}},
		"another's profile":        {nil, cri(map[string]string{"gpushare.io/memory": "1Gi", "gpushare.io/profile.side": "1of2"}), Ask{Memory: "1Gi", Source: SourceAnnotation}},
		"value kept to the letter": {[]string{"GPUSHARE_MEMORY= 8 Gi=x"}, nil, Ask{Memory: " 8 Gi=x", Source: SourceEnv}},
		"lower case is not ours":   {[]string{"gpushare_memory=8Gi", "MY_GPUSHARE_X=1"}, nil, Ask{}},
	} {
		got, err := specOf(t, c.env, c.annotations).Ask()
		if err != nil || got != c.want {
			t.Errorf("%s: %+v, %v; want %+v", name, got, err, c.want)
		}
	}
}

func TestAskRefuses(t *testing.T) {
	env := func(pairs ...string) *Spec { return specOf(t, pairs, nil) }
	annotation := func(key, value string) *Spec { return specOf(t, nil, map[string]string{key: value}) }
	for name, c := range map[string]struct {
		spec       *Spec
		code, want string
	}{
		"abbreviated variable":       {env("GPUSHARE_MEM=8Gi"), CodeUnknown, "did you mean GPUSHARE_MEMORY?"},
		"misspelt variable":          {env("GPUSHARE_MEMROY=8Gi"), CodeUnknown, "did you mean GPUSHARE_MEMORY?"},
		"variable with a dash":       {env("GPUSHARE_COMPUTE-MAX=1"), CodeUnknown, "did you mean GPUSHARE_COMPUTE_MAX?"},
		"abbreviated host memory":    {env("GPUSHARE_HOST_MEM=8Gi"), CodeUnknown, "did you mean GPUSHARE_HOST_MEMORY?"},
		"host memory, a letter off":  {annotation("gpushare.io/host-memroy", "8Gi"), CodeUnknown, "did you mean gpushare.io/host-memory?"},
		"empty host memory":          {env("GPUSHARE_HOST_MEMORY="), CodeUnit, "write for example GPUSHARE_HOST_MEMORY=8Gi"},
		"host memory twice":          {specOf(t, []string{"GPUSHARE_HOST_MEMORY=1Gi"}, map[string]string{"gpushare.io/host-memory": "2Gi"}), CodeConflict, "keep one of them"},
		"plural":                     {env("GPUSHARE_GPUS=1"), CodeUnknown, "did you mean GPUSHARE_GPU?"},
		"far from everything":        {env("GPUSHARE_DISABLE=1"), CodeUnknown, "known are GPUSHARE_MEMORY, GPUSHARE_COMPUTE, GPUSHARE_COMPUTE_MAX, GPUSHARE_GPU"},
		"nothing behind the prefix":  {env("GPUSHARE_=1"), CodeUnknown, "is unknown"},
		"reserved variable":          {env("GPUSHARE_QUEUE=a"), CodeUnknown, "not supported by this version"},
		"abbreviated annotation":     {annotation("gpushare.io/mem", "8Gi"), CodeUnknown, "did you mean gpushare.io/memory?"},
		"abbreviated, one container": {annotation("gpushare.io/mem.training", "8Gi"), CodeUnknown, "did you mean gpushare.io/memory.training?"},
		"annotation with underscore": {annotation("gpushare.io/compute_max", "1"), CodeUnknown, "did you mean gpushare.io/compute-max?"},
		"annotation in upper case":   {annotation("gpushare.io/Memory", "8Gi"), CodeUnknown, "did you mean gpushare.io/memory?"},
		"reserved annotation":        {annotation("gpushare.io/model", "H100"), CodeUnknown, "not supported by this version"},
		"container without a name":   {annotation("gpushare.io/memory.app", "8Gi"), CodeUnknown, "write gpushare.io/memory"},
		"empty variable":             {env("GPUSHARE_MEMORY="), CodeUnit, "GPUSHARE_MEMORY is empty: write for example GPUSHARE_MEMORY=8Gi"},
		"variable without a sign":    {env("GPUSHARE_MEMORY"), CodeUnit, "is empty"},
		"empty annotation":           {annotation("gpushare.io/compute", ""), CodeUnit, "write for example gpushare.io/compute: 30%"},
		"very long":                  {env("GPUSHARE_MEMORY=" + strings.Repeat("9", 4096)), CodeUnit, "4096 bytes long"},
		"long unknown name":          {env("GPUSHARE_" + strings.Repeat("M", 4096) + "=1"), CodeUnknown, "is unknown"},
		"twice":                      {env("GPUSHARE_MEMORY=1Gi", "GPUSHARE_MEMORY=2Gi"), CodeConflict, "given twice"},
		"profile and memory":         {env("GPUSHARE_PROFILE=1of2", "GPUSHARE_MEMORY=8Gi"), CodeConflict, `GPUSHARE_PROFILE is "1of2", which sets memory and compute, but GPUSHARE_MEMORY is given too`},
		"profile and a ceiling":      {specOf(t, []string{"GPUSHARE_COMPUTE_MAX=none"}, map[string]string{"gpushare.io/profile": "1of2"}), CodeConflict, `annotation gpushare.io/profile is "1of2", which sets memory and compute, but GPUSHARE_COMPUTE_MAX`},
		"profiles":                   {env("GPUSHARE_PROFILES=1of2"), CodeUnknown, "did you mean GPUSHARE_PROFILE?"},
		"empty profile":              {annotation("gpushare.io/profile", ""), CodeUnit, "write for example gpushare.io/profile: 1of4"},
		"env against annotation":     {specOf(t, []string{"GPUSHARE_MEMORY=1Gi"}, map[string]string{"gpushare.io/memory": "2Gi"}), CodeConflict, `GPUSHARE_MEMORY is "1Gi" but annotation gpushare.io/memory is "2Gi"`},
	} {
		_, err := c.spec.Ask()
		var r *Refusal
		if !errors.As(err, &r) || r.Code != c.code || !strings.Contains(r.Message, c.want) {
			t.Errorf("%s: %v; want code %s and %q", name, err, c.code, c.want)
		}
	}
}

func TestWithDefault(t *testing.T) {
	reasons := []string{"device node"}
	words := Ask{Memory: "4Gi", Compute: "20%", ComputeMax: "none"}
	for name, c := range map[string]struct {
		ask, share, want Ask
		wantCode         string
	}{
		"asks for nothing, no default":   {wantCode: CodeNoShare},
		"asks for nothing":               {Ask{}, words, Ask{Memory: "4Gi", Compute: "20%", ComputeMax: "none", Source: SourceDefault}, ""},
		"asks for compute only":          {Ask{Compute: "10%", Source: SourceEnv}, words, Ask{Memory: "4Gi", Compute: "10%", Source: SourceEnv}, ""},
		"compute only, no default":       {ask: Ask{Compute: "10%", Source: SourceEnv}, wantCode: CodeNoShare},
		"asks for memory, default stays": {Ask{Memory: "1Gi", Source: SourceEnv}, words, Ask{Memory: "1Gi", Source: SourceEnv}, ""},
		"nothing, profile":               {Ask{}, Ask{Profile: "1of4"}, Ask{Profile: "1of4", Source: SourceDefault}, ""},
		"asks for a profile":             {Ask{Profile: "1of2", Source: SourceEnv}, words, Ask{Profile: "1of2", Source: SourceEnv}, ""},
		"a GPU, profile":                 {Ask{GPU: "1", Source: SourceEnv}, Ask{Profile: "1of4"}, Ask{Profile: "1of4", GPU: "1", Source: SourceEnv}, ""},
		"compute only, profile":          {ask: Ask{Compute: "10%", Source: SourceEnv}, share: Ask{Profile: "1of4"}, wantCode: CodeNoShare},
	} {
		got, err := c.ask.WithDefault(c.share, reasons)
		var r *Refusal
		switch {
		case c.wantCode != "":
			if !errors.As(err, &r) || r.Code != c.wantCode || !strings.Contains(r.Message, "-e GPUSHARE_MEMORY=8Gi") {
				t.Errorf("%s: %v; want %s that says what to write", name, err, c.wantCode)
			}
		case err != nil || got != c.want:
			t.Errorf("%s: %+v, %v; want %+v", name, got, err, c.want)
		}
	}
}
