// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package schedules

// The versions between which clusters of the sweep move; the older ones know no
// learners.
const (
	versionBefore = "3.5.27"
	VersionAfter  = "3.6.8"
	OldBefore     = "3.2.13"
	OldAfter      = "3.3.27"
)

// OfSize is a cluster without events.
func OfSize(n int) Schedule { return Schedule{Seed: 1, Size: n, Version: versionBefore} }

// WithVolumes keeps the data of members on PVCs.
func (s Schedule) WithVolumes() Schedule {
	s.Volumes = true
	return s
}

// Joining has the members join an etcd that another program runs.
func (s Schedule) Joining() Schedule {
	s.Joins = true
	return s
}

// WithSnapshots lets members make a snapshot after so many entries.
func (s Schedule) WithSnapshots(count int64) Schedule {
	s.Snapshots = count
	return s
}

// WithExpandableVolumes has a storage class that lets volumes grow.
func (s Schedule) WithExpandableVolumes() Schedule {
	s.Expandable = true
	return s
}

// WithCertificates is a cluster with spec.TLS.auto.
func (s Schedule) WithCertificates() Schedule {
	s.Certificates = true
	return s
}

// WithVersion declares a version.
func (s Schedule) WithVersion(version string) Schedule {
	s.Version = version
	return s
}

// Automatically is a cluster that goes on from a survivor by itself.
func (s Schedule) Automatically() Schedule {
	s.Automatic = true
	return s
}

// Recovering is a cluster whose owner asks for that.
func (s Schedule) Recovering() Schedule {
	s.Recovers = true
	return s
}
