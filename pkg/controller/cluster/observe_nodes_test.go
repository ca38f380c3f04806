// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/controller/reconcile"
	"github.com/etcd-operator/etcd-operator/pkg/diagnosis"
	planner "github.com/etcd-operator/etcd-operator/pkg/planner/cluster"
	"github.com/etcd-operator/etcd-operator/pkg/resources"
)

// oneNode is a live API with one node.
type oneNode struct {
	*oneMember
	ready corev1.ConditionStatus
	err   error
	reads []string
}

func (n *oneNode) GetNode(_ context.Context, name string) (*corev1.Node, error) {
	n.reads = append(n.reads, name)
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}
	node.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: n.ready}}
	return node, n.err
}

// afterRemoval is what is observed after member c-b was removed from etcd, and the controller crashed
// before it wrote that into the status. c-b has no pod and no PVC. c-a serves by itself.
func afterRemoval(live *oneMember) *seen {
	cluster := live.cluster.DeepCopy()
	cluster.Spec.Replicas = ptr.To[int32](2)
	s := &seen{Observed: planner.Observed{Cluster: cluster, Record: planner.Record{State: planner.Current, Record: resources.Record{ClusterID: "c0ffee"}}}}
	s.Etcd.Members = []planner.Member{
		{ID: 1, Name: "c-a", Started: true, Health: planner.Unhealthy, Reason: planner.ReasonUnresponsive},
		{ID: 2, Name: "c-b", Started: true, Health: planner.Unhealthy, Reason: planner.ReasonNoPod},
	}
	s.Pods = []planner.Pod{{Name: "c-a", Node: "n1", Owned: true, Running: true, Role: planner.PodVoter}}
	s.PVCs = []planner.PVC{{Name: "c-a", Owned: true}}
	return s
}

// TestRemovedVoterProvesNoLoss: a voter that the status still names may have been removed. The loss of the
// quorum is permanent only if the node of the other voter reports that its pod is not ready.
func TestRemovedVoterProvesNoLoss(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		node      oneNode
		edit      func(*seen)
		permanent bool
		reads     int
	}{
		"its node is cut off":       {oneNode{ready: corev1.ConditionUnknown}, nil, false, 1},
		"its node is not ready":     {oneNode{ready: corev1.ConditionFalse}, nil, false, 1},
		"its node reports":          {oneNode{ready: corev1.ConditionTrue}, nil, true, 1},
		"its node cannot be read":   {oneNode{err: apierrors.NewInternalError(errors.New("no"))}, nil, false, 1},
		"its node does not exist":   {oneNode{err: apierrors.NewNotFound(corev1.Resource("nodes"), "n1")}, nil, true, 1},
		"its pod has ended":         {oneNode{}, func(s *seen) { s.Pods[0].Finished = true }, true, 0},
		"its pod is not bound":      {oneNode{}, func(s *seen) { s.Pods[0].Node, s.Pods[0].Running = "", false }, true, 0},
		"it responds with its list": {oneNode{}, respondsWithBoth, true, 0},
		"the other one has its PVC": {oneNode{}, func(s *seen) { s.PVCs = append(s.PVCs, planner.PVC{Name: "c-b", Owned: true}) }, false, 1},
		"etcd lists no loss":        {oneNode{}, func(s *seen) { s.Etcd.Linearizable = true }, false, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			node := test.node
			node.oneMember = stopped()
			s := afterRemoval(node.oneMember)
			if test.edit != nil {
				test.edit(s)
			}
			observeNodesOfUnresponsive(t.Context(), &run{Reconciler: &Reconciler{Config: Config{Objects: &node}}, seen: s})
			if got := planner.HasPermanentLoss(&s.Observed); got != test.permanent {
				t.Errorf("permanent: %t", got)
			}
			if len(node.reads) != test.reads {
				t.Errorf("it read the nodes %v", node.reads)
			}
		})
	}
}

// TestNodesOfUnresponsive: the node of a member that does not respond is read as soon as the quorum is lost, also while the
// loss is not permanent. A node that does not exist keeps the cutover of a recovery waiting until its pods are removed.
func TestNodesOfUnresponsive(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		node             oneNode
		notReady, absent bool
	}{
		"it is not ready":   {oneNode{ready: corev1.ConditionUnknown}, true, false},
		"it reports":        {oneNode{ready: corev1.ConditionTrue}, false, false},
		"it does not exist": {oneNode{err: apierrors.NewNotFound(corev1.Resource("nodes"), "n1")}, false, true},
	} {
		node := test.node
		node.oneMember = stopped()
		s := afterRemoval(node.oneMember)
		s.PVCs = append(s.PVCs, planner.PVC{Name: "c-b", Owned: true})
		r := &run{Reconciler: &Reconciler{Config: Config{Objects: &node}}, seen: s}
		observeNodesOfUnresponsive(t.Context(), r)
		if p := s.Pods[0]; p.NodeNotReady != test.notReady || p.NodeAbsent {
			t.Errorf("%s: %+v", name, p)
		}
		if err := observeNodes(t.Context(), r); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if p := s.Pods[0]; p.NodeNotReady != test.notReady || p.NodeAbsent != test.absent {
			t.Errorf("%s, before the cutover: %+v", name, p)
		}
	}
}

// TestUnreadNodes: a controller with Roles only may not read nodes. It says so where a node must be read, and goes on where
// a member responds. A request that fails for a moment is made again.
func TestUnreadNodes(t *testing.T) {
	t.Parallel()
	forbidden := apierrors.NewForbidden(corev1.Resource("nodes"), "n1", errors.New("no Role grants it"))
	for name, test := range map[string]struct {
		err              error
		edit             func(*seen)
		says             string
		permanent, fails bool
	}{
		"its member does not respond":        {err: forbidden, says: "could not be read"},
		"its member responds":                {err: forbidden, edit: respondsWithBoth},
		"the request fails":                  {err: apierrors.NewInternalError(errors.New("no")), fails: true},
		"the loss would be permanent":        {err: forbidden, says: "give the controller the right to get nodes", permanent: true},
		"it would be, and the request fails": {err: apierrors.NewInternalError(errors.New("no")), says: "Kubernetes did not return it", permanent: true},
	} {
		node := oneNode{oneMember: stopped(), err: test.err}
		s := afterRemoval(node.oneMember)
		if test.edit != nil {
			test.edit(s)
		}
		r := &run{Reconciler: &Reconciler{Config: Config{Objects: &node}}, seen: s}
		if test.permanent {
			observeNodesOfUnresponsive(t.Context(), r)
		} else if err := observeNodes(t.Context(), r); (err != nil) != test.fails {
			t.Errorf("%s: %v", name, err)
		}
		p := s.Pods[0]
		if p.NodeNotReady != (test.says != "") || !strings.Contains(diagnosis.NotReadyNode(p.Name, p.Node, p.NodeUnread), test.says) {
			t.Errorf("%s: %+v", name, p)
		}
	}
}

func respondsWithBoth(s *seen) {
	m := &s.Etcd.Members[0]
	m.Reason, m.RaftIndex, m.View = planner.ReasonNoLeader, 9, &planner.View{Members: slices.Clone(s.Etcd.Members)}
}

// unresponsiveNodes is a notebook beside nodes that do not report.
type unresponsiveNodes struct {
	*notebook
	names []string
}

func (n *unresponsiveNodes) NodeReports(context.Context, []string) (map[string]string, error) {
	return unchangedReports(n.names), nil
}

// TestNoPVCIsReadWhileANodeDoesNotReport: a recovery that stops a member to read its PVC begins only if the
// kubelet of that member reports right now. Kubernetes takes some 40 s to notice that a node is cut off.
func TestNoPVCIsReadWhileANodeDoesNotReport(t *testing.T) {
	t.Parallel()
	fromPVC, fromMember := v1beta2.RecoverySource{Member: "c-a", PVC: "c-a"}, v1beta2.RecoverySource{Member: "c-a", RaftIndex: 9}
	for name, test := range map[string]struct {
		source       v1beta2.RecoverySource
		unresponsive []string
		begins       bool
	}{
		"the kubelet reports":          {fromPVC, nil, true},
		"the kubelet does not report":  {fromPVC, []string{"n1"}, false},
		"the recovery stops no member": {fromMember, []string{"n1"}, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := &hiddenRecoveryMember{oneMember: stopped()}
			h.kept = resources.RecordConfigMap(h.cluster, resources.Record{BootstrapMember: "c-a", ClusterID: "old"})
			s := h.observed()
			s.Pods = []planner.Pod{{Name: "c-a", UID: "pod-uid", Node: "n1", Owned: true}}
			api := &unresponsiveNodes{&notebook{hiddenRecoveryMember: h}, test.unresponsive}
			err := recordRecovery(t.Context(), &run{Reconciler: &Reconciler{Config: Config{Objects: api, Etcd: h, Gate: h, Recorder: h, Clock: noon()}}, seen: s},
				planner.RecordRecovery{Recovery: v1beta2.RecoveryStatus{ID: "r", Phase: v1beta2.RecoveryPhaseFilling, RecoveryMember: "c-s", Source: test.source}})
			if begins := api.written != nil; begins != test.begins || begins == errors.Is(err, reconcile.ErrStale) {
				t.Errorf("begins %t, error %v", begins, err)
			}
		})
	}
}
