// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/validation"
	"github.com/etcd-operator/etcd-operator/pkg/resources"
	"github.com/etcd-operator/etcd-operator/test/simulation/kubernetes"
	"github.com/etcd-operator/etcd-operator/test/simulation/schedules"
)

// cachePort is the cache of one controller, with the EtcdRestores as they are.
type cachePort struct {
	*kubernetes.Cache
	w *World
}

// Restore implements cluster.Cache. An EtcdRestore ends when the cluster no longer carries it out. Its pre-restore backup is
// fresh, unless no member responded when it asked.
func (p cachePort) Restore(_, name string) (*v1beta2.EtcdRestore, error) {
	if !p.w.Restores[name] {
		return nil, apierrors.NewNotFound(v1beta2.Resource("etcdrestores"), name)
	}
	restore := &v1beta2.EtcdRestore{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(name)}}
	cluster, found := kubernetes.Lookup[kubernetes.EtcdCluster](p.w.Store, kubernetes.KindCluster, schedules.ClusterName)
	if !found || !cluster.Status.Recovery.IsInProgress() || cluster.Status.Recovery.ID != name {
		restore.Status = v1beta2.RestoreStatus{Phase: v1beta2.RestorePhaseFailed, Reason: "Abandoned"}
	} else if !cluster.Status.Recovery.OnlyIfUnresponsive {
		restore.Status.PreRestoreBackup = &v1beta2.PreRestoreBackup{Time: metav1.NewTime(p.w.Now())}
	}
	return restore, nil
}

// objectsPort is the live API for one controller.
type objectsPort struct{ c *Manager }

func read[T metav1.Object](ctx context.Context, c *Manager, k kubernetes.Kind, name string) (T, error) {
	return call(ctx, c, "get "+kubernetes.KindNames[k]+" "+name, false, false, func() (T, error) {
		object, err := kubernetes.Get[T](c.W.Store, k, name)
		if err == nil {
			c.Observed.Saw(k, object)
		}
		return object, err
	})
}

func write[T metav1.Object](ctx context.Context, c *Manager, verb string, object T, do func(*kubernetes.Store, T) (T, error)) (T, error) {
	return call(ctx, c, verb+" "+kubernetes.KindNames[kubernetes.KindOf(object)]+" "+object.GetName(), true, false, func() (T, error) {
		c.W.Observer.Writing(c, verb, object)
		return do(c.W.Store, object)
	})
}

func (p objectsPort) erase(ctx context.Context, k kubernetes.Kind, name string, only metav1.Preconditions) error {
	_, err := call(ctx, p.c, "delete "+kubernetes.KindNames[k]+" "+name, true, false, func() (struct{}, error) {
		p.c.W.Observer.Deleting(p.c, k, name, only)
		return struct{}{}, p.c.W.Store.DeleteObject(k, name, only)
	})
	return err
}

// GetCluster implements cluster.Objects.
func (p objectsPort) GetCluster(ctx context.Context, _, name string) (*v1beta2.EtcdCluster, error) {
	return read[*v1beta2.EtcdCluster](ctx, p.c, kubernetes.KindCluster, name)
}

// ListClusters implements cluster.Objects.
func (p objectsPort) ListClusters(ctx context.Context, _ string) ([]v1beta2.EtcdCluster, error) {
	return call(ctx, p.c, "list "+kubernetes.KindNames[kubernetes.KindCluster], false, false, func() ([]v1beta2.EtcdCluster, error) {
		var list []v1beta2.EtcdCluster
		for _, object := range p.c.W.Store.List(kubernetes.KindCluster) {
			list = append(list, *object.(*v1beta2.EtcdCluster).DeepCopy())
		}
		return list, nil
	})
}

// UpdateClusterStatus implements cluster.Objects. Like the API it takes the status
// and leaves everything else alone.
func (p objectsPort) UpdateClusterStatus(ctx context.Context, cluster *v1beta2.EtcdCluster) (*v1beta2.EtcdCluster, error) {
	return write(ctx, p.c, "update the status of", cluster, func(s *kubernetes.Store, c *v1beta2.EtcdCluster) (*v1beta2.EtcdCluster, error) {
		live, err := kubernetes.Get[*v1beta2.EtcdCluster](s, kubernetes.KindCluster, c.Name)
		if err != nil {
			return nil, err
		}
		next := live.DeepCopy()
		next.ResourceVersion, next.UID, next.Status = c.ResourceVersion, c.UID, c.Status
		if errs := validation.ValidateEtcdClusterStatusUpdate(next, live); len(errs) > 0 && next.UID == live.UID {
			return nil, apierrors.NewInvalid(v1beta2.SchemeGroupVersion.WithKind("EtcdCluster").GroupKind(), c.Name, errs)
		}
		return kubernetes.Update(s, next)
	})
}

// PatchFinalizers implements cluster.Objects. Like the API it takes the finalizers and
// leaves everything else alone.
func (p objectsPort) PatchFinalizers(ctx context.Context, cluster *v1beta2.EtcdCluster) (*v1beta2.EtcdCluster, error) {
	return call(ctx, p.c, "patch the finalizers of etcdclusters "+cluster.Name, true, false, func() (*v1beta2.EtcdCluster, error) {
		live, err := kubernetes.Get[*v1beta2.EtcdCluster](p.c.W.Store, kubernetes.KindCluster, cluster.Name)
		if err != nil {
			return nil, err
		}
		next := live.DeepCopy()
		next.ResourceVersion, next.UID, next.Finalizers = cluster.ResourceVersion, cluster.UID, cluster.Finalizers
		return kubernetes.Update(p.c.W.Store, next)
	})
}

// ForgetRestore implements cluster.Objects.
func (p objectsPort) ForgetRestore(ctx context.Context, cluster *v1beta2.EtcdCluster) (*v1beta2.EtcdCluster, error) {
	return call(ctx, p.c, "patch the annotations of etcdclusters "+cluster.Name, true, false, func() (*v1beta2.EtcdCluster, error) {
		live, err := kubernetes.Get[*v1beta2.EtcdCluster](p.c.W.Store, kubernetes.KindCluster, cluster.Name)
		if err != nil {
			return nil, err
		}
		next := live.DeepCopy()
		next.ResourceVersion, next.UID = cluster.ResourceVersion, cluster.UID
		delete(next.Annotations, v1beta2.AnnotationRestore)
		delete(next.Annotations, v1beta2.AnnotationRestoreUID)
		return kubernetes.Update(p.c.W.Store, next)
	})
}

// GetService implements cluster.Objects.
func (p objectsPort) GetService(ctx context.Context, _, name string) (*corev1.Service, error) {
	return read[*corev1.Service](ctx, p.c, kubernetes.KindService, name)
}

// CreateService implements cluster.Objects.
func (p objectsPort) CreateService(ctx context.Context, s *corev1.Service) (*corev1.Service, error) {
	return write(ctx, p.c, "create", s, kubernetes.Create[*corev1.Service])
}

// UpdateService implements cluster.Objects.
func (p objectsPort) UpdateService(ctx context.Context, s *corev1.Service) (*corev1.Service, error) {
	return write(ctx, p.c, "update", s, kubernetes.Update[*corev1.Service])
}

// GetConfigMap implements cluster.Objects.
func (p objectsPort) GetConfigMap(ctx context.Context, _, name string) (*corev1.ConfigMap, error) {
	return read[*corev1.ConfigMap](ctx, p.c, kubernetes.KindRecord, name)
}

// CreateConfigMap implements cluster.Objects.
func (p objectsPort) CreateConfigMap(ctx context.Context, o *corev1.ConfigMap) (*corev1.ConfigMap, error) {
	return write(ctx, p.c, "create", o, kubernetes.Create[*corev1.ConfigMap])
}

// UpdateConfigMap implements cluster.Objects.
func (p objectsPort) UpdateConfigMap(ctx context.Context, o *corev1.ConfigMap) (*corev1.ConfigMap, error) {
	return write(ctx, p.c, "update", o, kubernetes.Update[*corev1.ConfigMap])
}

// GetPod implements cluster.Objects.
func (p objectsPort) GetPod(ctx context.Context, _, name string) (*corev1.Pod, error) {
	return read[*corev1.Pod](ctx, p.c, kubernetes.KindPod, name)
}

// GetNode implements cluster.Objects.
func (p objectsPort) GetNode(ctx context.Context, name string) (*corev1.Node, error) {
	return call(ctx, p.c, "get node "+name, false, false, func() (*corev1.Node, error) { return p.c.W.Node(name) })
}

// NodeReports implements cluster.Objects.
func (p objectsPort) NodeReports(ctx context.Context, nodes []string) (map[string]string, error) {
	return call(ctx, p.c, "read reports of nodes", false, false, func() (map[string]string, error) {
		reports := map[string]string{}
		for _, name := range nodes {
			reports[name] = p.c.W.NodeReport(name)
		}
		return reports, nil
	})
}

// ListPods implements cluster.Objects.
func (p objectsPort) ListPods(ctx context.Context, _, name string) ([]corev1.Pod, error) {
	return listed(ctx, p.c, kubernetes.KindPod, name, func(object metav1.Object) corev1.Pod { return *object.(*corev1.Pod) })
}

// ListControlledPods implements cluster.Objects.
func (p objectsPort) ListControlledPods(ctx context.Context, cluster *v1beta2.EtcdCluster) ([]corev1.Pod, error) {
	return call(ctx, p.c, "list all "+kubernetes.KindNames[kubernetes.KindPod], false, false, func() ([]corev1.Pod, error) {
		var list []corev1.Pod
		for _, object := range p.c.W.Store.List(kubernetes.KindPod) {
			if metav1.IsControlledBy(object, cluster) {
				list = append(list, *object.(*corev1.Pod).DeepCopy())
			}
		}
		return list, nil
	})
}

func listed[T any](ctx context.Context, c *Manager, k kubernetes.Kind, cluster string, as func(metav1.Object) T) ([]T, error) {
	return call(ctx, c, "list "+kubernetes.KindNames[k], false, false, func() ([]T, error) {
		selector := labels.SelectorFromSet(resources.Labels(cluster))
		var list []T
		for _, object := range c.W.Store.List(k) {
			if selector.Matches(labels.Set(object.GetLabels())) {
				list = append(list, as(object))
			}
		}
		return list, nil
	})
}

// CreatePod implements cluster.Objects.
func (p objectsPort) CreatePod(ctx context.Context, pod *corev1.Pod) (*corev1.Pod, error) {
	return write(ctx, p.c, "create", pod, kubernetes.Create[*corev1.Pod])
}

// UpdatePod implements cluster.Objects.
func (p objectsPort) UpdatePod(ctx context.Context, pod *corev1.Pod) (*corev1.Pod, error) {
	return write(ctx, p.c, "update", pod, kubernetes.Update[*corev1.Pod])
}

// DeletePod implements cluster.Objects.
func (p objectsPort) DeletePod(ctx context.Context, _, name string, only metav1.Preconditions) error {
	return p.erase(ctx, kubernetes.KindPod, name, only)
}

// StopPod implements cluster.Objects.
func (p objectsPort) StopPod(ctx context.Context, _, name string, only metav1.Preconditions) error {
	return p.erase(ctx, kubernetes.KindPod, name, only)
}

// GetPVC implements cluster.Objects.
func (p objectsPort) GetPVC(ctx context.Context, _, name string) (*corev1.PersistentVolumeClaim, error) {
	return read[*corev1.PersistentVolumeClaim](ctx, p.c, kubernetes.KindPVC, name)
}

// ListPVCs implements cluster.Objects.
func (p objectsPort) ListPVCs(ctx context.Context, _, name string) ([]corev1.PersistentVolumeClaim, error) {
	return listed(ctx, p.c, kubernetes.KindPVC, name, func(object metav1.Object) corev1.PersistentVolumeClaim { return *object.(kubernetes.PVC) })
}

// ListNamespacePVCs implements cluster.Objects.
func (p objectsPort) ListNamespacePVCs(ctx context.Context, _ string) ([]corev1.PersistentVolumeClaim, error) {
	return call(ctx, p.c, "list all "+kubernetes.KindNames[kubernetes.KindPVC], false, false, func() ([]corev1.PersistentVolumeClaim, error) {
		var list []corev1.PersistentVolumeClaim
		for _, object := range p.c.W.Store.List(kubernetes.KindPVC) {
			p.c.Observed.Saw(kubernetes.KindPVC, object)
			list = append(list, *object.(kubernetes.PVC).DeepCopy())
		}
		return list, nil
	})
}

// CreatePVC implements cluster.Objects.
func (p objectsPort) CreatePVC(ctx context.Context, pvc *corev1.PersistentVolumeClaim) (*corev1.PersistentVolumeClaim, error) {
	return write(ctx, p.c, "create", pvc, kubernetes.Create[*corev1.PersistentVolumeClaim])
}

// UpdatePVC implements cluster.Objects.
func (p objectsPort) UpdatePVC(ctx context.Context, pvc *corev1.PersistentVolumeClaim) (*corev1.PersistentVolumeClaim, error) {
	return write(ctx, p.c, "update", pvc, kubernetes.UpdatePVC)
}

// DeletePVC implements cluster.Objects.
func (p objectsPort) DeletePVC(ctx context.Context, _, name string, only metav1.Preconditions) error {
	return p.erase(ctx, kubernetes.KindPVC, name, only)
}

// GetPodDisruptionBudget implements cluster.Objects.
func (p objectsPort) GetPodDisruptionBudget(ctx context.Context, _, name string) (*policyv1.PodDisruptionBudget, error) {
	return read[*policyv1.PodDisruptionBudget](ctx, p.c, kubernetes.KindBudget, name)
}

// CreatePodDisruptionBudget implements cluster.Objects.
func (p objectsPort) CreatePodDisruptionBudget(ctx context.Context, b *policyv1.PodDisruptionBudget) (*policyv1.PodDisruptionBudget, error) {
	return write(ctx, p.c, "create", b, kubernetes.Create[*policyv1.PodDisruptionBudget])
}

// UpdatePodDisruptionBudget implements cluster.Objects.
func (p objectsPort) UpdatePodDisruptionBudget(ctx context.Context, b *policyv1.PodDisruptionBudget) (*policyv1.PodDisruptionBudget, error) {
	return write(ctx, p.c, "update", b, kubernetes.Update[*policyv1.PodDisruptionBudget])
}

// DeletePodDisruptionBudget implements cluster.Objects.
func (p objectsPort) DeletePodDisruptionBudget(ctx context.Context, _, name string, only metav1.Preconditions) error {
	return p.erase(ctx, kubernetes.KindBudget, name, only)
}

// GetSecret implements cluster.Objects.
func (p objectsPort) GetSecret(ctx context.Context, _, name string) (*corev1.Secret, error) {
	return read[*corev1.Secret](ctx, p.c, kubernetes.KindSecret, name)
}

// CreateSecret implements cluster.Objects.
func (p objectsPort) CreateSecret(ctx context.Context, secret *corev1.Secret) (*corev1.Secret, error) {
	return write(ctx, p.c, "create", secret, kubernetes.Create[*corev1.Secret])
}

// UpdateSecret implements cluster.Objects.
func (p objectsPort) UpdateSecret(ctx context.Context, secret *corev1.Secret) (*corev1.Secret, error) {
	return write(ctx, p.c, "update", secret, kubernetes.Update[*corev1.Secret])
}

// DeleteSecret implements cluster.Objects.
func (p objectsPort) DeleteSecret(ctx context.Context, _, name string, only metav1.Preconditions) error {
	return p.erase(ctx, kubernetes.KindSecret, name, only)
}

// CreateRestore implements cluster.Objects: the controller restores a backup by itself.
// That is right only if nothing is left to go on from.
func (p objectsPort) CreateRestore(ctx context.Context, restore *v1beta2.EtcdRestore) (*v1beta2.EtcdRestore, error) {
	return call(ctx, p.c, "create etcdrestores "+restore.Name, true, false, func() (*v1beta2.EtcdRestore, error) {
		w := p.c.W
		if !w.IsNothingLeft() && !w.IsDisturbed(&p.c.Observed) {
			w.Violated("L2", "a backup is restored although something is left")
		}
		w.AskRestore(restore.Name, restore.Spec.Backup.Name)
		return restore, nil
	})
}
