// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package plugintest serves API objects to the commands of the plugin in tests, and holds
// clusters in the states that the screens show. Only tests import it. Start at New.
package plugintest
