// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package resources

import (
	"slices"
	"strings"
)

// maxKept limits the list of what a Job keeps, in bytes: its request is one argument of a program, and Linux takes 128 KiB
// (MAX_ARG_STRLEN).
const maxKept = 64 << 10

// keptPlaces returns what a retention keeps. If the URIs are too many, the places above them are kept, with all that is
// below. So nothing is forgotten, and the retention deletes less for as long as so much is held.
func keptPlaces(uris []string) []string {
	size := 0
	for _, uri := range uris {
		size += len(uri) + len(`"",`)
	}
	if size <= maxKept {
		return uris
	}
	var places []string
	for _, uri := range uris {
		places = append(places, placeOf(uri))
	}
	slices.Sort(places)
	return slices.Compact(places)
}

// placeOf returns the place with the directories of backups, for the URI of the snapshot in one of them. What is no such
// URI stays as it is.
func placeOf(uri string) string {
	parts := strings.Split(uri, "/")
	if len(parts) < len(strings.Split("store://bucket/place/backup/snapshot", "/")) {
		return uri
	}
	return strings.Join(parts[:len(parts)-2], "/")
}
