// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package etcd

// DeafEnvironment is a variable with which etcd starts, votes and serves clients, and no
// controller reaches it. Flags such as --cipher-suites are like that.
const DeafEnvironment = "ETCD_OUT_OF_REACH"

// isDeaf is true for a container whose etcd no controller reaches.
func (e *World) isDeaf(r Container) bool {
	for _, p := range e.Processes {
		if p.Run.UID() == r.UID() {
			return p.deaf
		}
	}
	return false
}

// versionIn is the version of etcd in an image.
func (e *World) versionIn(image string) string {
	if version, lies := e.Mislabeled[image]; lies {
		return version
	}
	return versionOf(image)
}
