// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package reconcile

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/validation"
)

// api takes a status, or rejects it for what rejects returns.
type api struct {
	stored  v1beta2.EtcdCluster
	writes  int
	rejects func(v1beta2.ClusterStatus) error
}

func (a *api) write(t *testing.T, desired v1beta2.ClusterStatus) (bool, error) {
	t.Helper()
	w := StatusWrite[v1beta2.ClusterStatus]{Kind: ClusterStatus, Gate: noGate{}, Object: &a.stored, Current: a.stored.Status, Now: time.Unix(1e9, 0)}
	return w.Do(t.Context(), func() v1beta2.ClusterStatus { return desired }, func(status v1beta2.ClusterStatus) (metav1.Object, error) {
		a.writes++
		if a.rejects != nil {
			if err := a.rejects(status); err != nil {
				return nil, err
			}
		}
		if _, errs := validation.FitClusterStatus(status, a.stored.Status); len(errs) > 0 {
			return nil, invalid(errs...)
		}
		a.stored.Status = status
		return &a.stored, nil
	})
}

type noGate struct{ Gate }

// Note implements Gate.
func (noGate) Note(types.NamespacedName, metav1.Object) {}

func invalid(errs ...*field.Error) error {
	return apierrors.NewInvalid(v1beta2.SchemeGroupVersion.WithKind("EtcdCluster").GroupKind(), "c", errs)
}

func (a *api) condition(of v1beta2.ClusterConditionType) v1beta2.ClusterCondition {
	for _, c := range a.stored.Status.Conditions {
		if c.Type == of {
			return c
		}
	}
	return v1beta2.ClusterCondition{}
}

// degraded is a status that must be seen, with whatever else is wrong.
func degraded(members ...v1beta2.MemberStatus) v1beta2.ClusterStatus {
	return v1beta2.ClusterStatus{
		Phase: v1beta2.ClusterPhaseRunning, MemberStatuses: members,
		Conditions: []v1beta2.ClusterCondition{{Type: v1beta2.ClusterConditionDegraded, Status: corev1.ConditionTrue, Reason: "MembersUnhealthy"}},
	}
}

func TestRejectedFieldKeepsNothingElseFromBeingReported(t *testing.T) {
	t.Parallel()
	newer := func(status v1beta2.ClusterStatus) error { // an API server that knows more rules
		for i := range status.MemberStatuses {
			if status.MemberStatuses[i].Node == "bad" {
				return invalid(field.Invalid(field.NewPath("status", "memberStatuses").Index(i).Child("node"), "bad", "is no node"))
			}
		}
		return nil
	}
	vague := func(status v1beta2.ClusterStatus) error { // one that does not say which field it is
		if len(status.MemberStatuses) > 0 {
			return apierrors.NewBadRequest("the members are wrong")
		}
		return nil
	}
	for name, test := range map[string]struct {
		desired          v1beta2.ClusterStatus
		rejects          func(v1beta2.ClusterStatus) error
		writes, members  int
		incomplete, says string
	}{
		"a valid status is written as it is":               {degraded(v1beta2.MemberStatus{Name: "a"}), nil, 1, 1, "", ""},
		"what this program rejects is left out at once":    {degraded(v1beta2.MemberStatus{Name: "a"}, v1beta2.MemberStatus{}), nil, 1, 1, "True", "memberStatuses[1].name"},
		"what only the API rejects is left out then":       {degraded(v1beta2.MemberStatus{Name: "a", Node: "bad"}), newer, 2, 1, "True", "memberStatuses[0].node"},
		"conditions are written if the API names no field": {degraded(v1beta2.MemberStatus{Name: "a"}), vague, 2, 0, "True", "the members are wrong"},
		"a huge status is reduced to its conditions":       {degraded(make3000()...), nil, 1, 0, "True", "status"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := &api{rejects: test.rejects}
			if written, err := a.write(t, test.desired); err != nil || !written {
				t.Fatalf("written %v: %v", written, err)
			}
			if a.condition(v1beta2.ClusterConditionDegraded).Status != corev1.ConditionTrue {
				t.Errorf("the conditions are %+v", a.stored.Status.Conditions)
			}
			incomplete := a.condition(v1beta2.ClusterConditionStatusIncomplete)
			if string(incomplete.Status) != test.incomplete || !strings.Contains(incomplete.Message, test.says) {
				t.Errorf("%s is %q: %s", incomplete.Type, incomplete.Status, incomplete.Message)
			}
			if a.writes != test.writes || len(a.stored.Status.MemberStatuses) != test.members {
				t.Errorf("%d writes, %d members", a.writes, len(a.stored.Status.MemberStatuses))
			}
			if test.rejects != nil {
				return // whether that API still rejects it must be tried
			}
			if written, err := a.write(t, test.desired); err != nil || written || a.writes != test.writes {
				t.Errorf("the same status is written again: %v, %v", written, err)
			}
		})
	}
}

// TestTextsOfMembersGoFirst: the bound on the size of a status must not keep the controller from recording what it does. What
// the programs of a tenant report is left out before that, but for the type of each alarm.
func TestTextsOfMembersGoFirst(t *testing.T) {
	t.Parallel()
	var members []v1beta2.MemberStatus
	for i := range 64 {
		m := v1beta2.MemberStatus{Name: fmt.Sprintf("%x", i), Message: strings.Repeat("x", 1000), Node: "n"}
		for by := range 64 {
			m.Alarms = append(m.Alarms, fmt.Sprintf("NOSPACE (raised by %x)", by))
		}
		m.Alarms = append(m.Alarms, "CORRUPT (raised by 1)")
		members = append(members, m)
	}
	desired := degraded(members...)
	desired.Recovery = &v1beta2.RecoveryStatus{ID: "r", Phase: v1beta2.RecoveryPhasePending, Trigger: v1beta2.RecoveryTriggerRestore}
	a := &api{}
	if written, err := a.write(t, desired); err != nil || !written {
		t.Fatalf("written %v: %v", written, err)
	}
	status := a.stored.Status
	if size := status.Size(); size > maxClusterStatus || status.Recovery == nil || len(status.MemberStatuses) != 64 {
		t.Fatalf("%d bytes, %d members, recovery %v", size, len(status.MemberStatuses), status.Recovery)
	}
	m := status.MemberStatuses[0]
	if m.Message != "" || m.Node != "n" || !slices.Equal(m.Alarms, []string{"NOSPACE (raised by 0)", "CORRUPT (raised by 1)"}) {
		t.Errorf("%+v", m)
	}
	if got := a.condition(v1beta2.ClusterConditionStatusIncomplete); got.Status != corev1.ConditionTrue {
		t.Errorf("nothing says that something is left out: %+v", got)
	}
}

func make3000() []v1beta2.MemberStatus {
	var members []v1beta2.MemberStatus
	for i := range 3000 {
		members = append(members, v1beta2.MemberStatus{Name: fmt.Sprintf("%x", i), Message: strings.Repeat("x", 300)})
	}
	return members
}

func TestApiThatRejectsEveryStatusIsAnError(t *testing.T) {
	t.Parallel()
	a := &api{rejects: func(v1beta2.ClusterStatus) error { return apierrors.NewBadRequest("no") }}
	if written, err := a.write(t, degraded()); err == nil || written || a.writes > 3 {
		t.Errorf("written %v in %d requests: %v", written, a.writes, err)
	}
}
