// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package etcd

// History is every write that was acknowledged to a client of one EtcdCluster.
type History struct {
	Lineage *Lineage
	Acked   []AckedWrite
}

// AckedWrite is one of them, and where in the log it was acknowledged.
type AckedWrite struct {
	Number, Index int
	Term          uint64
}

// LostBy returns the first acknowledged write that a log does not hold.
func (h *History) LostBy(d *DataDir) (AckedWrite, bool) {
	for _, a := range h.Acked {
		if a.Index > len(d.Log) || d.Log[a.Index-1].Write != a.Number || d.Log[a.Index-1].term != a.Term {
			return a, true
		}
	}
	return AckedWrite{}, false
}

// Holds is true if a log has a write where it was acknowledged.
func (d *DataDir) Holds(a AckedWrite) bool {
	return a.Index <= len(d.Log) && d.Log[a.Index-1].Write == a.Number
}
