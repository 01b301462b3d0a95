// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

package daemon

import (
	"context"
	"errors"
	"strings"
	"testing"

	v1 "github.com/gpushare/gpushare/daemon/api/v1"
)

// malformed are words of a request that are refused, with what the refusal must
// say: why, and what to write instead.
var malformed = []struct {
	r           v1.Request
	why, advice string
}{
	{v1.Request{Memory: "8"}, "the unit is missing", "8Gi"},
	{v1.Request{Memory: "0"}, "the unit is missing", ""},
	{v1.Request{Memory: "8G"}, "binary in docker and decimal in Kubernetes", "8Gi or 8000000000B"},
	{v1.Request{Memory: "8g"}, "binary in docker and decimal in Kubernetes", "8Gi or 8000000000B"},
	{v1.Request{Memory: "8GB"}, "binary in docker and decimal in Kubernetes", "8Gi or 8000000000B"},
	{v1.Request{Memory: "1T"}, "binary in docker and decimal in Kubernetes", "1Ti"},
	{v1.Request{Memory: "8Gb"}, "bits", "8Gi"},
	{v1.Request{Memory: "8Mb"}, "bits", "8Mi"},
	{v1.Request{Memory: "512m"}, "milli", "512Mi"},
	{v1.Request{Memory: "512M"}, "milli", "512Mi"},
	{v1.Request{Memory: "-8Gi"}, "negative", "8Gi"},
	{v1.Request{Memory: "+8Gi"}, "sign", "8Gi"},
	{v1.Request{Memory: "08Gi"}, "leading zero", "8Gi"},
	{v1.Request{Memory: "0x8Gi"}, "not a decimal number", "number with a unit"},
	{v1.Request{Memory: "8e9B"}, "exponents", "number with a unit"},
	{v1.Request{Memory: "NaN"}, "not a number", "8Gi"},
	{v1.Request{Memory: "Inf"}, "not a number", "8Gi"},
	{v1.Request{Memory: "none"}, "not a number", "8Gi"},
	{v1.Request{Memory: "max"}, "not a number", "8Gi"},
	{v1.Request{Memory: "8 Gi"}, "blank", "8Gi"},
	{v1.Request{Memory: " 8Gi"}, "not a number", "8Gi"},
	{v1.Request{Memory: "8Gi\n"}, "blank", "8Gi"},
	{v1.Request{Memory: "8,5Gi"}, "one point", ""},
	{v1.Request{Memory: "8.5.1Gi"}, "one point", "8.5Gi"},
	{v1.Request{Memory: "8.Gi"}, "digits after the point", "8Gi"},
	{v1.Request{Memory: ".5Gi"}, "not a number", "8Gi"},
	{v1.Request{Memory: "0Gi"}, "zero", "1Gi"},
	{v1.Request{Memory: "0%"}, "zero", "1Gi"},
	{v1.Request{Memory: "1.5B"}, "fraction of a byte", "1B"},
	{v1.Request{Memory: "101%"}, "more than the whole GPU", "100%"},
	{v1.Request{Memory: "8Gi;reboot"}, "unknown unit", "8Gi"},
	{v1.Request{Memory: "8Pi"}, "unknown unit", "8Gi"},
	{v1.Request{Memory: "99999999999Ti"}, "too large", "100%"},
	{v1.Request{Memory: "99999999999999999999999Gi"}, "too many digits", "8Gi"},
	{v1.Request{Memory: "\x1b[31m8Gi"}, "not a number", "8Gi"},
	{v1.Request{Memory: "8Gi", Compute: "30"}, "more than one GPU", "30%"},
	{v1.Request{Memory: "8Gi", Compute: "0%"}, "zero", "0.1%"},
	{v1.Request{Memory: "8Gi", Compute: "0"}, "zero", "0.1%"},
	{v1.Request{Memory: "8Gi", Compute: "101%"}, "more than one GPU", "100%"},
	{v1.Request{Memory: "8Gi", Compute: "1.5"}, "more than one GPU", "100%"},
	{v1.Request{Memory: "8Gi", Compute: "33.33%"}, "finer than 0.1 %", "0.1%"},
	{v1.Request{Memory: "8Gi", Compute: "300m"}, "milli", "30%"},
	{v1.Request{Memory: "8Gi", Compute: "none"}, "only compute-max", "30%"},
	{v1.Request{Memory: "8Gi", Compute: "-10%"}, "negative", "30%"},
	{v1.Request{Memory: "8Gi", Compute: "half"}, "not a number", "30%"},
	{v1.Request{Memory: "8Gi", Compute: "30 %"}, "blank", "30%"},
	{v1.Request{Memory: "8Gi", Compute: "30%", ComputeMax: "20%"}, "below the guaranteed 30%", "30%"},
	{v1.Request{Memory: "8Gi", Compute: "30%", ComputeMax: "None"}, "not a number", "30%"},
	{v1.Request{Memory: "8Gi", ComputeMax: "0"}, "zero", "0.1%"},
	{v1.Request{Memory: ""}, "no GPU memory limit was asked for", "=8Gi"},
	{v1.Request{Memory: "8Gi", GPU: "all"}, "neither auto, an index nor a UUID", "auto, 0 to 1 or a UUID"},
	{v1.Request{Memory: "8Gi", GPU: "0;1"}, "neither auto, an index nor a UUID", "auto, 0 to 1 or a UUID"},
	{v1.Request{Memory: "8Gi", GPU: "9"}, "no such GPU", "auto, 0 to 1 or a UUID"},
	{v1.Request{Memory: "8Gi", GPU: "0,0"}, "named twice", "once"},
	{v1.Request{Profile: "1of65"}, "is no profile", "1of2, 1of4, 1of6"},
	{v1.Request{Profile: "\x1b[31m1of2"}, "is no profile", "slice-4g"},
	{v1.Request{Profile: "1of2", Compute: "10%"}, "sets memory and compute by itself", "leave out the other words"},
	{v1.Request{Memory: "100Mi"}, "too small", "320Mi"},
	{v1.Request{Memory: "25Gi"}, "no GPU has 25 GiB to give: GPU 0: 24 GiB, 100%", "memory 24Gi"},
}

// Each malformed request is refused on one line with the reason and a
// suggestion, spelt as the user spelt it, and leaves nothing behind.
func TestRefusals(t *testing.T) {
	w := newWorld(t)
	pid := w.process().Process.Pid
	words := map[string]string{v1.SourceEnv: "GPUSHARE_", v1.SourceAnnotation: "gpushare.io/"}
	for _, tc := range malformed {
		for source, prefix := range words {
			req := w.request("a", pid, tc.r)
			req.Source = source
			_, err := w.m.Claim(context.Background(), req)
			var e *v1.Error
			if !errors.As(err, &e) {
				t.Errorf("%+v: %v, want a refusal", tc.r, err)
				continue
			}
			text := err.Error()
			if !strings.Contains(text, tc.why) || !strings.Contains(text, tc.advice) {
				t.Errorf("%+v: %q, want %q and %q", tc.r, text, tc.why, tc.advice)
			}
			if strings.ContainsAny(text, "\n\r\x1b") || len(text) > 400 || strings.Count(text, "[GS-") != 1 {
				t.Errorf("%+v: not one clean line with one code: %q", tc.r, text)
			}
			if e.Code == v1.CodeUnit && !strings.HasPrefix(text, prefix) {
				t.Errorf("%+v: %q does not name the %s word", tc.r, text, source)
			}
		}
	}
	if len(malformed) < 40 {
		t.Errorf("%d cases", len(malformed))
	}
	w.empty()
}
