// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package objectstore

import "sync"

// StoredPart is a part of an upload that the store has acknowledged.
type StoredPart struct {
	Number int32
	ETag   *string
	Sum    Sum
}

// StoredParts collects the parts of one upload. Several goroutines may add parts at the
// same time. The zero value is empty.
type StoredParts struct {
	mu    sync.Mutex
	parts map[int]StoredPart
}

// Add records that the store has a part.
func (s *StoredParts) Add(number int, etag *string, sum Sum) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.parts == nil {
		s.parts = map[int]StoredPart{}
	}
	s.parts[number] = StoredPart{Number: int32(number), ETag: etag, Sum: sum}
}

// InOrder returns the parts 1 to count in order, and the checksum of the whole object.
func (s *StoredParts) InOrder(count int, checksum CRC64) (parts []StoredPart, whole Sum) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for number := 1; number <= count; number++ {
		part := s.parts[number]
		part.Number = int32(number)
		parts = append(parts, part)
		whole = checksum.Join(whole, part.Sum)
	}
	return parts, whole
}
