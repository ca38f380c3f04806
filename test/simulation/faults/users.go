// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package faults

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/validation"
	"github.com/etcd-operator/etcd-operator/pkg/resources"
	simetcd "github.com/etcd-operator/etcd-operator/test/simulation/etcd"
	"github.com/etcd-operator/etcd-operator/test/simulation/kubernetes"
	"github.com/etcd-operator/etcd-operator/test/simulation/schedules"
)

// RotateCA asks for another CA, and declares after a while that no client needs the
// old one any more.
func (w *World) RotateCA(e schedules.Event) {
	request := fmt.Sprint("request-", e.B)
	annotate := func(name string) {
		kubernetes.Edit(w.Store, kubernetes.KindCluster, schedules.ClusterName, func(c *v1beta2.EtcdCluster) {
			metav1.SetMetaDataAnnotation(&c.ObjectMeta, name, request)
		})
	}
	annotate(resources.AnnotationRotateCA)
	w.After(e.For, func() { annotate(resources.AnnotationDropOldCA) })
}

// declareFamilies has the user ask for families of the client Service.
func declareFamilies(s *v1beta2.ClusterSpec, which int) {
	const single, prefer, both = corev1.IPFamilyPolicySingleStack, corev1.IPFamilyPolicyPreferDualStack, corev1.IPFamilyPolicyRequireDualStack
	templates := []*v1beta2.ServiceTemplate{
		nil,
		{IPFamilies: []corev1.IPFamily{kubernetes.OtherFamily}},
		{IPFamilyPolicy: ptr.To(prefer)},
		{IPFamilyPolicy: ptr.To(both), IPFamilies: []corev1.IPFamily{kubernetes.OtherFamily, kubernetes.PrimaryFamily}},
		{IPFamilyPolicy: ptr.To(single)},
		{IPFamilyPolicy: ptr.To(both), IPFamilies: []corev1.IPFamily{kubernetes.PrimaryFamily}},
	}
	s.Services = &v1beta2.ServicesPolicy{Client: templates[which%len(templates)]}
}

// editFamilies gives a Service a second address or takes it, as a user might.
func editFamilies(s *corev1.Service) {
	if len(s.Spec.IPFamilies) > 1 {
		s.Spec.IPFamilyPolicy = ptr.To(corev1.IPFamilyPolicySingleStack)
	} else {
		s.Spec.IPFamilyPolicy = ptr.To(corev1.IPFamilyPolicyRequireDualStack)
	}
}

// declareWait is how often a user tries to create a cluster whose name is still taken.
const declareWait = 100 * time.Millisecond

// CreateCluster creates the EtcdCluster, as soon as one that is being deleted no longer exists.
func (w *World) CreateCluster() {
	if old, found := kubernetes.Lookup[kubernetes.EtcdCluster](w.Store, kubernetes.KindCluster, schedules.ClusterName); found {
		if old.DeletionTimestamp != nil {
			w.After(declareWait, w.CreateCluster)
		}
		return
	}
	spec := v1beta2.ClusterSpec{Replicas: ptr.To(int32(w.Plan.Size)), Version: w.Plan.Version}
	v1beta2.SetDefaults_ClusterSpec(&spec)
	if w.Plan.Snapshots > 0 {
		spec.Etcd = &v1beta2.EtcdOptions{SnapshotCount: ptr.To(w.Plan.Snapshots)}
	}
	if w.Plan.Automatic {
		spec.Recovery = &v1beta2.RecoveryPolicy{QuorumLoss: v1beta2.RecoveryAutomatic}
	}
	if w.Plan.Volumes {
		spec.Pod = &v1beta2.PodPolicy{
			PersistentVolumeClaimSpec:            &corev1.PersistentVolumeClaimSpec{AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}},
			PersistentVolumeClaimRetentionPolicy: &v1beta2.PersistentVolumeClaimRetentionPolicy{},
		}
		Sized(&spec, Gibibytes(1))
		Kept(&spec, w.Plan.RetainDeleted)
		if w.Plan.RetainScaled {
			spec.Pod.PersistentVolumeClaimRetentionPolicy.WhenScaled = v1beta2.PVCRetain
		}
		v1beta2.SetDefaults_PersistentVolumeClaimRetentionPolicy(spec.Pod.PersistentVolumeClaimRetentionPolicy)
	}
	if w.Plan.Stay > 0 {
		if spec.Pod == nil {
			spec.Pod = &v1beta2.PodPolicy{}
		}
		spec.Pod.Tolerations = []corev1.Toleration{{Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute, TolerationSeconds: ptr.To(int64(w.Plan.Stay.Seconds()))}}
	}
	if w.Plan.Certificates {
		spec.TLS = &v1beta2.TLSPolicy{Auto: &v1beta2.AutoTLS{}}
	}
	if w.Plan.Joins {
		spec.Bootstrap = &v1beta2.BootstrapPolicy{Existing: &v1beta2.ExistingEtcd{ClientEndpoints: existingEndpoints()}}
	}
	created, err := kubernetes.Create(w.Store, &v1beta2.EtcdCluster{
		ObjectMeta: metav1.ObjectMeta{Name: schedules.ClusterName, Namespace: schedules.Namespace}, Spec: spec,
	})
	if err == nil {
		w.After(readWithin, func() { w.watchFound(created.UID) })
	}
	if w.Plan.Joins && err == nil {
		if err := w.Etcd.StartExisting(string(created.UID), w.Plan.Version, existingMembers...); err != nil {
			w.Violated("L1", "the existing etcd does not start: %v", err)
		}
	}
}

// existingMembers run an etcd that the cluster takes over.
var existingMembers = []string{"old-0", "old-1", "old-2"}

func existingEndpoints() []string {
	var list []string
	for _, name := range existingMembers {
		list = append(list, "http://"+name+":2379")
	}
	return list
}

// RemoveOldMembers requests the removal of the members of the etcd that the cluster takes over.
func (w *World) RemoveOldMembers() {
	w.Change(func(s *v1beta2.ClusterSpec) { s.Bootstrap.Existing.OldMembers = v1beta2.OldMembersRemove })
}

// OldMembersKept returns what is missing until all members vote beside the old ones.
func (w *World) OldMembersKept() string {
	cluster, found := kubernetes.Lookup[kubernetes.EtcdCluster](w.Store, kubernetes.KindCluster, schedules.ClusterName)
	switch {
	case !found || !kubernetes.ConditionIs(cluster, v1beta2.ClusterConditionReady, corev1.ConditionTrue):
		return "the cluster is not Ready beside the old members"
	case len(cluster.Status.MemberStatuses) != len(existingMembers)+w.Plan.Size:
		return "the status does not list all members"
	default:
		return ""
	}
}

// Change changes the spec as a user does, if validation lets them.
func (w *World) Change(change func(*v1beta2.ClusterSpec)) {
	old, found := kubernetes.Lookup[kubernetes.EtcdCluster](w.Store, kubernetes.KindCluster, schedules.ClusterName)
	if !found {
		return
	}
	next := old.DeepCopy()
	change(&next.Spec)
	next.Generation++
	if errs := validation.ValidateEtcdClusterUpdate(next, old); len(errs) > 0 && !w.AdmitsAll {
		w.Trace("refused: %v", errs.ToAggregate())
		return
	}
	for _, l := range w.Etcd.Lineages {
		l.VersionUnknown = l.VersionUnknown || (l.Owner == string(old.UID) && old.Status.CurrentVersion == "" && old.Spec.Version != next.Spec.Version)
	}
	if old.Spec.Replicas != next.Spec.Replicas {
		w.Checks.Resized(*next.Spec.Replicas)
	}
	kubernetes.Edit(w.Store, kubernetes.KindCluster, schedules.ClusterName, func(c *v1beta2.EtcdCluster) { c.Spec, c.Generation = next.Spec, next.Generation })
}

// UserDoes carries out an event that a person causes.
func (w *World) UserDoes(e schedules.Event) {
	switch e.Kind {
	case schedules.EventScale:
		w.Change(func(s *v1beta2.ClusterSpec) { s.Replicas = ptr.To(int32(1 + e.A%5)) })
	case schedules.EventVersion:
		line := w.Plan.Line()
		w.Change(func(s *v1beta2.ClusterSpec) { s.Version = line[e.A%len(line)] })
	case schedules.EventPause:
		w.Change(func(s *v1beta2.ClusterSpec) { s.Paused = true })
	case schedules.EventResume:
		w.Change(func(s *v1beta2.ClusterSpec) { s.Paused = false })
	case schedules.EventHibernate:
		w.Change(func(s *v1beta2.ClusterSpec) { s.Replicas = ptr.To[int32](0) })
		w.After(e.For, func() {
			if e.B%3 > 0 && !w.Quiet {
				w.Change(func(s *v1beta2.ClusterSpec) { s.Replicas = ptr.To(int32(1 + e.A%5)) })
			}
		})
	case schedules.EventRecreate:
		w.DeleteCluster()
		w.After(time.Duration(e.B%4)*time.Second, w.CreateCluster)
	case schedules.EventDeletePVC:
		w.deleteSomePVC(e)
	case schedules.EventRotateCA:
		w.RotateCA(e)
	case schedules.EventDeleteSecret:
		w.savePeerSecret()
		w.Store.Remove(kubernetes.KindSecret, e.SecretName())
	case schedules.EventLoseSecrets:
		w.loseSecrets(e)
	case schedules.EventGrow:
		w.Change(func(s *v1beta2.ClusterSpec) { Sized(s, Gibibytes(1+e.A%4)) })
	case schedules.EventRetention:
		w.Change(func(s *v1beta2.ClusterSpec) { Kept(s, e.A%2 == 0) })
	case schedules.EventDeclare:
		w.Change(func(s *v1beta2.ClusterSpec) { declareOther(s, e) })
		if e.B%2 == 0 {
			w.Change(func(s *v1beta2.ClusterSpec) { declareFamilies(s, e.A+e.B) })
		}
	case schedules.EventRestart:
		w.AskForRestart(e)
	case schedules.EventBadDeclaration:
		if !slices.Equal(w.Plan.Line(), schedules.VersionLines[0]) {
			return // a second voter that never starts ends a cluster that knows no learners
		}
		w.Change(func(s *v1beta2.ClusterSpec) { PolicyOf(s).EtcdEnv = []corev1.EnvVar{{Name: simetcd.BadEnvironment}} })
		w.After(e.For, func() {
			if !w.Quiet {
				w.Repair()
			}
		})
	default:
		w.tamper(e)
	}
}

// Repair takes back a declaration with which etcd does not start.
func (w *World) Repair() {
	w.Change(func(s *v1beta2.ClusterSpec) { PolicyOf(s).EtcdEnv = nil })
}

// PolicyOf returns spec.pod, which it makes if there is none.
func PolicyOf(s *v1beta2.ClusterSpec) *v1beta2.PodPolicy {
	if s.Pod == nil {
		s.Pod = &v1beta2.PodPolicy{}
	}
	return s.Pod
}

// declareOther changes something that makes pods other ones.
func declareOther(s *v1beta2.ClusterSpec, e schedules.Event) {
	switch value := int64(1 + e.B%3); e.A % 5 {
	case 0:
		PolicyOf(s).Resources.Requests = corev1.ResourceList{corev1.ResourceCPU: *resource.NewMilliQuantity(100*value, resource.DecimalSI)}
	case 1:
		PolicyOf(s).EtcdEnv = []corev1.EnvVar{{Name: "GOGC", Value: strconv.FormatInt(50*value, 10)}}
	case 2:
		s.Etcd = &v1beta2.EtcdOptions{SnapshotCount: ptr.To(10000 * value)}
	case 3:
		PolicyOf(s).Labels = map[string]string{"team": strconv.FormatInt(value, 10)}
	case 4:
		s.Repository = v1beta2.DefaultRepository + strings.Repeat("-mirror", e.B%3)
	}
}

// DeleteCluster deletes the EtcdCluster as a user does.
func (w *World) DeleteCluster() {
	old, found := kubernetes.Lookup[kubernetes.EtcdCluster](w.Store, kubernetes.KindCluster, schedules.ClusterName)
	if !found {
		return
	}
	w.Checks.Deleted[string(old.UID)] = true
	w.Store.DeleteCluster(old)
}

func (w *World) deleteSomePVC(e schedules.Event) {
	pvcs := w.Store.List(kubernetes.KindPVC)
	if len(pvcs) == 0 {
		return
	}
	pvc := pvcs[e.A%len(pvcs)].(kubernetes.PVC)
	lost := map[*simetcd.DataDir]bool{w.Etcd.PVCs[string(pvc.UID)]: true}
	for _, l := range w.Etcd.Lineages {
		if !w.Plan.Deadly && w.Checks.Matters(l) && !w.survives(l, lost) {
			return
		}
	}
	uid := pvc.UID
	delete(w.Checks.KeptPVCs, pvc.Name)
	_ = w.Store.DeleteObject(kubernetes.KindPVC, pvc.Name, metav1.Preconditions{UID: &uid})
}

// tamper changes what belongs to the controller.
func (w *World) tamper(e schedules.Event) {
	cluster, found := kubernetes.Lookup[kubernetes.EtcdCluster](w.Store, kubernetes.KindCluster, schedules.ClusterName)
	if !found {
		return
	}
	services := []string{schedules.ClusterName, resources.ClientServiceName(cluster)}
	switch e.Kind {
	case schedules.EventDeleteService:
		w.Store.Remove(kubernetes.KindService, services[e.A%2])
	case schedules.EventEditService:
		kubernetes.Edit(w.Store, kubernetes.KindService, services[e.A%2], func(s *corev1.Service) { spoil(s, e.B) })
		if e.B%3 == 0 {
			kubernetes.Edit(w.Store, kubernetes.KindService, services[e.A%2], editFamilies)
		}
	case schedules.EventDeleteBudget:
		w.Store.Remove(kubernetes.KindBudget, schedules.ClusterName)
	case schedules.EventRelabel:
		if pod := w.AnyPod(e.A); pod != nil && e.B%2 == 0 {
			kubernetes.Edit(w.Store, kubernetes.KindPod, pod.Name, func(p *corev1.Pod) { delete(p.Labels, resources.LabelApp) })
			return
		}
		kubernetes.Edit(w.Store, kubernetes.KindService, services[e.A%2], func(s *corev1.Service) { delete(s.Labels, resources.LabelApp) })
	default:
	}
}

func spoil(s *corev1.Service, how int) {
	switch how % 4 {
	case 0:
		s.Spec.Selector = map[string]string{"app": "other"}
	case 1:
		s.Spec.Ports = slices.Clone(s.Spec.Ports[:1])
		s.Spec.Ports[0].Port = 1
	case 2:
		s.Spec.PublishNotReadyAddresses = !s.Spec.PublishNotReadyAddresses
	case 3:
		s.Annotations = nil
	}
}

// Gibibytes is a size of volumes.
func Gibibytes(n int) resource.Quantity { return resource.MustParse(fmt.Sprintf("%dGi", n)) }

// Sized declares volumes of a size. Validation does not let them shrink.
func Sized(s *v1beta2.ClusterSpec, size resource.Quantity) {
	if s.Pod != nil && s.Pod.PersistentVolumeClaimSpec != nil {
		s.Pod.PersistentVolumeClaimSpec.Resources.Requests = corev1.ResourceList{corev1.ResourceStorage: size}
	}
}

// Kept declares whether volumes outlive the cluster.
func Kept(s *v1beta2.ClusterSpec, keep bool) {
	if s.Pod == nil || s.Pod.PersistentVolumeClaimRetentionPolicy == nil {
		return
	}
	s.Pod.PersistentVolumeClaimRetentionPolicy.WhenDeleted = v1beta2.PVCDelete
	if keep {
		s.Pod.PersistentVolumeClaimRetentionPolicy.WhenDeleted = v1beta2.PVCRetain
	}
}
