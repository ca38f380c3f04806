// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package image

import "strings"

// Normalize returns a reference in the complete form in which containerd keeps
// it: "busybox" is "docker.io/library/busybox:latest".
func Normalize(ref string) string {
	first, rest, hasSlash := strings.Cut(ref, "/")
	switch {
	case !hasSlash:
		ref = "docker.io/library/" + ref
	case first == "docker.io" && !strings.Contains(rest, "/"):
		ref = "docker.io/library/" + rest
	case !strings.ContainsAny(first, ".:") && first != "localhost":
		ref = "docker.io/" + ref
	}
	if name := ref[strings.LastIndexByte(ref, '/')+1:]; !strings.ContainsAny(name, ":@") {
		ref += ":latest"
	}
	return ref
}
