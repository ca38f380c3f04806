// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"strings"
	"testing"
)

func TestCheckVersion(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ from, target, says string }{
		{"3.5.9", "3.5.33", ""},
		{"3.5.9", "3.6.16", ""},
		{"3.6.16", "3.5.33", "restore it into 3.6 or newer"},
		{"3.4.26", "3.6.16", "restore it into 3.5 first"},
		{"2.3.8", "3.0.0", "cannot read"},
		{"", "3.6.16", ""},
		{"3.6.16", "", ""},
		{"3.4.26", "", ""},
		{"none", "3.6.16", ""},
	} {
		err := CheckVersion(test.from, test.target)
		if test.says == "" && err != nil || test.says != "" && (err == nil || !strings.Contains(err.Error(), test.says)) {
			t.Errorf("%q into %q: %v, want %q", test.from, test.target, err, test.says)
		}
	}
}
