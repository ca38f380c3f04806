// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"strings"
	"testing"
)

// sample is a report in which a request costs a CRD 4 and 8 s, and the API server 2 and 2 s.
func sample() *report {
	r := &report{Profile: "test"}
	for round, crd := range []float64{4, 8} {
		for serving, used := range map[string]float64{servingCRD: crd, servingAggregated: 2, servingDirect: 2} {
			r.Records = append(r.Records, &record{
				Size: "1 KB", Objects: 10, Line: "get", User: userOrdinary, Format: formatJSON, Serving: serving, Path: []string{kubeServer}, Round: round,
				result: result{Requests: 1000, Seconds: 10, P50: 1, P99: 2, CPU: map[string]float64{kubeServer: used, ownServer: 100}},
			})
		}
	}
	for _, serving := range []string{servingCRD, servingDirect} {
		r.Sizes = append(r.Sizes, &sizes{Size: "1 KB", Objects: 10, Serving: serving, JSON: 1000, Stored: 900})
	}
	return r
}

func TestTableShowsRatiosOfRounds(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	sample().print(&out)
	for _, part := range []string{
		"## 10 objects of 1 KB",
		"| bytes in etcd, with the key | 900 | 900 | 1.00 |",
		// A process beside the path does not count.
		"| get; JSON, RBAC user | 6.00 (4.00 to 8.00) | 2.00 (2.00 to 2.00) | 2.00 (2.00 to 2.00) | **3.00 (2.00 to 4.00)** | **3.00 (2.00 to 4.00)** |",
		"| get; JSON, RBAC user | 1.00 / 2.00, 100/s |",
	} {
		if !strings.Contains(out.String(), part) {
			t.Errorf("%q is missing in\n%s", part, out.String())
		}
	}
}

func TestNumber(t *testing.T) {
	t.Parallel()
	for value, want := range map[float64]string{0.123: "0.12", 12.34: "12.3", 1234.5: "1234"} {
		if got := number(value); got != want {
			t.Errorf("%v is shown as %s, want %s", value, got, want)
		}
	}
}

func TestProfilesAreComplete(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"short", "full", "smoke"} {
		p, err := profileNamed(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, part := range p.plan {
			for _, l := range part.lines {
				if l.name == "" || l.run == nil || l.user == "" || l.format == "" {
					t.Errorf("profile %s has the line %+v", name, l)
				}
			}
		}
	}
	if _, err := profileNamed("other"); err == nil {
		t.Error("an unknown profile is not an error")
	}
	names := map[string]bool{}
	for _, l := range linesOfMany() {
		names[l.name] = true
	}
	if len(names) != 7 {
		t.Errorf("the lines of many objects are %v", names)
	}
}

func TestContinueToken(t *testing.T) {
	t.Parallel()
	long := strings.Repeat(`{"metadata":{"continue":"no"}},`, 1000)
	for name, test := range map[string]struct{ list, want string }{
		"metadata before the items": {`{"kind":"List","metadata":{"resourceVersion":"5","continue":"abc","remainingItemCount":1},"items":[` + long + `{"continue":"no"}]}`, "abc"},
		"metadata after the items":  {`{"apiVersion":"v1","items":[` + long + `{"metadata":{}}],"kind":"List","metadata":{"continue":"abc","resourceVersion":"5"}}`, "abc"},
		"few items":                 {`{"items":[{"metadata":{"continue":"no"}}],"kind":"List","metadata":{"continue":"abc"}}`, "abc"},
		"the last page":             {`{"metadata":{},"items":[` + long + `{}]}`, ""},
		"the last page of a CRD":    {`{"items":[` + long + `{}],"metadata":{"continue":"","resourceVersion":"5"}}`, ""},
	} {
		if got := continueToken([]byte(test.list)); got != test.want {
			t.Errorf("%s: the token is %q, want %q", name, got, test.want)
		}
	}
}

func TestEventsOfWatch(t *testing.T) {
	t.Parallel()
	for format, stream := range map[string]string{
		formatJSON:     "{\"type\":\"ADDED\"}\n{\"type\":\"MODIFIED\"}\n",
		formatProtobuf: "\x00\x00\x00\x02ab\x00\x00\x00\x01c",
	} {
		if arrived, err := readEvents(strings.NewReader(stream), format, 2); err != nil || len(arrived) != 2 {
			t.Errorf("%s: %d events, %v", format, len(arrived), err)
		}
		if _, err := readEvents(strings.NewReader(stream), format, 3); err == nil {
			t.Errorf("%s: a watch that ends too early is not an error", format)
		}
	}
}

func TestWithoutZeroKeepsValues(t *testing.T) {
	t.Parallel()
	got := withoutZero(object{"a": "", "b": object{}, "c": []any{}, "d": 0.0, "e": "x", "f": nil, "g": []any{object{"h": true}}})
	kept, ok := got.(object)
	if !ok || len(kept) != 2 || kept["e"] != "x" || kept["g"] == nil {
		t.Errorf("got %v", got)
	}
}

func TestChartIsWellFormed(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	writeChart(&out, "a < b", append(bars(grouped(sample().Records)), bar{label: "nothing", aggregated: spreadOf(nil), direct: spreadOf(nil)}))
	decoder := xml.NewDecoder(&out)
	for {
		if _, err := decoder.Token(); errors.Is(err, io.EOF) {
			return
		} else if err != nil {
			t.Fatal(err)
		}
	}
}
