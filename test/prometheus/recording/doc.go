// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package recording keeps the series of a run in a file, in the notation in which promtool
// reads series (series.go). It copies them from a Prometheus (record.go), and puts them into a
// storage that an engine of PromQL reads (load.go). Start at file.go.
package recording
