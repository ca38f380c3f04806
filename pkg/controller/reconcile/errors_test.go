// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package reconcile

import (
	"errors"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

func TestMarkRejectedTellsRejectionsFromOtherErrors(t *testing.T) {
	t.Parallel()
	pods := schema.GroupResource{Resource: "pods"}
	ending := apierrors.NewForbidden(pods, "p", errors.New("the namespace is being deleted"))
	ending.ErrStatus.Details.Causes = []metav1.StatusCause{{Type: corev1.NamespaceTerminatingCause}}
	for name, test := range map[string]struct {
		err  error
		want bool
	}{
		"quota":     {apierrors.NewForbidden(pods, "p", errors.New("exceeded quota")), true},
		"policy":    {apierrors.NewInvalid(schema.GroupKind{Kind: "Pod"}, "p", nil), true},
		"webhook":   {apierrors.NewBadRequest("denied"), true},
		"namespace": {ending, false},
		"server":    {apierrors.NewInternalError(errors.New("x")), false},
		"connect":   {errors.New("connection refused"), false},
	} {
		got := MarkRejected(test.err)
		if errors.Is(got, ErrRejected) != test.want || !errors.Is(got, test.err) {
			t.Errorf("%s: %v", name, got)
		}
	}
}
