// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package validation

import (
	"strings"
	"testing"
)

func TestImageDigest(t *testing.T) {
	t.Parallel()
	one, two := "sha256:"+strings.Repeat("1", 64), "sha256:"+strings.Repeat("2", 64)
	for digest, right := range map[string]bool{
		"": true, one: true,
		strings.ToUpper(one): false, "sha256:1": false, strings.Repeat("1", 64): false,
		"sha512:" + strings.Repeat("1", 128): false, one + "1": false, "@" + one: false, one + "\n": false,
	} {
		c := cluster(t, "")
		c.Spec.ImageDigest = digest
		errs := ValidateEtcdCluster(c)
		if (len(errs) == 0) != right || !right && errs[0].Field != "spec.imageDigest" {
			t.Errorf("%q: %v", digest, errs)
		}
	}
	for name, test := range map[string]struct {
		version, digest string
		right           bool
	}{
		"the same":                   {"3.6.16", one, true},
		"the same version, spelled":  {"v3.6.16", one, true},
		"another digest":             {"3.6.16", two, true},
		"both":                       {"3.6.17", two, true},
		"another version, no digest": {"3.6.17", "", true},
		"another version only":       {"3.6.17", one, false},
	} {
		before := cluster(t, "")
		before.Spec.Version, before.Spec.ImageDigest = "3.6.16", one
		after := before.DeepCopy()
		after.Spec.Version, after.Spec.ImageDigest = test.version, test.digest
		after.ResourceVersion, before.ResourceVersion = "1", "1"
		errs := ValidateEtcdClusterUpdate(after, before)
		if (len(errs) == 0) != test.right {
			t.Errorf("%s: %v", name, errs)
		}
		if !test.right && (errs[0].Field != "spec.imageDigest" || !strings.Contains(errs[0].Detail, "remove spec.imageDigest")) {
			t.Errorf("%s: %v", name, errs[0])
		}
	}
}
