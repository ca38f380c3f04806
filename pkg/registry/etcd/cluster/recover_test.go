// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"bytes"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/klog/v2"
	"k8s.io/klog/v2/textlogger"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/registry/etcd/registrytest"
)

// lostCluster stores a cluster whose status says that its quorum is lost.
func lostCluster(t *testing.T, storage Storage, edit func(*v1beta2.EtcdCluster)) {
	t.Helper()
	cluster := create(t, storage, valid("a"))
	cluster.Status.Conditions = []v1beta2.ClusterCondition{{Type: v1beta2.ClusterConditionQuorumLost, Status: corev1.ConditionTrue}}
	cluster.Status.MemberStatuses = []v1beta2.MemberStatus{
		{Name: "a-1", RaftIndex: 70, Pod: "a-1"}, {Name: "a-2", RaftIndex: 90, Pod: "a-2"}, {Name: "a-3"}, {Name: "a-4"}, {Name: "a-5", Pod: "a-5"},
	}
	edit(cluster)
	if _, _, err := storage.Status.Update(requestContext(t), "a", rest.DefaultUpdatedObjectInfo(cluster),
		rest.ValidateAllObjectFunc, rest.ValidateAllObjectUpdateFunc, false, &metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
}

func ask(t *testing.T, storage Storage, request *v1beta2.EtcdClusterRecovery, dryRun ...string) (*v1beta2.EtcdClusterRecovery, error) {
	t.Helper()
	obj, err := storage.Recover.Create(registrytest.Context(t.Context(), ns, "etcdclusters", "recover"), "a", request,
		rest.ValidateAllObjectFunc, &metav1.CreateOptions{DryRun: dryRun})
	if err != nil {
		return nil, err
	}
	return obj.(*v1beta2.EtcdClusterRecovery), nil
}

func storedRecovery(t *testing.T, storage Storage) *v1beta2.RecoveryStatus {
	t.Helper()
	obj, err := storage.EtcdCluster.Get(requestContext(t), "a", &metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return obj.(*v1beta2.EtcdCluster).Status.Recovery
}

// TestRecoverBesideOldMembers: nothing proves that members of another program are lost.
func TestRecoverBesideOldMembers(t *testing.T) {
	t.Parallel()
	storage, _ := newStorage(t)
	lostCluster(t, storage, func(c *v1beta2.EtcdCluster) { c.Status.MemberStatuses[3].Unmanaged = true })
	if _, err := ask(t, storage, &v1beta2.EtcdClusterRecovery{}, metav1.DryRunAll); !apierrors.IsConflict(err) || !strings.Contains(err.Error(), errOldMembers.Error()) {
		t.Errorf("the request returned %v", err)
	}
}

func TestRecoverPlans(t *testing.T) {
	t.Parallel()
	storage, _ := newStorage(t)
	lostCluster(t, storage, func(*v1beta2.EtcdCluster) {})

	plan, err := ask(t, storage, &v1beta2.EtcdClusterRecovery{}, metav1.DryRunAll)
	if err != nil {
		t.Fatal(err)
	}
	if s := plan.Status; s.Source.Member != "a-2" || s.Source.RaftIndex != 90 || len(s.Survivors) != 2 || s.Phase != v1beta2.RecoveryPhasePending ||
		!strings.Contains(s.ExpectedLoss, "Member a-5 is not available") || strings.Contains(s.ExpectedLoss, "a-3") {
		t.Errorf("the plan is %+v", s)
	}
	if stored := storedRecovery(t, storage); stored != nil {
		t.Fatalf("a dry run stored %+v", stored)
	}

	plan, err = ask(t, storage, &v1beta2.EtcdClusterRecovery{Spec: v1beta2.ClusterRecoverySpec{Member: "a-1"}})
	if err != nil {
		t.Fatal(err)
	}
	if s := plan.Status; s.Source.Member != "a-1" || s.Member != "a-1" || !strings.Contains(s.ExpectedLoss, "Member a-2 has 20 raft entries") {
		t.Errorf("the plan is %+v", s)
	}
	if stored := storedRecovery(t, storage); stored == nil || stored.ID != plan.Status.ID || !stored.IsInProgress() || len(stored.OldMembers) != 5 {
		t.Errorf("stored is %+v", stored)
	}
	if _, err := ask(t, storage, &v1beta2.EtcdClusterRecovery{}); !apierrors.IsConflict(err) {
		t.Errorf("a second request returns %v", err)
	}
}

// TestRecoverRecordsTheRequester: the stored request names the user that sent it, whatever
// the body says, and so does the log.
func TestRecoverRecordsTheRequester(t *testing.T) {
	t.Parallel()
	storage, _ := newStorage(t)
	lostCluster(t, storage, func(*v1beta2.EtcdCluster) {})
	var log bytes.Buffer
	ctx := klog.NewContext(t.Context(), textlogger.NewLogger(textlogger.NewConfig(textlogger.Output(&log))))
	ctx = request.WithUser(registrytest.Context(ctx, ns, "etcdclusters", "recover"), &user.DefaultInfo{Name: "jane"})
	obj, err := storage.Recover.Create(ctx, "a", &v1beta2.EtcdClusterRecovery{Status: v1beta2.RecoveryStatus{RequestedBy: "mallory"}},
		rest.ValidateAllObjectFunc, &metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	plan := obj.(*v1beta2.EtcdClusterRecovery).Status
	if stored := storedRecovery(t, storage); plan.RequestedBy != "jane" || stored.RequestedBy != "jane" {
		t.Errorf("the response names requester %q, the status %q", plan.RequestedBy, stored.RequestedBy)
	}
	for _, want := range []string{`"Recovery requested"`, `cluster="` + ns + `/a"`, `clusterUID="`, `recovery="` + plan.ID, `source="a-2"`, `requestedBy="jane"`} {
		if !strings.Contains(log.String(), want) {
			t.Errorf("the log lacks %s: %s", want, log.String())
		}
	}
}

// The plan reports what an old etcd cannot do, before the recovery begins.
func TestRecoverTellsThatTheRevisionGoesBack(t *testing.T) {
	t.Parallel()
	for version, back := range map[string]bool{"3.3.27": true, "3.6.16": false} {
		storage, _ := newStorage(t)
		lostCluster(t, storage, func(c *v1beta2.EtcdCluster) {
			for i := range c.Status.MemberStatuses {
				c.Status.MemberStatuses[i].Version = version
			}
		})
		plan, err := ask(t, storage, &v1beta2.EtcdClusterRecovery{}, metav1.DryRunAll)
		if err != nil {
			t.Fatal(err)
		}
		if loss := plan.Status.ExpectedLoss; strings.Contains(loss, "etcd "+version+" cannot raise the revision") != back {
			t.Errorf("%s: the plan says %q", version, loss)
		}
	}
}

func TestRecoverRejects(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		edit    func(*v1beta2.EtcdCluster)
		request v1beta2.EtcdClusterRecovery
		want    func(error) bool
	}{
		"a quorum that responds": {
			edit: func(c *v1beta2.EtcdCluster) { c.Status.Conditions[0].Status = corev1.ConditionFalse }, want: apierrors.IsConflict,
		},
		"a quorum that may respond": {
			edit: func(c *v1beta2.EtcdCluster) { c.Status.Conditions[0].Status = corev1.ConditionUnknown }, want: apierrors.IsConflict,
		},
		"no status yet":             {edit: func(c *v1beta2.EtcdCluster) { c.Status = v1beta2.ClusterStatus{} }, want: apierrors.IsConflict},
		"no survivor":               {edit: func(c *v1beta2.EtcdCluster) { c.Status.MemberStatuses = nil }, want: apierrors.IsConflict},
		"another UID":               {request: v1beta2.EtcdClusterRecovery{Spec: v1beta2.ClusterRecoverySpec{ClusterUID: "x"}}, want: apierrors.IsConflict},
		"another UID of the object": {request: v1beta2.EtcdClusterRecovery{ObjectMeta: metav1.ObjectMeta{UID: "x"}}, want: apierrors.IsConflict},
		"another state":             {request: v1beta2.EtcdClusterRecovery{ObjectMeta: metav1.ObjectMeta{ResourceVersion: "1"}}, want: apierrors.IsConflict},
		"a member that was deleted": {request: v1beta2.EtcdClusterRecovery{Spec: v1beta2.ClusterRecoverySpec{Member: "a-3"}}, want: apierrors.IsInvalid},
		"another name":              {request: v1beta2.EtcdClusterRecovery{ObjectMeta: metav1.ObjectMeta{Name: "b"}}, want: apierrors.IsBadRequest},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			storage, _ := newStorage(t)
			if test.edit == nil {
				test.edit = func(*v1beta2.EtcdCluster) {}
			}
			lostCluster(t, storage, test.edit)
			if _, err := ask(t, storage, &test.request); !test.want(err) {
				t.Errorf("got %v", err)
			}
			if stored := storedRecovery(t, storage); stored != nil {
				t.Errorf("stored is %+v", stored)
			}
		})
	}
}

// darkCluster is a permanently lost cluster in which no member responds. Members are voters with a
// pod and a PVC; two more voters no longer exist.
func darkCluster(members ...string) func(*v1beta2.EtcdCluster) {
	return func(c *v1beta2.EtcdCluster) {
		since := metav1.Now()
		c.Status.PermanentQuorumLossSince = &since
		c.Status.MemberStatuses = []v1beta2.MemberStatus{{Name: "a-8"}, {Name: "a-9"}, {Name: "a-7", Pod: "a-7"}}
		for _, name := range members {
			c.Status.MemberStatuses = append(c.Status.MemberStatuses, v1beta2.MemberStatus{Name: name, Pod: name, Claim: name})
		}
	}
}

// TestRecoverFromAVolume: if no member responds, the plan is to read the PVC of a voter. Where
// several have one, the request must choose.
func TestRecoverFromAVolume(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		edit   func(*v1beta2.EtcdCluster)
		member string
		source string
		reject string
	}{
		"the only PVC":              {darkCluster("a-1"), "", "a-1", ""},
		"the only PVC, named":       {darkCluster("a-1"), "a-1", "a-1", ""},
		"one of two PVCs, named":    {darkCluster("a-1", "a-2"), "a-2", "a-2", ""},
		"two PVCs, none named":      {darkCluster("a-1", "a-2"), "", "", "a-1, a-2; name one of them in spec.member"},
		"a member without a PVC":    {darkCluster("a-1"), "a-7", "", "no voter with a PVC"},
		"no PVC":                    {darkCluster(), "", "", "restore a backup"},
		"a loss that is not proven": {func(c *v1beta2.EtcdCluster) { darkCluster("a-1")(c); c.Status.PermanentQuorumLossSince = nil }, "", "", "restore a backup"},
		"a member that responds": {func(c *v1beta2.EtcdCluster) {
			darkCluster("a-1")(c)
			c.Status.MemberStatuses[2].RaftIndex = 7
		}, "a-1", "", "does not respond"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			storage, _ := newStorage(t)
			lostCluster(t, storage, test.edit)
			plan, err := ask(t, storage, &v1beta2.EtcdClusterRecovery{Spec: v1beta2.ClusterRecoverySpec{Member: test.member}})
			switch {
			case test.reject != "":
				if err == nil || !strings.Contains(err.Error(), test.reject) {
					t.Errorf("got %v", err)
				}
			case err != nil:
				t.Error(err)
			case plan.Status.Source != (v1beta2.RecoverySource{Member: test.source, PVC: test.source}) ||
				!strings.Contains(plan.Status.ExpectedLoss, "How many is unknown") || !strings.Contains(plan.Status.ExpectedLoss, "Its pod is stopped"):
				t.Errorf("the plan is %+v", plan.Status)
			}
		})
	}
}
