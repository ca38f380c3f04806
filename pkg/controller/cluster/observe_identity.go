// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"errors"
	"fmt"
	"slices"
	"strconv"

	"github.com/etcd-operator/etcd-operator/pkg/etcd"
	planner "github.com/etcd-operator/etcd-operator/pkg/planner/cluster"
)

// recordedClusterIDs returns the cluster IDs that members may respond with: that of the record, and while
// the data moves to new members those of both. Empty: the record has none.
func recordedClusterIDs(record planner.Record) []uint64 {
	texts := []string{record.ClusterID}
	if r := record.Recovery; r.IsInProgress() {
		texts = append(texts, r.OldClusterID, r.ClusterID)
	}
	var ids []uint64
	for i, text := range texts {
		id, err := strconv.ParseUint(text, 16, 64)
		if err != nil && i == 0 {
			return nil
		}
		if err == nil && !slices.Contains(ids, id) {
			ids = append(ids, id)
		}
	}
	return ids
}

// identify finds out from the responses of the members which cluster ID is that of the cluster, if no record
// says it: the ID that most of the responses have. A response with another ID does not count. If
// there is no such majority none counts: the address of a pod that has ended may be that of a
// member of another cluster by now.
func (s *seen) identify(statuses map[string]etcd.StatusResult) {
	if len(s.clusterIDs) > 0 || s.Record.Recovery.IsInProgress() {
		return
	}
	said, responded := map[uint64]int{}, 0
	for _, e := range s.target.Endpoints {
		if a := statuses[e.Name]; a.Err == nil {
			said[a.Health.ClusterID]++
			responded++
		}
	}
	for id, n := range said {
		if 2*n > responded {
			s.clusterIDs = []uint64{id}
		}
	}
	for _, e := range s.target.Endpoints {
		if a := statuses[e.Name]; a.Err == nil && !slices.Contains(s.clusterIDs, a.Health.ClusterID) {
			a.Err = &etcd.Error{Op: "status", Member: e.Name, Kind: etcd.ErrOtherCluster, Cause: errUnlike}
			statuses[e.Name] = a
		}
	}
	s.target = s.to(s.target.Endpoints...)
}

// errUnlike: no record says the cluster ID, and this response does not have the ID of most responses.
var errUnlike = errors.New("most members that respond have another cluster ID")

// noteOtherCluster says which cluster responds at the addresses of the members, if no member of this cluster
// responds.
func (s *seen) noteOtherCluster(statuses map[string]etcd.StatusResult) {
	other := uint64(0)
	for _, a := range statuses {
		switch {
		case a.Err == nil:
			return
		case errors.Is(a.Err, etcd.ErrOtherCluster):
			other = max(other, a.Health.ClusterID) // the same in each observation
		}
	}
	if other != 0 {
		s.Etcd.ClusterID = other
	}
}

// judgeOtherCluster is about a member at whose address a member of another cluster responds.
func judgeOtherCluster(m *planner.Member, other uint64) {
	m.Health, m.Reason = planner.Unknown, planner.ReasonClusterIDMismatch
	m.Message = fmt.Sprintf("a member of another etcd cluster responds at its address: its cluster ID is %x", other)
}
