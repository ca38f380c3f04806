// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"errors"
	"reflect"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/utils/ptr"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/registry/etcd/genericstore"
	"github.com/etcd-operator/etcd-operator/pkg/registry/etcd/registrytest"
)

var errAdmission = errors.New("rejected by admission")

// subresource is one that starts an action.
type subresource struct {
	name    string
	rest    rest.NamedCreater
	request runtime.Object
}

func subresources(storage Storage) []subresource {
	return []subresource{
		{"recover", storage.Recover, &v1beta2.EtcdClusterRecovery{}},
		{"defrag", storage.Defrag, &v1beta2.EtcdClusterOperation{}},
		{"restart", storage.Restart, &v1beta2.EtcdClusterOperation{}},
		{"replace", storage.Replace, replacing("a-1")},
		{"moveleader", storage.MoveLeader, &v1beta2.EtcdClusterLeaderMove{}},
		{"backup", storage.Backup, &v1beta2.EtcdBackup{}},
	}
}

// TestActionsAskAdmission checks that admission sees a copy of the unchanged request of every
// action, and that an action that admission rejects does nothing.
func TestActionsAskAdmission(t *testing.T) {
	t.Parallel()
	storage, _ := withBackups(t)
	lostCluster(t, storage, func(*v1beta2.EtcdCluster) {})
	before := stored(t, storage)
	for _, s := range subresources(storage) {
		ctx := registrytest.Context(t.Context(), ns, "etcdclusters", s.name)
		asked := 0
		_, err := s.rest.Create(ctx, "a", s.request, func(_ context.Context, obj runtime.Object) error {
			asked++
			if reflect.TypeOf(obj) != reflect.TypeOf(s.request) || obj == s.request {
				t.Errorf("%s: admission sees %T", s.name, obj)
			}
			return errAdmission
		}, &metav1.CreateOptions{})
		if !errors.Is(err, errAdmission) || asked != 1 {
			t.Errorf("%s: admission got %d requests, the error is %v", s.name, asked, err)
		}
	}
	if now := stored(t, storage); now.ResourceVersion != before.ResourceVersion {
		t.Errorf("a rejected request has changed the status: %+v", now.Status)
	}
}

// TestActionsCheckPreconditions checks that every action rejects a request with another name, UID
// or resource version than that of the cluster, and one for a cluster that does not exist.
func TestActionsCheckPreconditions(t *testing.T) {
	t.Parallel()
	storage, _ := withBackups(t)
	lostCluster(t, storage, func(*v1beta2.EtcdCluster) {})
	before := stored(t, storage)
	for _, s := range subresources(storage) {
		ctx := registrytest.Context(t.Context(), ns, "etcdclusters", s.name)
		for what, test := range map[string]struct {
			edit func(metav1.Object)
			at   string
			is   func(error) bool
		}{
			"name":             {func(o metav1.Object) { o.SetName("b") }, "a", apierrors.IsBadRequest},
			"UID":              {func(o metav1.Object) { o.SetUID("other") }, "a", apierrors.IsConflict},
			"resource version": {func(o metav1.Object) { o.SetResourceVersion("1") }, "a", apierrors.IsConflict},
			"path":             {func(metav1.Object) {}, "b", apierrors.IsNotFound},
		} {
			if s.name == "backup" && what == "name" {
				continue // that is the name of the EtcdBackup
			}
			asked := s.request.DeepCopyObject()
			test.edit(asked.(metav1.Object))
			if _, err := s.rest.Create(ctx, test.at, asked, rest.ValidateAllObjectFunc, &metav1.CreateOptions{}); !test.is(err) {
				t.Errorf("%s with another %s: %v", s.name, what, err)
			}
		}
		keeps, ok := s.rest.(rest.SubresourceObjectMetaPreserver)
		if !ok || !keeps.PreserveRequestObjectMetaSystemFieldsOnSubresourceCreate() {
			t.Errorf("%s: the server wipes the UID of a request", s.name)
		}
	}
	if now := stored(t, storage); now.ResourceVersion != before.ResourceVersion {
		t.Errorf("a rejected request has changed the status: %+v", now.Status)
	}
}

// TestStatusAsksAdmission checks that an update of the status asks admission, and that a Scale
// checks preconditions.
func TestStatusAsksAdmission(t *testing.T) {
	t.Parallel()
	storage, _ := newStorage(t)
	cluster := create(t, storage, valid("a"))
	cluster.Status.Phase = v1beta2.ClusterPhaseRunning
	_, _, err := storage.Status.Update(requestContext(t), "a", rest.DefaultUpdatedObjectInfo(cluster), rest.ValidateAllObjectFunc,
		func(_ context.Context, obj, old runtime.Object) error {
			if obj.(*v1beta2.EtcdCluster).Status.Phase != v1beta2.ClusterPhaseRunning || old.(*v1beta2.EtcdCluster).Status.Phase != "" {
				t.Errorf("admission sees %+v after %+v", obj, old)
			}
			return errAdmission
		}, true, &metav1.UpdateOptions{})
	if !errors.Is(err, errAdmission) || stored(t, storage).Status.Phase != "" {
		t.Errorf("got %v", err)
	}
	if _, created, err := storage.Status.Update(requestContext(t), "b", rest.DefaultUpdatedObjectInfo(valid("b")), rest.ValidateAllObjectFunc,
		rest.ValidateAllObjectUpdateFunc, true, &metav1.UpdateOptions{}); !apierrors.IsNotFound(err) || created {
		t.Errorf("a status of nothing: %v", err)
	}
	scale := getScale(t, storage, "a")
	scale.Spec.Replicas = 5
	info := withPreconditions{rest.DefaultUpdatedObjectInfo(scale), &metav1.Preconditions{UID: ptr.To(types.UID("other"))}}
	if _, _, err := storage.Scale.Update(scaleContext(t), "a", info, rest.ValidateAllObjectFunc, rest.ValidateAllObjectUpdateFunc, false,
		&metav1.UpdateOptions{}); !apierrors.IsConflict(err) {
		t.Errorf("a Scale of another UID: %v", err)
	}
}

type withPreconditions struct {
	rest.UpdatedObjectInfo

	only *metav1.Preconditions
}

func (w withPreconditions) Preconditions() *metav1.Preconditions { return w.only }

// policy is the admission of a server: it labels new objects, and may reject them.
type policy struct {
	rejects bool
	admits  error
	seen    []admission.Attributes
}

func (p *policy) Handles(admission.Operation) bool { return true }

func (p *policy) Admit(_ context.Context, a admission.Attributes, _ admission.ObjectInterfaces) error {
	a.GetObject().(*v1beta2.EtcdBackup).Labels["seen"] = "yes"
	return p.admits
}

func (p *policy) Validate(_ context.Context, a admission.Attributes, _ admission.ObjectInterfaces) error {
	p.seen = append(p.seen, a)
	if p.rejects {
		return errAdmission
	}
	return nil
}

// TestCreatedBackupAsksAdmission checks that the EtcdBackup of a request goes through the
// admission of EtcdBackups, with the user of the request.
func TestCreatedBackupAsksAdmission(t *testing.T) {
	t.Parallel()
	storage, backups := withBackups(t)
	create(t, storage, destined("a"))
	for name, p := range map[string]*policy{"good": {}, "rejected": {rejects: true}, "cannot be changed": {admits: errAdmission}} {
		storage.Backup.backups.(*genericstore.Creator[*v1beta2.EtcdBackup]).Admission = p
		ctx := request.WithUser(registrytest.Context(t.Context(), ns, "etcdclusters", "backup"), &user.DefaultInfo{Name: "ann"})
		for _, dryRun := range [][]string{{metav1.DryRunAll}, nil} {
			asked := &v1beta2.EtcdBackup{ObjectMeta: metav1.ObjectMeta{Name: "made"}}
			obj, err := storage.Backup.Create(ctx, "a", asked, rest.ValidateAllObjectFunc, &metav1.CreateOptions{DryRun: dryRun})
			if good := name == "good"; good != (err == nil) || !good && !errors.Is(err, errAdmission) {
				t.Fatalf("%s: %v", name, err)
			}
			if err == nil && obj.(*v1beta2.EtcdBackup).Labels["seen"] != "yes" {
				t.Errorf("%s: what admission has set is lost: %+v", name, obj)
			}
			for _, a := range p.seen {
				if a.GetKind().Kind != "EtcdBackup" || a.GetResource().Resource != "etcdbackups" || a.GetSubresource() != "" || a.GetNamespace() != ns ||
					a.GetOperation() != admission.Create || a.IsDryRun() != (dryRun != nil) || a.GetUserInfo().GetName() != "ann" {
					t.Errorf("%s: admission sees %+v", name, a)
				}
			}
			_, getErr := backups.EtcdBackup.Get(registrytest.Context(t.Context(), ns, "etcdbackups", ""), "made", &metav1.GetOptions{})
			if stored := getErr == nil; stored != (name == "good" && dryRun == nil) {
				t.Errorf("%s, dry run %v: %v", name, dryRun, getErr)
			}
			p.seen = nil
		}
		if name == "good" {
			ctx := registrytest.Context(t.Context(), ns, "etcdbackups", "")
			if _, _, err := backups.EtcdBackup.Delete(ctx, "made", rest.ValidateAllObjectFunc, &metav1.DeleteOptions{}); err != nil {
				t.Fatal(err)
			}
		}
	}
}
