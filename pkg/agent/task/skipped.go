// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package task

import (
	"fmt"
	"slices"
	"strings"
)

// manifestsUnread begins the message about backups whose manifests the store does not return.
const manifestsUnread = "these manifests cannot be read, so their backups are neither restored nor deleted"

// skipped are objects that a run goes on without, because of the response of the store. The zero value is empty.
type skipped struct {
	keys  []string
	first error
}

// add adds an object; no error adds nothing.
func (s *skipped) add(key string, err error) {
	if err == nil || slices.Contains(s.keys, key) {
		return
	}
	if s.first == nil {
		s.first = err
	}
	s.keys = append(s.keys, key)
}

// err names the objects and the first response; nil if nothing was skipped.
func (s *skipped) err(text string) error {
	if len(s.keys) == 0 {
		return nil
	}
	named := s.keys[:min(len(s.keys), maxNamedPlaces)]
	if more := len(s.keys) - len(named); more > 0 {
		named = append(slices.Clone(named), fmt.Sprintf("and %d more", more))
	}
	return fmt.Errorf("%s: %s: %w", text, strings.Join(named, ", "), s.first)
}
