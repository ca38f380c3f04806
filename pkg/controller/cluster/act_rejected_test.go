// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/controller/background"
	"github.com/etcd-operator/etcd-operator/pkg/controller/reconcile"
	"github.com/etcd-operator/etcd-operator/pkg/etcd"
	planner "github.com/etcd-operator/etcd-operator/pkg/planner/cluster"
	"github.com/etcd-operator/etcd-operator/pkg/resources"
	"github.com/etcd-operator/etcd-operator/pkg/share"
)

// terminating is the error of a live API for a creation in a namespace that is being
// deleted.
func terminating(resource schema.GroupResource, name string) error {
	err := apierrors.NewForbidden(resource, name, errors.New("it goes"))
	err.ErrStatus.Details.Causes = []metav1.StatusCause{{Type: corev1.NamespaceTerminatingCause}}
	return err
}

// noon is when these tests happen.
func noon() *clocktesting.FakePassiveClock {
	return clocktesting.NewFakePassiveClock(time.Date(2026, 11, 1, 12, 0, 0, 0, time.UTC))
}

// strict is a live API that rejects every pod.
type strict struct {
	*hiddenRecoveryMember
	response error
}

func (s *strict) CreatePod(context.Context, *corev1.Pod) (*corev1.Pod, error) { return nil, s.response }

func (s *strict) CreatePVC(_ context.Context, c *corev1.PersistentVolumeClaim) (*corev1.PersistentVolumeClaim, error) {
	return c, nil
}

// TestRejectedPods: the plan waits for a pod that Kubernetes rejects, and the status names
// the reason. That is no error, and the wait does not grow. Everything else still is an
// error.
func TestRejectedPods(t *testing.T) {
	t.Parallel()
	pods := schema.GroupResource{Resource: "pods"}
	recovery := v1beta2.RecoveryStatus{ID: "r", Phase: v1beta2.RecoveryPhaseFilling, RecoveryMember: "c-a", Source: v1beta2.RecoverySource{Member: "c-old"}}
	for what, action := range map[string]planner.Action{
		"member": planner.PreparePod{Name: "c-a", CreatePVC: true}, "seed": planner.CreateRecoveryMember{Recovery: recovery},
	} {
		for name, test := range map[string]struct {
			response error
			rejected bool
		}{
			"quota":     {apierrors.NewForbidden(pods, "c-a", errors.New("exceeded quota: full")), true},
			"policy":    {apierrors.NewInvalid(schema.GroupKind{Kind: "Pod"}, "c-a", nil), true},
			"namespace": {terminating(pods, "c-a"), false},
			"server":    {apierrors.NewInternalError(errors.New("x")), false},
		} {
			t.Run(what+" "+name, func(t *testing.T) {
				t.Parallel()
				h := &hiddenRecoveryMember{oneMember: stopped()}
				h.pod, h.pvc = nil, nil
				h.record(t, v1beta2.RecoveryPhaseFilling, "old")
				api := &strict{h, test.response}
				clock := noon()
				r := &Reconciler{Config: Config{Objects: api, Etcd: h, Gate: h, Recorder: h, Clock: clock, AgentImage: "agent:1"}}
				s := h.observed()
				s.Now = clock.Now()
				result, err := act(t.Context(), &run{Reconciler: r, key: types.NamespacedName{Namespace: h.cluster.Namespace, Name: h.cluster.Name}, seen: s}, planner.Plan{
					Actions: []planner.Action{action}, Wait: &planner.Wait{Reason: "WaitingForPod"},
				})
				plan := result.revised(planner.Plan{RequeueAfter: time.Minute})
				told := plan.Wait != nil && plan.Wait.Reason == v1beta2.ReasonPodRejected && plan.RequeueAfter <= 10*time.Second &&
					strings.Contains(plan.Wait.Message, test.response.Error())
				ending := plan.Wait != nil && plan.Wait.Reason == "NamespaceTerminating"
				if told != test.rejected || ending != apierrors.HasStatusCause(test.response, corev1.NamespaceTerminatingCause) || (err == nil) != (test.rejected || ending) {
					t.Errorf("waits for %+v, looks again after %s, fails with %v", plan.Wait, plan.RequeueAfter, err)
				}
				if ending && !strings.Contains(plan.Wait.Remedy, "kubectl etcd snapshot save") {
					t.Errorf("a namespace in which no Job can be created has the remedy %q", plan.Wait.Remedy)
				}
			})
		}
	}
}

// noService is a live API that rejects every creation and change of a Service.
type noService struct {
	*hiddenRecoveryMember
	response error
}

func (s *noService) CreateService(context.Context, *corev1.Service) (*corev1.Service, error) {
	return nil, s.response
}

func (s *noService) UpdateService(context.Context, *corev1.Service) (*corev1.Service, error) {
	return nil, s.response
}

// TestRejectedService: a client Service that Kubernetes rejects is no error. The status
// reports it, and it delays nothing that the plan wants to look at earlier.
func TestRejectedService(t *testing.T) {
	t.Parallel()
	services := schema.GroupResource{Resource: "services"}
	for name, test := range map[string]struct {
		response error
		rejected bool
	}{
		"no such family": {apierrors.NewInvalid(schema.GroupKind{Kind: "Service"}, "c-client", nil), true},
		"policy":         {apierrors.NewForbidden(services, "c-client", errors.New("no load balancers")), true},
		"namespace":      {terminating(services, "c-client"), false},
		"server":         {apierrors.NewInternalError(errors.New("x")), false},
	} {
		for _, exists := range []bool{false, true} {
			h := &hiddenRecoveryMember{oneMember: stopped()}
			family := corev1.IPFamilyPolicyRequireDualStack
			h.cluster.Spec.Services = &v1beta2.ServicesPolicy{Client: &v1beta2.ServiceTemplate{IPFamilyPolicy: &family}}
			clock := noon()
			r := &Reconciler{Config: Config{Objects: &noService{h, test.response}, Etcd: h, Gate: h, Recorder: h, Clock: clock}}
			s := &seen{Observed: planner.Observed{Cluster: h.cluster, Now: clock.Now()}}
			if exists {
				s.clientService = resources.ClientService(h.cluster)
				s.clientService.Spec.IPFamilyPolicy = nil
			}
			key := types.NamespacedName{Namespace: h.cluster.Namespace, Name: h.cluster.Name}
			result, err := act(t.Context(), &run{Reconciler: r, key: key, seen: s}, planner.Plan{Actions: []planner.Action{planner.EnsureClientService{}}})
			plan := result.revised(planner.Plan{RequeueAfter: time.Hour})
			if told := strings.Contains(plan.ServiceRejected, test.response.Error()); told != test.rejected || (err == nil) != (test.rejected || plan.Wait != nil) ||
				(plan.Wait != nil) != apierrors.HasStatusCause(test.response, corev1.NamespaceTerminatingCause) {
				t.Errorf("%s (exists: %v): %q, fails with %v", name, exists, plan.ServiceRejected, err)
			}
			if (plan.RequeueAfter <= time.Minute) != test.rejected {
				t.Errorf("%s: looks again after %v", name, plan.RequeueAfter)
			}
			if soon := result.revised(planner.Plan{RequeueAfter: time.Second}); soon.RequeueAfter != time.Second {
				t.Errorf("%s: what is due after a second is looked at after %v", name, soon.RequeueAfter)
			}
		}
	}
}

// guarded is an etcd that rejects every request, and a cluster without objects.
type guarded struct {
	*oneMember
	response error
	said     *v1beta2.ClusterStatus
}

// Promote, Statuses and Members implement Etcd.
func (g *guarded) Promote(context.Context, etcd.Target, uint64) error { return g.response }

func (g *guarded) Statuses(context.Context, etcd.Target) map[string]etcd.StatusResult { return nil }

func (g *guarded) Members(context.Context, etcd.Target) (etcd.Membership, error) {
	return etcd.Membership{}, &etcd.Error{Op: "list members", Kind: etcd.ErrUnavailable}
}

// CreatePodDisruptionBudget and UpdateClusterStatus implement Objects.
func (g *guarded) CreatePodDisruptionBudget(context.Context, *policyv1.PodDisruptionBudget) (*policyv1.PodDisruptionBudget, error) {
	return nil, g.response
}

func (g *guarded) UpdateClusterStatus(_ context.Context, c *v1beta2.EtcdCluster) (*v1beta2.EtcdCluster, error) {
	g.said = &c.Status
	return c, nil
}

// Cluster and the others implement Cache.
func (g *guarded) Cluster(string, string) (*v1beta2.EtcdCluster, error) { return g.cluster, nil }

func (g *guarded) Restore(_, name string) (*v1beta2.EtcdRestore, error) {
	return nil, apierrors.NewNotFound(v1beta2.Resource("etcdrestores"), name)
}

func (g *guarded) IsCordoned(string) bool { return false }

func (g *guarded) Service(_, name string) (*corev1.Service, error) {
	return nil, apierrors.NewNotFound(corev1.Resource("services"), name)
}

func (g *guarded) ConfigMap(_, name string) (*corev1.ConfigMap, error) {
	return nil, apierrors.NewNotFound(corev1.Resource("configmaps"), name)
}

func (g *guarded) HiddenPods(string, string) ([]*corev1.Pod, error) { return nil, nil }

func (g *guarded) HiddenPVCs(string, string) ([]*corev1.PersistentVolumeClaim, error) {
	return nil, nil
}

func (g *guarded) PodDisruptionBudget(_, name string) (*policyv1.PodDisruptionBudget, error) {
	return nil, apierrors.NewNotFound(policyv1.Resource("poddisruptionbudgets"), name)
}

func (g *guarded) Pods(string, string) ([]*corev1.Pod, error) { return nil, nil }

func (g *guarded) Pod(_, name string) (*corev1.Pod, error) {
	return nil, apierrors.NewNotFound(corev1.Resource("pods"), name)
}

func (g *guarded) PVC(_, name string) (*corev1.PersistentVolumeClaim, error) {
	return nil, apierrors.NewNotFound(corev1.Resource("persistentvolumeclaims"), name)
}

func (g *guarded) PVCs(string, string) ([]*corev1.PersistentVolumeClaim, error) { return nil, nil }

func (g *guarded) PodsInEndpoints(string, string) (map[types.UID]bool, error) { return nil, nil }

// TestLastingErrors: the status reports an error that lasts until a user changes something,
// and its remedy, also if the controller tries again.
func TestLastingErrors(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		response            error
		reason, remediation string
	}{
		"etcd's own authorization": {&etcd.Error{Op: "promote member", Kind: etcd.ErrDenied}, "EtcdDenied", "user root"},
		"a missing permission":     {apierrors.NewForbidden(schema.GroupResource{Resource: "pods"}, "c-a", errors.New("no")), "Forbidden", "Give the controller the permission"},
		"a name conflict":          {fmt.Errorf("service c-client exists: %w", reconcile.ErrNotOwned), "NameConflict", "Delete the object that the message names"},
		"an overloaded server":     {apierrors.NewTooManyRequests("later", 1), "", ""},
		"no quorum":                {&etcd.Error{Op: "promote member", Kind: etcd.ErrNoQuorum}, "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := &guarded{oneMember: stopped(), response: test.response}
			clock := noon()
			r := newReconciler(Config{
				Cache: g, Objects: g, Etcd: g, Gate: g, Recorder: g, Clock: clock, Background: background.New(share.Divided, func(types.NamespacedName) {}),
				Suffix: func() string { return "x" }, Responsible: func(*v1beta2.EtcdCluster) bool { return true },
				Decide: func(planner.Observed) planner.Plan {
					return planner.Plan{Actions: []planner.Action{planner.PromoteMember{ID: 1, Name: "c-a"}}}
				},
			})
			_, err := r.Reconcile(t.Context(), types.NamespacedName{Namespace: "n", Name: "c"})
			if errors.Is(test.response, reconcile.ErrNotOwned) {
				if err != nil {
					t.Errorf("it fails with %v: only a person can change that, and each try would be logged", err)
				}
			} else if err == nil || !errors.Is(err, test.response) {
				t.Errorf("it fails with %v, and is not tried again", err)
			}
			if g.said == nil {
				t.Fatal("it says nothing")
			}
			switch b := g.said.BlockedBy; {
			case test.reason == "" && b != nil:
				t.Errorf("says %+v of what may pass", b)
			case test.reason != "" && (b == nil || b.Reason != test.reason || !strings.Contains(b.Message, test.response.Error()) || !strings.Contains(b.Unblock, test.remediation)):
				t.Errorf("blocked by %+v", b)
			}
		})
	}
}

// TestActStopsWhereItFails: the actions after a failed action are not done, because they
// depend on its success. A failed upkeep action stops nothing, and the status reports its
// error.
func TestActStopsWhereItFails(t *testing.T) {
	t.Parallel()
	forbidden := apierrors.NewForbidden(schema.GroupResource{Resource: "poddisruptionbudgets"}, "c", errors.New("no"))
	remove := planner.DeletePod{Name: "c-a", UID: "pod-uid"}
	for name, test := range map[string]struct {
		first  planner.Action
		follow bool
	}{
		"a change of the membership": {planner.PromoteMember{ID: 1, Name: "c-a"}, false},
		"the upkeep":                 {planner.EnsurePodDisruptionBudget{MinAvailable: 2}, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := &guarded{oneMember: stopped(), response: forbidden}
			clock := noon()
			r := &Reconciler{Config: Config{Cache: g, Objects: g, Etcd: g, Gate: g, Recorder: g, Clock: clock}}
			s := &seen{Observed: planner.Observed{Cluster: g.cluster, Now: clock.Now()}}
			result, err := act(t.Context(), &run{Reconciler: r, key: types.NamespacedName{Namespace: "n", Name: "c"}, seen: s}, planner.Plan{Actions: []planner.Action{test.first, remove}})
			if !errors.Is(err, forbidden) || result.wait == nil || result.wait.Reason != "Forbidden" {
				t.Errorf("it waits for %+v and fails with %v", result.wait, err)
			}
			if followed := slices.Contains(g.calls, "delete pod"); followed != test.follow {
				t.Errorf("it goes on %t: %q", followed, g.calls)
			}
		})
	}
}

// TestEtcdIsNotReadyForAChange: etcd rejects a change until its members have been connected
// for a while. The controller tries again soon, and not later each time.
func TestEtcdIsNotReadyForAChange(t *testing.T) {
	t.Parallel()
	g := &guarded{oneMember: stopped(), response: &etcd.Error{Op: "promote member", Kind: etcd.ErrUnhealthy}}
	clock := noon()
	r := &Reconciler{Config: Config{Objects: g, Etcd: g, Gate: g, Recorder: g, Clock: clock}}
	s := &seen{Observed: planner.Observed{Cluster: g.cluster, Now: clock.Now()}}
	result, err := act(t.Context(), &run{Reconciler: r, key: types.NamespacedName{Namespace: "n", Name: "c"}, seen: s}, planner.Plan{Actions: []planner.Action{planner.PromoteMember{ID: 1, Name: "c-a"}}})
	plan := result.revised(planner.Plan{RequeueAfter: time.Minute})
	if err != nil || plan.RequeueAfter == 0 || plan.RequeueAfter > time.Second || plan.Wait == nil || plan.Wait.Reason != "EtcdUnhealthy" {
		t.Errorf("waits for %+v, looks again after %s, fails with %v", plan.Wait, plan.RequeueAfter, err)
	}
}
