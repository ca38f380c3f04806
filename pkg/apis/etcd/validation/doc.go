// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package validation says whether an EtcdCluster, EtcdBackup or EtcdRestore may be
// stored, and what its author should be warned about. A rejection names every wrong
// field at once, with the way out. It looks at the object itself and, on an update,
// at the one it replaces: whatever needs a third object is left to admission. It does
// no I/O and imports of this project only the API types. Start at cluster.go; ratchet.go
// explains why an update never fails for what was already stored.
package validation
