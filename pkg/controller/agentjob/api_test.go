// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package agentjob

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/utils/ptr"
)

// TestAPI: what is listed is of one owner, and what is deleted is one Job with its pods.
func TestAPI(t *testing.T) {
	t.Parallel()
	client := fake.NewClientset(newJob())
	a := API{Kubernetes: client, Labels: func(owner types.UID) map[string]string { return map[string]string{"of": string(owner)} }}
	ctx := t.Context()
	_, jobsErr := a.ListJobs(ctx, "ns", "u")
	_, podsErr := a.ListJobPods(ctx, "ns", "u")
	_, eventsErr := a.ListJobEvents(ctx, "ns", "u")
	deleteErr := a.DeleteJob(ctx, "ns", "j", metav1.Preconditions{UID: ptr.To[types.UID]("u")})
	for _, err := range []error{jobsErr, podsErr, eventsErr, deleteErr} {
		if err != nil {
			t.Fatal(err)
		}
	}
	listed := map[string]string{}
	for _, action := range client.Actions() {
		switch action := action.(type) {
		case clienttesting.ListAction:
			only := action.GetListRestrictions()
			listed[action.GetResource().Resource] = only.Labels.String() + only.Fields.String()
		case clienttesting.DeleteAction:
			options := action.GetDeleteOptions()
			if options.Preconditions == nil || *options.Preconditions.UID != "u" || options.PropagationPolicy == nil || *options.PropagationPolicy != metav1.DeletePropagationBackground {
				t.Errorf("deleted with %+v", options)
			}
			listed["deleted"] = action.GetName()
		}
	}
	want := map[string]string{"jobs": "of=u", "pods": "of=u", "events": "involvedObject.uid=u,reason=" + EventRefused, "deleted": "j"}
	for what, by := range want {
		if listed[what] != by {
			t.Errorf("%s by %q, want %q", what, listed[what], by)
		}
	}
}
