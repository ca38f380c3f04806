// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"testing"

	"github.com/etcd-operator/etcd-operator/pkg/etcd"
	planner "github.com/etcd-operator/etcd-operator/pkg/planner/cluster"
)

// sayings are members. Each of them says a cluster version, or does not respond.
type sayings struct {
	*oneMember
	says map[string]string
}

func (v *sayings) ClusterVersion(_ context.Context, _ etcd.Target, e etcd.Endpoint) (string, error) {
	if says, responds := v.says[e.Name]; responds {
		return says, nil
	}
	return "", etcd.ErrUnavailable
}

// TestNewestClusterVersionDecides: both voters that respond run 3.6, and a new member would run 3.5.
func TestNewestClusterVersionDecides(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name    string
		desired string
		// last is the version of the pod of a third member, which does not respond.
		last string
		says map[string]string
		want string
	}{
		{"a voter that lags does not count", "3.5.27", "3.5.27", map[string]string{"c-a": "3.5.0", "c-b": "3.6.0"}, "3.6.0"},
		{"one voter is enough", "3.5.27", "3.5.27", map[string]string{"c-a": "3.5.0"}, "3.5.0"},
		{"none says it", "3.5.27", "3.5.27", nil, ""},
		{"a new member runs what the others run", "3.6.11", "3.6.11", map[string]string{"c-a": "3.6.0"}, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			v := &sayings{oneMember: stopped(), says: test.says}
			v.cluster.Spec.Version = test.desired
			s := &seen{Observed: planner.Observed{Cluster: v.cluster}}
			s.Etcd.Linearizable = true
			for i, name := range []string{"c-a", "c-b"} {
				s.voters.Endpoints = append(s.voters.Endpoints, etcd.Endpoint{Name: name})
				s.Etcd.Members = append(s.Etcd.Members, planner.Member{ID: uint64(i + 1), Name: name, Started: true, Health: planner.Healthy, Version: "3.6.11"})
			}
			s.Etcd.Members = append(s.Etcd.Members, planner.Member{ID: 3, Name: "c-c", Started: true})
			s.Pods = []planner.Pod{{Name: "c-c", Owned: true, Version: test.last}}
			observeClusterVersion(t.Context(), &run{Reconciler: &Reconciler{Config: Config{Etcd: v}}, seen: s}, nil)
			if got := s.Etcd.ClusterVersion; got != test.want {
				t.Errorf("the cluster version is %q, want %q", got, test.want)
			}
		})
	}
}
