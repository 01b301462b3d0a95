// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

package trace

import (
	"bytes"
	"encoding/json"
	"reflect"
	"strings"
	"testing"
)

func TestLinesComeBackAsTheyWere(t *testing.T) {
	for _, e := range []Event{
		{TimeNS: 0, GPU: None, Context: None, Stream: None, Client: "a", What: Attach},
		{TimeNS: 12, GPU: 1, Context: 2, Stream: 0, Client: "b-2", What: Begin, Args: []Arg{{"op", "kernel"}, {"name", "k"}, {"n", "7"}}},
		{TimeNS: 1 << 60, GPU: 0, Context: 1, Stream: 3, What: End, Args: []Arg{{"name", "a b\"c\nd=é"}, {"bytes", "-5"}}},
		{TimeNS: 5, GPU: 0, Context: 1, Stream: 3, Client: "c", What: Submit, Args: []Arg{{"name", ""}, {"n", "1"}}},
	} {
		line := string(e.Append(nil))
		if strings.Count(line, "\n") != 1 {
			t.Errorf("%+v is not one line: %q", e, line)
		}
		if got, err := Parse(strings.TrimSuffix(line, "\n")); err != nil || !reflect.DeepEqual(got, e) {
			t.Errorf("%q came back as %+v (%v), want %+v", line, got, err, e)
		}
	}
}

func TestWhatIsNoLineIsRefused(t *testing.T) {
	for _, s := range []string{"", "1 2 3", "x 0 a 1 1 end", "1 -2 a 1 1 end", "1 0 a 1 1 end name", `1 0 a 1 1 end name="x`} {
		if e, err := Parse(s); err == nil {
			t.Errorf("%q was read as %+v", s, e)
		}
	}
}

func TestChrome(t *testing.T) {
	const in = Header +
		"0 - a - - attach\n" +
		"1000 0 a 1 0 submit op=kernel name=k n=1\n" +
		"1000 0 a 1 0 begin op=kernel name=k n=1\n" +
		"3000 0 a 1 0 preempt op=kernel name=k n=1\n" +
		"5000 0 a 1 0 begin op=kernel name=k n=1\n" +
		"6500 0 a 1 0 end op=kernel name=k n=1\n" +
		"6500 0 a 1 0 end op=event n=2\n"
	var out bytes.Buffer
	if err := Chrome(strings.NewReader(in), &out); err != nil {
		t.Fatal(err)
	}
	var events []struct {
		Name, Ph string
		TS       float64
	}
	if err := json.Unmarshal(out.Bytes(), &events); err != nil {
		t.Fatalf("%v in\n%s", err, out.String())
	}
	var got []string
	length := 0.0
	for _, e := range events {
		if e.Ph == "B" || e.Ph == "E" {
			got = append(got, e.Ph+e.Name)
			length = e.TS - length
		}
	}
	if strings.Join(got, " ") != "Bk Ek Bk Ek" || length != 6.5-(5-(3-1)) {
		t.Errorf("slices %v, alternating sum of times %v", got, length)
	}
	out.Reset()
	if err := Chrome(strings.NewReader(Header), &out); err != nil || json.Unmarshal(out.Bytes(), &events) != nil {
		t.Errorf("of nothing: %v %q", err, out.String())
	}
}
