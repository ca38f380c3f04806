// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package v1beta2

import (
	"encoding/json"
	"strings"
	"testing"
	"time"
)

// TestDurationReadsAsWritten: the text is kept through JSON and protobuf, and only while it means the duration.
func TestDurationReadsAsWritten(t *testing.T) {
	for written, read := range map[string]string{
		`"720h"`: `"720h"`, `"60m"`: `"60m"`, `"1h0m0s"`: `"1h0m0s"`, `"1.50s"`: `"1.50s"`, `"0"`: `"0"`,
		`"` + strings.Repeat("0", maxDurationText) + `1h"`: `"1h0m0s"`,
	} {
		var d, stored Duration
		if err := json.Unmarshal([]byte(written), &d); err != nil {
			t.Fatalf("%s: %v", written, err)
		}
		raw, err := d.Marshal()
		if err == nil {
			err = stored.Unmarshal(raw)
		}
		if got, _ := json.Marshal(stored); err != nil || string(got) != read {
			t.Errorf("%s reads back as %s, %v; want %s", written, got, err, read)
		}
	}
	for _, written := range []string{`"1"`, `"1d"`, `3`, `{}`} {
		if err := json.Unmarshal([]byte(written), &Duration{}); err == nil {
			t.Errorf("%s was accepted", written)
		}
	}
	changed := Duration{Duration: time.Minute, Text: "1h"} // by a program that knows only the duration
	if got := changed.String(); got != "1m0s" {
		t.Errorf("a text that means another duration is read back: %s", got)
	}
}
