// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package render draws the reports of the plugin as text, for a terminal or for a file. It reads
// no API and no clock. The package imports report and progress. Start at Status and Why.
package render
