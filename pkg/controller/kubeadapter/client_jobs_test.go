// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package kubeadapter

import (
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/utils/ptr"

	"github.com/etcd-operator/etcd-operator/pkg/controller/job"
)

// TestJobClientSelectsOneOwnerAndDeletesOneJob: lists select by the labels of one owner; a
// deletion takes one Job, by its UID, with its pods.
func TestJobClientSelectsOneOwnerAndDeletesOneJob(t *testing.T) {
	t.Parallel()
	client := fake.NewClientset(&batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "j", UID: "u"}})
	c := JobClient{Client: Client{Kubernetes: client}, Labels: func(owner types.UID) map[string]string { return map[string]string{"of": string(owner)} }}
	ctx := t.Context()
	_, jobsErr := c.ListJobs(ctx, "ns", "u")
	_, podsErr := c.ListJobPods(ctx, "ns", "u")
	_, eventsErr := c.ListJobEvents(ctx, "ns", "u")
	deleteErr := c.DeleteJob(ctx, "ns", "j", metav1.Preconditions{UID: ptr.To[types.UID]("u")})
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
	want := map[string]string{"jobs": "of=u", "pods": "of=u", "events": "involvedObject.uid=u,reason=" + job.EventRejected, "deleted": "j"}
	for what, by := range want {
		if listed[what] != by {
			t.Errorf("%s by %q, want %q", what, listed[what], by)
		}
	}
}
