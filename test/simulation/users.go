// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
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
)

// declareWait is how often a user tries to create a cluster whose name is still taken.
const declareWait = 100 * time.Millisecond

// declare creates the EtcdCluster, as soon as one that is being deleted no longer exists.
func (w *World) declare() {
	if old, found := lookup[clusterObject](w.store, kindCluster, clusterName); found {
		if old.DeletionTimestamp != nil {
			w.after(declareWait, w.declare)
		}
		return
	}
	spec := v1beta2.ClusterSpec{Replicas: ptr.To(int32(w.plan.Size)), Version: w.plan.Version}
	v1beta2.SetDefaults_ClusterSpec(&spec)
	if w.plan.Snapshots > 0 {
		spec.Etcd = &v1beta2.EtcdOptions{SnapshotCount: ptr.To(w.plan.Snapshots)}
	}
	if w.plan.Automatic {
		spec.Recovery = &v1beta2.RecoveryPolicy{QuorumLoss: v1beta2.RecoveryAutomatic}
	}
	if w.plan.Volumes {
		spec.Pod = &v1beta2.PodPolicy{
			PersistentVolumeClaimSpec:            &corev1.PersistentVolumeClaimSpec{AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}},
			PersistentVolumeClaimRetentionPolicy: &v1beta2.PersistentVolumeClaimRetentionPolicy{},
		}
		sized(&spec, gibibytes(1))
		kept(&spec, w.plan.RetainDeleted)
		if w.plan.RetainScaled {
			spec.Pod.PersistentVolumeClaimRetentionPolicy.WhenScaled = v1beta2.ClaimRetain
		}
		v1beta2.SetDefaults_PersistentVolumeClaimRetentionPolicy(spec.Pod.PersistentVolumeClaimRetentionPolicy)
	}
	if w.plan.Certificates {
		spec.TLS = &v1beta2.TLSPolicy{Auto: &v1beta2.AutoTLS{}}
	}
	_, _ = create(w.store, &v1beta2.EtcdCluster{
		ObjectMeta: metav1.ObjectMeta{Name: clusterName, Namespace: namespace}, Spec: spec,
	})
}

// amend changes the spec as a user does, if validation lets them.
func (w *World) amend(change func(*v1beta2.ClusterSpec)) {
	old, found := lookup[clusterObject](w.store, kindCluster, clusterName)
	if !found {
		return
	}
	next := old.DeepCopy()
	change(&next.Spec)
	next.Generation++
	if errs := validation.ValidateEtcdClusterUpdate(next, old); len(errs) > 0 && !w.variant.admitsAll {
		w.trace("refused: %v", errs.ToAggregate())
		return
	}
	for _, l := range w.etcd.lineages {
		l.blind = l.blind || (l.owner == string(old.UID) && old.Status.CurrentVersion == "" && old.Spec.Version != next.Spec.Version)
	}
	if old.Spec.Replicas != next.Spec.Replicas {
		w.checks.resized(*next.Spec.Replicas)
	}
	edit(w.store, kindCluster, clusterName, func(c *v1beta2.EtcdCluster) { c.Spec, c.Generation = next.Spec, next.Generation })
}

// userDoes carries out an event that a person causes.
func (w *World) userDoes(e Event) {
	switch e.Kind {
	case EventScale:
		w.amend(func(s *v1beta2.ClusterSpec) { s.Replicas = ptr.To(int32(1 + e.A%5)) })
	case EventVersion:
		line := w.plan.line()
		w.amend(func(s *v1beta2.ClusterSpec) { s.Version = line[e.A%len(line)] })
	case EventPause:
		w.amend(func(s *v1beta2.ClusterSpec) { s.Paused = true })
	case EventResume:
		w.amend(func(s *v1beta2.ClusterSpec) { s.Paused = false })
	case EventHibernate:
		w.amend(func(s *v1beta2.ClusterSpec) { s.Replicas = ptr.To[int32](0) })
		w.after(e.For, func() {
			if e.B%3 > 0 && !w.quiet {
				w.amend(func(s *v1beta2.ClusterSpec) { s.Replicas = ptr.To(int32(1 + e.A%5)) })
			}
		})
	case EventRecreate:
		w.undeclare()
		w.after(time.Duration(e.B%4)*time.Second, w.declare)
	case EventDeleteClaim:
		w.deleteSomeClaim(e)
	case EventRotateAuthority:
		w.rotate(e)
	case EventDeleteSecret:
		w.store.remove(kindSecret, e.secret())
	case EventGrow:
		w.amend(func(s *v1beta2.ClusterSpec) { sized(s, gibibytes(1+e.A%4)) })
	case EventRetention:
		w.amend(func(s *v1beta2.ClusterSpec) { kept(s, e.A%2 == 0) })
	case EventDeclare:
		w.amend(func(s *v1beta2.ClusterSpec) { declareOther(s, e) })
		if e.B%2 == 0 {
			w.amend(func(s *v1beta2.ClusterSpec) { declareFamilies(s, e.A+e.B) })
		}
	case EventRestart:
		w.askForRestart(e)
	case EventBadDeclaration:
		if !slices.Equal(w.plan.line(), versionLines[0]) {
			return // a second voter that never starts ends a cluster that knows no learners
		}
		w.amend(func(s *v1beta2.ClusterSpec) { policyOf(s).EtcdEnv = []corev1.EnvVar{{Name: badEnvironment}} })
		w.after(e.For, func() {
			if !w.quiet {
				w.mend()
			}
		})
	default:
		w.tamper(e)
	}
}

// badEnvironment is a variable with which etcd does not start.
const badEnvironment = "ETCD_NO_SUCH_FLAG"

// mend takes back a declaration with which etcd does not start.
func (w *World) mend() {
	w.amend(func(s *v1beta2.ClusterSpec) { policyOf(s).EtcdEnv = nil })
}

func policyOf(s *v1beta2.ClusterSpec) *v1beta2.PodPolicy {
	if s.Pod == nil {
		s.Pod = &v1beta2.PodPolicy{}
	}
	return s.Pod
}

// declareOther changes something that makes pods other ones.
func declareOther(s *v1beta2.ClusterSpec, e Event) {
	switch value := int64(1 + e.B%3); e.A % 5 {
	case 0:
		policyOf(s).Resources.Requests = corev1.ResourceList{corev1.ResourceCPU: *resource.NewMilliQuantity(100*value, resource.DecimalSI)}
	case 1:
		policyOf(s).EtcdEnv = []corev1.EnvVar{{Name: "GOGC", Value: strconv.FormatInt(50*value, 10)}}
	case 2:
		s.Etcd = &v1beta2.EtcdOptions{SnapshotCount: ptr.To(10000 * value)}
	case 3:
		policyOf(s).Labels = map[string]string{"team": strconv.FormatInt(value, 10)}
	case 4:
		s.Repository = v1beta2.DefaultRepository + strings.Repeat("-mirror", e.B%3)
	}
}

func (w *World) undeclare() {
	old, found := lookup[clusterObject](w.store, kindCluster, clusterName)
	if !found {
		return
	}
	w.checks.gone[string(old.UID)] = true
	w.store.deleteCluster(old)
}

func (w *World) deleteSomeClaim(e Event) {
	claims := w.store.list(kindClaim)
	if len(claims) == 0 {
		return
	}
	claim := claims[e.A%len(claims)].(claimObject)
	lost := map[*dataDir]bool{w.etcd.claims[string(claim.UID)]: true}
	for _, l := range w.etcd.lineages {
		if !w.plan.Deadly && w.checks.matters(l) && !w.survives(l, lost) {
			return
		}
	}
	uid := claim.UID
	delete(w.checks.left, claim.Name)
	_ = w.store.deleteObject(kindClaim, claim.Name, metav1.Preconditions{UID: &uid})
}

// tamper changes what belongs to the controller.
func (w *World) tamper(e Event) {
	cluster, found := lookup[clusterObject](w.store, kindCluster, clusterName)
	if !found {
		return
	}
	services := []string{clusterName, resources.ClientServiceName(cluster)}
	switch e.Kind {
	case EventDeleteService:
		w.store.remove(kindService, services[e.A%2])
	case EventEditService:
		edit(w.store, kindService, services[e.A%2], func(s *corev1.Service) { spoil(s, e.B) })
		if e.B%3 == 0 {
			edit(w.store, kindService, services[e.A%2], editFamilies)
		}
	case EventDeleteBudget:
		w.store.remove(kindBudget, clusterName)
	case EventRelabel:
		if pod := w.anyPod(e.A); pod != nil && e.B%2 == 0 {
			edit(w.store, kindPod, pod.Name, func(p *corev1.Pod) { delete(p.Labels, resources.LabelApp) })
			return
		}
		edit(w.store, kindService, services[e.A%2], func(s *corev1.Service) { delete(s.Labels, resources.LabelApp) })
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
		delete(s.Annotations, resources.AnnotationClusterID)
		delete(s.Annotations, resources.AnnotationSeed)
	}
}
