// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"os"
	"strings"
	"testing"
)

func TestEveryRuleHasAFileOfItsName(t *testing.T) {
	for _, rule := range Rules() {
		file := "rule_" + strings.ReplaceAll(string(rule), "-", "_") + ".go"
		if _, err := os.Stat(file); err != nil {
			t.Errorf("rule %s is not in %s: %v", rule, file, err)
		}
	}
}
