// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package restore serves EtcdRestores. strategy.go prepares and validates objects, table.go converts
// them to rows. The package imports the API types, their validation, and the packages
// genericstore and rights. Start at storage.go.
package restore
