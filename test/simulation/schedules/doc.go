// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package schedules holds the stories that the simulation plays: a cluster, and events at
// moments. A Schedule follows from its seed (New, in draw.go); OfSize and the methods that go with
// it make one by hand.
//
// It may import timeline. Start at schedule.go; the kinds of events are in events.go.
package schedules
