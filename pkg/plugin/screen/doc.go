// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package screen is the one way of the plugin to the terminal of its user. Names, messages and logs
// are texts of others: users of the Kubernetes cluster, members, stores. A terminal obeys control characters,
// so the Writer shows them as text. Only the colors of the plugin pass. What the plugin tells the
// terminal otherwise goes through Code. The package imports nothing of this project. Start at writer.go.
package screen
