// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"errors"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/utils/ptr"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/registry/etcd/registrytest"
	"github.com/etcd-operator/etcd-operator/pkg/resources"
)

func requestRestart(t *testing.T, storage Storage, request *v1beta2.EtcdClusterOperation, dryRun ...string) (*v1beta2.EtcdClusterOperation, error) {
	t.Helper()
	obj, err := storage.Restart.Create(registrytest.Context(t.Context(), ns, "etcdclusters", "restart"), "a", request,
		rest.ValidateAllObjectFunc, &metav1.CreateOptions{DryRun: dryRun})
	if err != nil {
		return nil, err
	}
	return obj.(*v1beta2.EtcdClusterOperation), nil
}

func stored(t *testing.T, storage Storage) *v1beta2.EtcdCluster {
	t.Helper()
	obj, err := storage.EtcdCluster.Get(requestContext(t), "a", &metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return obj.(*v1beta2.EtcdCluster)
}

func setStatus(t *testing.T, storage Storage, edit func(*v1beta2.ClusterStatus)) {
	t.Helper()
	cluster := stored(t, storage)
	edit(&cluster.Status)
	if _, _, err := storage.Status.Update(requestContext(t), "a", rest.DefaultUpdatedObjectInfo(cluster),
		rest.ValidateAllObjectFunc, rest.ValidateAllObjectUpdateFunc, false, &metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
}

func TestRestartSetsAnnotationAndOperation(t *testing.T) {
	t.Parallel()
	storage, _ := newStorage(t)
	cluster := valid("a")
	cluster.Annotations = map[string]string{"team": "x"}
	created := create(t, storage, cluster)

	dry, err := requestRestart(t, storage, &v1beta2.EtcdClusterOperation{}, metav1.DryRunAll)
	if err != nil {
		t.Fatal(err)
	}
	if dry.Status.Type != v1beta2.OperationRestart || dry.Status.Phase != v1beta2.OperationPending || dry.Status.ID == "" {
		t.Errorf("a dry run says %+v", dry.Status)
	}
	if now := stored(t, storage); now.ResourceVersion != created.ResourceVersion {
		t.Fatalf("a dry run stored %+v", now)
	}

	first, err := requestRestart(t, storage, &v1beta2.EtcdClusterOperation{ObjectMeta: metav1.ObjectMeta{UID: created.UID}})
	if err != nil {
		t.Fatal(err)
	}
	now := stored(t, storage)
	op := now.Status.Operation
	if op == nil || op.ID != first.Status.ID || resources.RestartRequest(now) != op.ID {
		t.Errorf("stored is %+v with %v, returned %+v", op, now.Annotations, first.Status)
	}
	if now.Annotations["team"] != "x" || now.Generation != created.Generation {
		t.Errorf("more was changed than the request names: %+v", now.ObjectMeta)
	}

	// A request during a restart returns that restart and writes nothing.
	again, err := requestRestart(t, storage, &v1beta2.EtcdClusterOperation{})
	if err != nil || again.Status.ID != first.Status.ID {
		t.Errorf("answered %+v, %v; want %s again", again, err, first.Status.ID)
	}
	if version := stored(t, storage).ResourceVersion; version != now.ResourceVersion {
		t.Errorf("the second request was written: %s, %s", version, now.ResourceVersion)
	}

	// A request after the restart has ended starts another restart.
	setStatus(t, storage, func(s *v1beta2.ClusterStatus) { s.Operation.Phase = v1beta2.OperationSucceeded })
	next, err := requestRestart(t, storage, &v1beta2.EtcdClusterOperation{})
	if err != nil {
		t.Fatal(err)
	}
	if request := resources.RestartRequest(stored(t, storage)); next.Status.ID == first.Status.ID || request != next.Status.ID {
		t.Errorf("returned %+v, and the request is %s", next.Status, request)
	}
}

func TestRestartRejects(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		edit    func(*v1beta2.EtcdCluster)
		status  func(*v1beta2.ClusterStatus)
		request v1beta2.EtcdClusterOperation
		want    func(error) bool
		says    string
	}{
		"request for some members is rejected": {
			request: v1beta2.EtcdClusterOperation{Spec: v1beta2.OperationRequest{Members: []string{"a-1"}}}, want: apierrors.IsInvalid, says: "spec.members",
		},
		"request with another UID is rejected":  {request: v1beta2.EtcdClusterOperation{ObjectMeta: metav1.ObjectMeta{UID: "x"}}, want: apierrors.IsConflict, says: "UID"},
		"request with another name is rejected": {request: v1beta2.EtcdClusterOperation{ObjectMeta: metav1.ObjectMeta{Name: "b"}}, want: apierrors.IsBadRequest, says: "metadata.name"},
		"request with another resource version is rejected": {
			request: v1beta2.EtcdClusterOperation{ObjectMeta: metav1.ObjectMeta{ResourceVersion: "1"}}, want: apierrors.IsConflict, says: "resource version",
		},
		"request for a paused cluster is rejected":     {edit: func(c *v1beta2.EtcdCluster) { c.Spec.Paused = true }, want: apierrors.IsConflict, says: "spec.paused"},
		"request for a hibernated cluster is rejected": {edit: func(c *v1beta2.EtcdCluster) { c.Spec.Replicas = ptr.To[int32](0) }, want: apierrors.IsConflict, says: "hibernated"},
		"request during a defragmentation is rejected": {
			status: func(s *v1beta2.ClusterStatus) {
				s.Operation = &v1beta2.ClusterOperation{Type: v1beta2.OperationDefrag, ID: "d", Phase: v1beta2.OperationRunning}
			},
			want: apierrors.IsConflict, says: "Defrag d",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			storage, _ := newStorage(t)
			cluster := valid("a")
			cluster.Spec.Pod = &v1beta2.PodPolicy{PersistentVolumeClaimSpec: &corev1.PersistentVolumeClaimSpec{
				AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
				Resources:   corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}},
			}}
			if test.edit != nil {
				test.edit(cluster)
			}
			v1beta2.SetObjectDefaults_EtcdCluster(cluster)
			create(t, storage, cluster)
			if test.status != nil {
				setStatus(t, storage, test.status)
			}
			if _, err := requestRestart(t, storage, &test.request); err == nil || !test.want(err) || !strings.Contains(err.Error(), test.says) {
				t.Errorf("got %v, want it to say %q", err, test.says)
			}
			if request := resources.RestartRequest(stored(t, storage)); request != "" {
				t.Errorf("the request is %s", request)
			}
		})
	}
	storage, _ := newStorage(t)
	if _, err := requestRestart(t, storage, &v1beta2.EtcdClusterOperation{}); !apierrors.IsNotFound(err) {
		t.Errorf("without a cluster it is %v", err)
	}
}

// TestOperationsBesideOldMembers: the controller begins neither operation before the old members of a running etcd are
// removed, so it is rejected until then.
func TestOperationsBesideOldMembers(t *testing.T) {
	t.Parallel()
	storage, _ := newStorage(t)
	cluster := valid("a")
	cluster.Spec.Bootstrap = &v1beta2.BootstrapPolicy{Existing: &v1beta2.ExistingEtcd{ClientEndpoints: []string{"http://old:2379"}}}
	create(t, storage, cluster)
	defrag := func(dryRun ...string) error {
		_, err := storage.Defrag.Create(registrytest.Context(t.Context(), ns, "etcdclusters", "defrag"), "a", &v1beta2.EtcdClusterOperation{},
			rest.ValidateAllObjectFunc, &metav1.CreateOptions{DryRun: dryRun})
		return err
	}
	restart := func(dryRun ...string) error {
		_, err := requestRestart(t, storage, &v1beta2.EtcdClusterOperation{}, dryRun...)
		return err
	}
	rejected := func(err error) bool {
		return apierrors.IsConflict(err) && strings.Contains(err.Error(), "spec.bootstrap.existing.oldMembers=Remove")
	}
	for what, members := range map[string][]v1beta2.MemberStatus{"before the first status": nil, "beside an old member": {{Name: "a-1"}, {Name: "x", Unmanaged: true}}} {
		setStatus(t, storage, func(s *v1beta2.ClusterStatus) { s.MemberStatuses = members })
		if err := defrag(); !rejected(err) || !strings.Contains(err.Error(), "etcdctl defrag") {
			t.Errorf("%s: defrag: %v", what, err)
		}
		if err := restart(); !rejected(err) {
			t.Errorf("%s: restart: %v", what, err)
		}
	}
	setStatus(t, storage, func(s *v1beta2.ClusterStatus) { s.MemberStatuses = []v1beta2.MemberStatus{{Name: "a-1"}} })
	if err := errors.Join(defrag(metav1.DryRunAll), restart(metav1.DryRunAll)); err != nil {
		t.Errorf("when no old member is left: %v", err)
	}
}
