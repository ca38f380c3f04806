// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/registry/rest"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/registry/etcd/registrytest"
)

func requestReplace(t *testing.T, storage Storage, request *v1beta2.EtcdClusterOperation, dryRun ...string) (*v1beta2.EtcdClusterOperation, error) {
	t.Helper()
	obj, err := storage.Replace.Create(registrytest.Context(t.Context(), ns, "etcdclusters", "replace"), "a", request,
		rest.ValidateAllObjectFunc, &metav1.CreateOptions{DryRun: dryRun})
	if err != nil {
		return nil, err
	}
	return obj.(*v1beta2.EtcdClusterOperation), nil
}

func replacing(members ...string) *v1beta2.EtcdClusterOperation {
	return &v1beta2.EtcdClusterOperation{Spec: v1beta2.OperationRequest{Members: members}}
}

// threeMembers are two voters, one with a PVC, and a learner.
func threeMembers(s *v1beta2.ClusterStatus) {
	s.MemberStatuses = []v1beta2.MemberStatus{
		{Name: "a-1", Role: v1beta2.MemberRoleLeader, Node: "n1"},
		{Name: "a-2", Role: v1beta2.MemberRoleFollower, Node: "n2", Claim: "a-2"},
		{Name: "a-3", Role: v1beta2.MemberRoleLearner},
	}
}

func TestReplace(t *testing.T) {
	t.Parallel()
	storage, _ := newStorage(t)
	create(t, storage, valid("a"))
	setStatus(t, storage, threeMembers)
	before := stored(t, storage)

	const plan = "another member joins and votes before each of these is removed: member a-2 on node n2, whose PVC is deleted; member a-1 on node n1"
	dry, err := requestReplace(t, storage, replacing("a-2", "a-1"), metav1.DryRunAll)
	if err != nil {
		t.Fatal(err)
	}
	if dry.Status.Type != v1beta2.OperationReplace || dry.Status.Message != plan {
		t.Errorf("a dry run says %+v", dry.Status)
	}
	if now := stored(t, storage); now.ResourceVersion != before.ResourceVersion {
		t.Fatalf("a dry run stored %+v", now)
	}

	done, err := requestReplace(t, storage, replacing("a-2"))
	if err != nil {
		t.Fatal(err)
	}
	now := stored(t, storage)
	op := now.Status.Operation
	if op == nil || op.ID != done.Status.ID || op.Phase != v1beta2.OperationPending || strings.Join(op.Members, " ") != "a-2" {
		t.Errorf("stored is %+v, returned %+v", op, done.Status)
	}
	if now.Generation != before.Generation || len(now.Annotations) != len(before.Annotations) {
		t.Errorf("more was changed than the status: %+v", now.ObjectMeta)
	}
	if _, err := requestReplace(t, storage, replacing("a-1")); !apierrors.IsConflict(err) || !strings.Contains(err.Error(), "Replace "+op.ID) {
		t.Errorf("a second request returned %v", err)
	}
}

// TestReplaceWithoutLearners makes sure that the plan says what no other release of etcd needs.
func TestReplaceWithoutLearners(t *testing.T) {
	t.Parallel()
	const first = "a member that does not respond is removed before its successor joins"
	for name, test := range map[string]struct {
		spec, member string
		want         bool
	}{
		"etcd with learners":                {spec: "3.6.16", member: "3.6.16"},
		"etcd without learners":             {spec: "3.3.27", member: "3.3.27", want: true},
		"no member has responded yet":       {spec: "3.3.27", want: true},
		"members that are not yet upgraded": {spec: "3.4.30", member: "3.3.27", want: true},
		"the version of no member is known": {spec: "3.6.16"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			storage, _ := newStorage(t)
			cluster := valid("a")
			cluster.Spec.Version = test.spec
			create(t, storage, cluster)
			setStatus(t, storage, func(s *v1beta2.ClusterStatus) {
				threeMembers(s)
				s.MemberStatuses[1].Version = test.member
			})
			dry, err := requestReplace(t, storage, replacing("a-1"), metav1.DryRunAll)
			if err != nil {
				t.Fatal(err)
			}
			if strings.Contains(dry.Status.Message, first) != test.want {
				t.Errorf("a dry run says %q", dry.Status.Message)
			}
		})
	}
}

func TestReplaceRejects(t *testing.T) {
	t.Parallel()
	lost := v1beta2.ClusterCondition{Type: v1beta2.ClusterConditionQuorumLost, Status: corev1.ConditionTrue}
	for name, test := range map[string]struct {
		edit    func(*v1beta2.EtcdCluster)
		status  func(*v1beta2.ClusterStatus)
		request *v1beta2.EtcdClusterOperation
		want    func(error) bool
		says    string
	}{
		"no member is named":        {request: replacing(), want: apierrors.IsInvalid, says: "spec.members: Required"},
		"an unknown member":         {request: replacing("a-9"), want: apierrors.IsInvalid, says: "spec.members[0]"},
		"a member that is repeated": {request: replacing("a-1", "a-1"), want: apierrors.IsInvalid, says: "spec.members[1]: Duplicate"},
		"a learner":                 {request: replacing("a-1", "a-3"), want: apierrors.IsInvalid, says: "spec.members[1]: Invalid value: \"a-3\": the member has not joined yet"},
		"another UID": {
			request: &v1beta2.EtcdClusterOperation{ObjectMeta: metav1.ObjectMeta{UID: "x"}, Spec: v1beta2.OperationRequest{Members: []string{"a-1"}}},
			want:    apierrors.IsConflict, says: "UID",
		},
		"a paused cluster": {edit: func(c *v1beta2.EtcdCluster) { c.Spec.Paused = true }, request: replacing("a-1"), want: apierrors.IsConflict, says: "spec.paused"},
		"a lost quorum": {
			status:  func(s *v1beta2.ClusterStatus) { s.Conditions = append(s.Conditions, lost) },
			request: replacing("a-1"), want: apierrors.IsConflict, says: "the quorum is lost",
		},
		"data that differs": {
			status:  func(s *v1beta2.ClusterStatus) { s.MemberStatuses[0].Alarms = []string{"CORRUPT (raised by 1)"} },
			request: replacing("a-1"), want: apierrors.IsConflict, says: "corrupt-member.md",
		},
		"a member of another program": {
			status:  func(s *v1beta2.ClusterStatus) { s.MemberStatuses[1].Unmanaged = true },
			request: replacing("a-1", "a-2"), want: apierrors.IsInvalid, says: "spec.members[1]: Invalid value: \"a-2\": another program runs the member",
		},
		"a member that serves beside old members": {
			edit: takingOver, status: besideOld,
			request: replacing("a-2", "a-1"), want: apierrors.IsConflict, says: "spec.bootstrap.existing.oldMembers=Remove). Member a-1 serves",
		},
		"an old member": {
			edit: takingOver, status: besideOld,
			request: replacing("x"), want: apierrors.IsInvalid, says: "another program runs the member",
		},
		"a recovery": {
			status: func(s *v1beta2.ClusterStatus) {
				s.Recovery = &v1beta2.RecoveryStatus{ID: "r", Phase: v1beta2.RecoveryPhasePending}
			},
			request: replacing("a-1"), want: apierrors.IsConflict, says: "a recovery is under way",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			storage, _ := newStorage(t)
			cluster := valid("a")
			if test.edit != nil {
				test.edit(cluster)
			}
			create(t, storage, cluster)
			setStatus(t, storage, threeMembers)
			if test.status != nil {
				setStatus(t, storage, test.status)
			}
			if _, err := requestReplace(t, storage, test.request); !test.want(err) || !strings.Contains(err.Error(), test.says) {
				t.Errorf("%v", err)
			}
			if op := stored(t, storage).Status.Operation; op != nil {
				t.Errorf("an operation was stored: %+v", op)
			}
		})
	}
}

func takingOver(c *v1beta2.EtcdCluster) {
	c.Spec.Version = "3.6.16"
	c.Spec.Bootstrap = &v1beta2.BootstrapPolicy{Existing: &v1beta2.ExistingEtcd{ClientEndpoints: []string{"http://old:2379"}}}
}

// besideOld adds an old member that serves. Of the others a-1 serves.
func besideOld(s *v1beta2.ClusterStatus) {
	s.MemberStatuses[0].Healthy = corev1.ConditionTrue
	s.MemberStatuses = append(s.MemberStatuses, v1beta2.MemberStatus{Name: "x", Role: v1beta2.MemberRoleFollower, Unmanaged: true, Healthy: corev1.ConditionTrue})
}

// TestReplaceBesideOldMembers: a member of the cluster that does not serve is replaced before the old members are removed.
func TestReplaceBesideOldMembers(t *testing.T) {
	t.Parallel()
	storage, _ := newStorage(t)
	cluster := valid("a")
	takingOver(cluster)
	create(t, storage, cluster)
	setStatus(t, storage, threeMembers)
	setStatus(t, storage, besideOld)
	if _, err := requestReplace(t, storage, replacing("a-2")); err != nil {
		t.Fatal(err)
	}
}
