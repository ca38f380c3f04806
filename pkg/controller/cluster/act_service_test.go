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
	planner "github.com/etcd-operator/etcd-operator/pkg/planner/cluster"
	"github.com/etcd-operator/etcd-operator/pkg/resources"
)

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
	ends := apierrors.NewForbidden(services, "c-client", errors.New("it goes"))
	ends.ErrStatus.Details.Causes = []metav1.StatusCause{{Type: corev1.NamespaceTerminatingCause}}
	for name, test := range map[string]struct {
		answer  error
		refused bool
	}{
		"no such family": {apierrors.NewInvalid(schema.GroupKind{Kind: "Service"}, "c-client", nil), true},
		"policy":         {apierrors.NewForbidden(services, "c-client", errors.New("no load balancers")), true},
		"namespace":      {ends, false},
		"server":         {apierrors.NewInternalError(errors.New("x")), false},
	} {
		for _, exists := range []bool{false, true} {
			h := &hiddenSeed{oneMember: stopped()}
			family := corev1.IPFamilyPolicyRequireDualStack
			h.cluster.Spec.Services = &v1beta2.ServicesPolicy{Client: &v1beta2.ServiceTemplate{IPFamilyPolicy: &family}}
			clock := clocktesting.NewFakePassiveClock(time.Date(2026, 11, 1, 12, 0, 0, 0, time.UTC))
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
