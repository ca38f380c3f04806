// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package v1beta2

import (
	"encoding/json"
	"fmt"
	"time"
)

// maxDurationText is the longest text of a duration that is kept. Sources of a Duration are tenants.
const maxDurationText = 64

// Duration is a duration that reads back as it was written: "720h" and not "720h0m0s", so that tools which compare a
// manifest with the object find no difference.
//
// +protobuf.options.(gogoproto.goproto_stringer)=false
type Duration struct {
	time.Duration `protobuf:"varint,1,opt,name=duration,casttype=time.Duration"`
	// text is how the duration was written, if that is not its usual form. It counts only while it means the duration.
	Text string `json:"-" protobuf:"bytes,2,opt,name=text"`
}

// UnmarshalJSON reads a text such as "1h30m".
func (d *Duration) UnmarshalJSON(data []byte) error {
	var text string
	if err := json.Unmarshal(data, &text); err != nil {
		return fmt.Errorf("a duration is a text such as 720h or 1h30m: %w", err)
	}
	parsed, err := time.ParseDuration(text)
	if err != nil {
		return fmt.Errorf("a duration has units, such as 720h or 1h30m: %w", err)
	}
	*d = Duration{Duration: parsed}
	if text != parsed.String() && len(text) <= maxDurationText {
		d.Text = text
	}
	return nil
}

// MarshalJSON writes the duration as it was written.
func (d Duration) MarshalJSON() ([]byte, error) { return json.Marshal(d.String()) }

// ToUnstructured returns what MarshalJSON writes.
func (d Duration) ToUnstructured() any { return d.String() }

// String is the duration as it was written, and in its usual form if a program has set it.
func (d Duration) String() string {
	if d.Text != "" {
		if meant, err := time.ParseDuration(d.Text); err == nil && meant == d.Duration {
			return d.Text
		}
	}
	return d.Duration.String()
}

// WithoutText returns the duration in its usual form; nil for nil.
func (d *Duration) WithoutText() *Duration {
	if d == nil {
		return nil
	}
	return &Duration{Duration: d.Duration}
}

// OpenAPISchemaType is the type in the published schema.
func (Duration) OpenAPISchemaType() []string { return []string{"string"} }

// OpenAPISchemaFormat is the format in the published schema.
func (Duration) OpenAPISchemaFormat() string { return "" }
