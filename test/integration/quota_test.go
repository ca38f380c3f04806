// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
)

// limit makes a ResourceQuota for objects of a resource, with the usage that the quota
// controller of Kubernetes would find: none runs beside the kube-apiserver of these tests.
func limit(t *testing.T, namespace, objects string, hard int64) {
	t.Helper()
	counted := corev1.ResourceName("count/" + objects + "." + v1beta2.SchemeGroupVersion.Group)
	quotas := env.client.CoreV1().ResourceQuotas(namespace)
	most := corev1.ResourceList{counted: *resource.NewQuantity(hard, resource.DecimalSI)}
	quota, err := quotas.Create(t.Context(), &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Name: objects}, Spec: corev1.ResourceQuotaSpec{Hard: most}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	quota.Status = corev1.ResourceQuotaStatus{Hard: most, Used: corev1.ResourceList{counted: *resource.NewQuantity(0, resource.DecimalSI)}}
	if _, err := quotas.UpdateStatus(t.Context(), quota, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
}

func usage(t *testing.T, namespace, objects string) int64 {
	t.Helper()
	quota, err := env.client.CoreV1().ResourceQuotas(namespace).Get(t.Context(), objects, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	used := quota.Status.Used[corev1.ResourceName("count/"+objects+"."+v1beta2.SchemeGroupVersion.Group)]
	return used.Value()
}

// inForce waits until the API server knows a quota of 0; a dry run counts nothing.
func inForce(t *testing.T, try func(context.Context) error) {
	t.Helper()
	eventually(t, func(ctx context.Context) error {
		if err := try(ctx); !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), "exceeded quota") {
			return errorf("a quota of 0 is not in force: %v", err)
		}
		return nil
	})
}

// TestQuotaCountsClusters: a ResourceQuota for EtcdClusters holds as for custom resources, also
// when more are created at the same time than it allows.
func TestQuotaCountsClusters(t *testing.T) {
	t.Parallel()
	namespace := newNamespace(t)
	// The API server may not read the certificate, so that it leaves it to the controller
	// whether a member responds.
	cluster := newCluster("a")
	cluster.Spec.TLS = &v1beta2.TLSPolicy{Static: &v1beta2.StaticTLS{
		OperatorSecret: "operator", Member: &v1beta2.MemberSecret{PeerSecret: "peer", ServerSecret: "server"},
	}}
	cluster.Spec.Backup = &v1beta2.ClusterBackupPolicy{
		StorageType:  v1beta2.BackupStorageTypePersistentVolumeClaim,
		BackupSource: v1beta2.BackupSource{PersistentVolumeClaim: &v1beta2.PersistentVolumeClaimSource{ClaimName: "backups"}},
	}
	create(t, namespace, cluster)
	limit(t, namespace, "etcdbackups", 0)
	inForce(t, func(ctx context.Context) error {
		_, err := env.etcd.EtcdV1beta2().EtcdBackups(namespace).Create(ctx, &v1beta2.EtcdBackup{
			ObjectMeta: metav1.ObjectMeta{GenerateName: "b-"},
			Spec: v1beta2.BackupSpec{
				EtcdCluster: &v1beta2.EtcdClusterRef{Name: "a"}, StorageType: v1beta2.BackupStorageTypePersistentVolumeClaim,
				BackupSource: v1beta2.BackupSource{PersistentVolumeClaim: &v1beta2.PersistentVolumeClaimSource{ClaimName: "backups"}},
			},
		}, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		return err
	})
	const most, asked = 2, 6
	limit(t, namespace, "etcdclusters", most)
	limit(t, namespace, "etcdrestores", 0) // it comes after the one for clusters in the same watch
	inForce(t, func(ctx context.Context) error {
		_, err := env.etcd.EtcdV1beta2().EtcdRestores(namespace).Create(ctx, &v1beta2.EtcdRestore{
			ObjectMeta: metav1.ObjectMeta{GenerateName: "r-"},
			Spec:       v1beta2.RestoreSpec{EtcdCluster: v1beta2.EtcdClusterRef{Name: "a"}, Backup: &v1beta2.BackupReference{Name: "b"}},
		}, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		return err
	})
	var made, rejected atomic.Int64
	var creates errgroup.Group
	for i := range asked {
		creates.Go(func() error {
			_, err := clustersIn(namespace).Create(t.Context(), newCluster(fmt.Sprintf("c-%d", i)), metav1.CreateOptions{})
			switch {
			case err == nil:
				made.Add(1)
			case apierrors.IsForbidden(err) && strings.Contains(err.Error(), "exceeded quota: etcdclusters, requested: count/etcdclusters.etcd.database.coreos.com=1"):
				rejected.Add(1)
			default:
				return err
			}
			return nil
		})
	}
	if err := creates.Wait(); err != nil {
		t.Fatal(err)
	}
	list, err := clustersIn(namespace).List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if made.Load() != most || rejected.Load() != asked-most || len(list.Items) != most+1 || usage(t, namespace, "etcdclusters") != most {
		t.Errorf("made %d, rejected %d, stored %d, counted %d; want %d, %d, %d, %d",
			made.Load(), rejected.Load(), len(list.Items), usage(t, namespace, "etcdclusters"), most, asked-most, most+1, most)
	}
	// What a request for another object creates counts, too.
	if output, err := post(t, "{}", raw(namespace, "a", "backup")); err == nil || !strings.Contains(output, "exceeded quota: etcdbackups") {
		t.Errorf("a backup request over the quota: %v %s", err, output)
	}
}
