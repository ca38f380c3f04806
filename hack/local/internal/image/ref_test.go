// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package image

import "testing"

func TestNormalize(t *testing.T) {
	for ref, want := range map[string]string{
		"busybox":                      "docker.io/library/busybox:latest",
		"busybox:1.35":                 "docker.io/library/busybox:1.35",
		"docker.io/busybox:1.35":       "docker.io/library/busybox:1.35",
		"rancher/local-path:v1":        "docker.io/rancher/local-path:v1",
		"docker.io/rancher/x:v1":       "docker.io/rancher/x:v1",
		"quay.io/coreos/etcd:v3.6.16":  "quay.io/coreos/etcd:v3.6.16",
		"localhost/a":                  "localhost/a:latest",
		"localhost:5000/a":             "localhost:5000/a:latest",
		"example.com/a@sha256:0123456": "example.com/a@sha256:0123456",
	} {
		if got := Normalize(ref); got != want {
			t.Errorf("Normalize(%q) = %q, want %q", ref, got, want)
		}
	}
}
