// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package resources

import (
	"strings"
	"testing"
)

func TestRevisionGoesBack(t *testing.T) {
	t.Parallel()
	for version, bumps := range map[string]bool{
		"3.1.10": false, "3.2.13": false, "v3.3.27": false, "3.4.0": false, "3.4.23": false, "3.4.26": false, "3.5.0": false, "3.5.9": false,
		"3.4.27": true, "3.4.37": true, "3.5.10": true, "v3.5.35": true, "3.6.0": true, "3.7.3": true, "latest": true,
	} {
		text := RevisionGoesBack(version)
		if BumpsRevision(version) != bumps || (text == "") != bumps {
			t.Errorf("%s: the message is %q", version, text)
		}
		if !bumps && !strings.Contains(text, "etcd "+strings.TrimPrefix(version, "v")+" cannot") {
			t.Errorf("%s: the message is %q", version, text)
		}
	}
}
