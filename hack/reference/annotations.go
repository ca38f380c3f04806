// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

var (
	ownKey = regexp.MustCompile(`^(etcd\.database\.coreos\.com/[a-z-]+|etcd_[a-z]+|etcd\.version)$`)
	// byUsers are the keys that a user sets; all others belong to the programs.
	byUsers = []string{"rotate-ca", "drop-old-ca", "restarted-at", "cancel-operation", "scope"}
)

// annotationsPage lists annotations, labels and finalizers.
func (s *source) annotationsPage() string {
	type entry struct{ key, doc, file string }
	seen := map[string]entry{}
	for _, constants := range sortedValues(s.constants) {
		for _, c := range sortedValues(constants) {
			key := s.value(c.file, c.value)
			if !ownKey.MatchString(key) || strings.HasPrefix(key, "etcd_operator") {
				continue
			}
			if old, there := seen[key]; !there || len(c.doc) > len(old.doc) {
				seen[key] = entry{key, withoutName(c.doc), c.file.path}
			}
		}
	}
	var b strings.Builder
	b.WriteString(generated + "\n# Annotations, labels and finalizers\n")
	for _, users := range []bool{true, false} {
		if users {
			b.WriteString("\n## Set by users\n")
		} else {
			b.WriteString("\n## Set by the programs\n\nDo not change them: they are how the programs recognise what they have created.\n")
		}
		b.WriteString("\n| key | meaning | defined in |\n|---|---|---|\n")
		for _, e := range sortedValues(seen) {
			_, name, _ := strings.Cut(e.key, "/")
			if slices.Contains(byUsers, name) == users {
				fmt.Fprintf(&b, "| %s | %s | %s |\n", code(e.key), cell(capital(e.doc)), link(e.file))
			}
		}
	}
	return b.String()
}
