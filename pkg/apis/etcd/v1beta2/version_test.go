// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package v1beta2

import "testing"

func TestEtcdRelease(t *testing.T) {
	t.Parallel()
	for version, want := range map[string]string{
		"3.5.35":             "3.5.35",
		"v3.5.35":            "3.5.35",
		"3.5.35-arm64":       "3.5.35",
		"3.5.21-k3s1":        "3.5.21",
		"3.5.21-rancher.1-2": "3.5.21",
		"3.5.21+build.7":     "3.5.21",
		"3.7.0-rc.1":         "3.7.0-rc.1",
		"3.7.0-rc.10-arm64":  "3.7.0-rc.10",
		"3.7.0-alpha.0":      "3.7.0-alpha.0",
		"3.5.21-rcmp":        "3.5.21",
		"":                   "",
	} {
		if got := EtcdRelease(version); got != want {
			t.Errorf("%q is the release %q, want %q", version, got, want)
		}
	}
}
