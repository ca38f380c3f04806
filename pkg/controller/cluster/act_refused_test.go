// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/etcd"
	planner "github.com/etcd-operator/etcd-operator/pkg/planner/cluster"
	"github.com/etcd-operator/etcd-operator/pkg/resources"
)

// terminating is the answer of a live API to what is made in a namespace that goes.
func terminating(resource schema.GroupResource, name string) error {
	err := apierrors.NewForbidden(resource, name, errors.New("it goes"))
	err.ErrStatus.Details.Causes = []metav1.StatusCause{{Type: corev1.NamespaceTerminatingCause}}
	return err
}

// noon is when these tests happen.
func noon() *clocktesting.FakePassiveClock {
	return clocktesting.NewFakePassiveClock(time.Date(2026, 11, 1, 12, 0, 0, 0, time.UTC))
}

// strict is a live API that lets no pod be made.
type strict struct {
	*hiddenSeed
	answer error
}

func (s *strict) CreatePod(context.Context, *corev1.Pod) (*corev1.Pod, error) { return nil, s.answer }

func (s *strict) CreateClaim(_ context.Context, c *corev1.PersistentVolumeClaim) (*corev1.PersistentVolumeClaim, error) {
	return c, nil
}

// TestRefusedPods: a pod that Kubernetes does not let be made is waited for with its reason,
// which is no error and is not waited for longer each time. Everything else still is one.
func TestRefusedPods(t *testing.T) {
	t.Parallel()
	pods := schema.GroupResource{Resource: "pods"}
	recovery := v1beta2.RecoveryStatus{ID: "r", Phase: v1beta2.RecoveryPhaseSeeding, Seed: "c-a", Source: v1beta2.RecoverySource{Member: "c-old"}}
	for what, action := range map[string]planner.Action{
		"member": planner.CreatePod{Name: "c-a"}, "seed": planner.CreateReseed{Recovery: recovery},
	} {
		for name, test := range map[string]struct {
			answer  error
			refused bool
		}{
			"quota":     {apierrors.NewForbidden(pods, "c-a", errors.New("exceeded quota: full")), true},
			"policy":    {apierrors.NewInvalid(schema.GroupKind{Kind: "Pod"}, "c-a", nil), true},
			"namespace": {terminating(pods, "c-a"), false},
			"server":    {apierrors.NewInternalError(errors.New("x")), false},
		} {
			t.Run(what+" "+name, func(t *testing.T) {
				t.Parallel()
				h := &hiddenSeed{oneMember: stopped()}
				h.claim = nil
				h.record(t, v1beta2.RecoveryPhaseSeeding, "old")
				api := &strict{h, test.answer}
				clock := noon()
				r := &Reconciler{Config: Config{Objects: api, Etcd: h, Gate: h, Recorder: h, Clock: clock, AgentImage: "agent:1"}}
				s := &seen{Observed: planner.Observed{Cluster: h.cluster, Now: clock.Now()}, peerService: h.service}
				result, err := r.act(t.Context(), types.NamespacedName{Namespace: h.cluster.Namespace, Name: h.cluster.Name}, s, planner.Plan{Actions: []planner.Action{action}})
				plan := result.revised(planner.Plan{RequeueAfter: time.Minute})
				told := plan.Wait != nil && plan.Wait.Reason == v1beta2.ReasonPodRefused && plan.RequeueAfter <= 10*time.Second &&
					strings.Contains(plan.Wait.Message, test.answer.Error())
				if told != test.refused || (err == nil) != test.refused {
					t.Errorf("waits for %+v, looks again after %s, fails with %v", plan.Wait, plan.RequeueAfter, err)
				}
			})
		}
	}
}

// noService is a live API that lets no service be made or changed.
type noService struct {
	*hiddenSeed
	answer error
}

func (s *noService) CreateService(context.Context, *corev1.Service) (*corev1.Service, error) {
	return nil, s.answer
}

func (s *noService) UpdateService(context.Context, *corev1.Service) (*corev1.Service, error) {
	return nil, s.answer
}

// TestRefusedService: a service for clients that Kubernetes refuses is no error, belongs in
// the status, and delays nothing that the plan wants to look at before.
func TestRefusedService(t *testing.T) {
	t.Parallel()
	services := schema.GroupResource{Resource: "services"}
	for name, test := range map[string]struct {
		answer  error
		refused bool
	}{
		"no such family": {apierrors.NewInvalid(schema.GroupKind{Kind: "Service"}, "c-client", nil), true},
		"policy":         {apierrors.NewForbidden(services, "c-client", errors.New("no load balancers")), true},
		"namespace":      {terminating(services, "c-client"), false},
		"server":         {apierrors.NewInternalError(errors.New("x")), false},
	} {
		for _, exists := range []bool{false, true} {
			h := &hiddenSeed{oneMember: stopped()}
			family := corev1.IPFamilyPolicyRequireDualStack
			h.cluster.Spec.Services = &v1beta2.ServicesPolicy{Client: &v1beta2.ServiceTemplate{IPFamilyPolicy: &family}}
			clock := noon()
			r := &Reconciler{Config: Config{Objects: &noService{h, test.answer}, Etcd: h, Gate: h, Recorder: h, Clock: clock}}
			s := &seen{Observed: planner.Observed{Cluster: h.cluster, Now: clock.Now()}}
			if exists {
				s.clientService = resources.ClientService(h.cluster)
				s.clientService.Spec.IPFamilyPolicy = nil
			}
			key := types.NamespacedName{Namespace: h.cluster.Namespace, Name: h.cluster.Name}
			result, err := r.act(t.Context(), key, s, planner.Plan{Actions: []planner.Action{planner.EnsureClientService{}}})
			plan := result.revised(planner.Plan{RequeueAfter: time.Hour})
			if told := strings.Contains(plan.ServiceRefused, test.answer.Error()); told != test.refused || (err == nil) != test.refused || plan.Wait != nil {
				t.Errorf("%s (exists: %v): %q, fails with %v", name, exists, plan.ServiceRefused, err)
			}
			if (plan.RequeueAfter <= time.Minute) != test.refused {
				t.Errorf("%s: looks again after %v", name, plan.RequeueAfter)
			}
			if soon := result.revised(planner.Plan{RequeueAfter: time.Second}); soon.RequeueAfter != time.Second {
				t.Errorf("%s: what is due after a second is looked at after %v", name, soon.RequeueAfter)
			}
		}
	}
}

// guarded is an etcd, and an API, that refuse what is asked of them.
type guarded struct {
	*oneMember
	answer error
}

func (g *guarded) Promote(context.Context, etcd.Target, uint64) error { return g.answer }

// TestLastingErrors: what goes on until somebody changes something is said in the status,
// also where it is an error that is tried again.
func TestLastingErrors(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		answer error
		reason string
	}{
		"etcd's own authorization": {&etcd.Error{Op: "promote member", Kind: etcd.ErrDenied}, "EtcdDenied"},
		"a right that is missing":  {apierrors.NewForbidden(schema.GroupResource{Resource: "pods"}, "c-a", errors.New("no")), "Forbidden"},
		"a name that is taken":     {errNotOurs, "NameTaken"},
		"a server that is busy":    {apierrors.NewTooManyRequests("later", 1), ""},
		"no quorum":                {&etcd.Error{Op: "promote member", Kind: etcd.ErrNoQuorum}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := &guarded{stopped(), test.answer}
			clock := noon()
			r := &Reconciler{Config: Config{Objects: g, Etcd: g, Gate: g, Recorder: g, Clock: clock}}
			s := &seen{Observed: planner.Observed{Cluster: g.cluster, Now: clock.Now()}}
			result, err := r.act(t.Context(), types.NamespacedName{Namespace: "n", Name: "c"}, s,
				planner.Plan{Actions: []planner.Action{planner.PromoteMember{ID: 1, Name: "c-a"}}})
			plan, reason := result.revised(planner.Plan{}), ""
			if plan.Wait != nil {
				reason = plan.Wait.Reason
			}
			if reason != test.reason || err == nil {
				t.Errorf("waits for %+v and fails with %v", plan.Wait, err)
			}
		})
	}
}

// TestEtcdIsNotReadyForAChange: what etcd refuses until its members have been connected for
// a while is asked for again soon, and not later each time.
func TestEtcdIsNotReadyForAChange(t *testing.T) {
	t.Parallel()
	g := &guarded{stopped(), &etcd.Error{Op: "promote member", Kind: etcd.ErrUnhealthy}}
	clock := clocktesting.NewFakePassiveClock(time.Date(2026, 11, 1, 12, 0, 0, 0, time.UTC))
	r := &Reconciler{Config: Config{Objects: g, Etcd: g, Gate: g, Recorder: g, Clock: clock}}
	s := &seen{Observed: planner.Observed{Cluster: g.cluster, Now: clock.Now()}}
	result, err := r.act(t.Context(), types.NamespacedName{Namespace: "n", Name: "c"}, s,
		planner.Plan{Actions: []planner.Action{planner.PromoteMember{ID: 1, Name: "c-a"}}})
	plan := result.revised(planner.Plan{RequeueAfter: time.Minute})
	if err != nil || plan.RequeueAfter == 0 || plan.RequeueAfter > time.Second || plan.Wait == nil || plan.Wait.Reason != "EtcdUnhealthy" {
		t.Errorf("waits for %+v, looks again after %s, fails with %v", plan.Wait, plan.RequeueAfter, err)
	}
}
