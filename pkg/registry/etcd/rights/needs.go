// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package rights

import (
	"fmt"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
)

// Need is a right that the author of an object needs because of one field of the object.
type Need struct {
	// Field of the object, such as spec.s3.awsSecret.
	Field string
	// What the field makes a pod do, for the error message.
	What string
	// AnyOf are alternatives: one of these rights is enough.
	AnyOf []Right
}

// use is a part of an object that names Secrets and ServiceAccounts, with everything that decides
// how they are used. A Secret that the object has named before counts as new if its content
// would now be sent to another location.
type use struct {
	needs   []Need
	context any
}

// NeedsOf returns the rights that the author of obj needs. Parts that are the same in old need
// none, so that another user can update the object. Old is nil for a new object.
func NeedsOf(obj, old runtime.Object) []Need {
	// Most objects name no Secret. The old one is searched only if the new one does.
	known := sync.OnceValue(func() []use {
		if old == nil {
			return nil
		}
		return usesOf(old)
	})
	var needs []Need
	for _, u := range usesOf(obj) {
		same := func(k use) bool { return equality.Semantic.DeepEqual(k.context, u.context) }
		if len(u.needs) == 0 || slices.ContainsFunc(known(), same) {
			continue
		}
		for _, need := range u.needs {
			if !slices.ContainsFunc(needs, func(n Need) bool { return slices.Equal(n.AnyOf, need.AnyOf) }) {
				needs = append(needs, need)
			}
		}
	}
	return needs
}

func usesOf(obj runtime.Object) []use {
	path := field.NewPath("spec")
	switch typed := obj.(type) {
	case *v1beta2.EtcdBackup:
		return backupUses(path, typed.Spec)
	case *v1beta2.EtcdRestore:
		return restoreUses(path, typed.Spec)
	case *v1beta2.EtcdCluster:
		return append(clusterUses(path, typed.Spec), statusUses(typed.Status)...)
	default:
		return nil
	}
}

// backupUses, restoreUses and clusterUses clear the fields that cannot send the content of a Secret elsewhere, nor have another
// program read it. Every other field counts. TestFieldsThatCount lists both.
func backupUses(path *field.Path, spec v1beta2.BackupSpec) []use {
	proof := proofUses(path, spec.Verify, spec.ServiceAccountName, "")
	spec.BackupPolicy, spec.Compression, spec.Verify, spec.Job = nil, "", "", jobUse(spec.Job)
	spec.Hold, spec.HeldSnapshots, spec.TTL = nil, nil, nil
	needs := append(find(path, spec), identityNeeds(path, spec.BackupSource, spec.ServiceAccountName, hasProxy(spec.Job))...)
	uses := append(proof, use{needs: needs, context: spec})
	return append(uses, certificateUses(path, spec.Job, spec.EtcdCluster)...)
}

// certificateUses returns the use of the client certificate of a cluster by a program that a webhook adds because of labels
// or annotations of a Job. The pod of the Job mounts that certificate, and the object does not name its Secret. So the author
// needs the right to every Secret. An EtcdBackup of etcdEndpoints needs it, too: an EtcdRestore of it in place first stores
// the data of any cluster, with the labels and annotations of that EtcdBackup. Proxies in job.env do not count: the agent
// connects to the members directly, and sends the certificate nowhere else.
func certificateUses(path *field.Path, job *v1beta2.JobPolicy, cluster *v1beta2.EtcdClusterRef) []use {
	chosen := job.OnlySecretUse()
	at := path.Child("job", "annotations")
	switch {
	case len(chosen.Annotations) > 0:
	case len(chosen.Labels) > 0:
		at = path.Child("job", "labels")
	default:
		return nil
	}
	return []use{{context: []any{cluster, chosen.Labels, chosen.Annotations}, needs: []Need{{
		Field: at.String(), What: "a program that a webhook adds because of this field may read the client certificate of an EtcdCluster",
		AnyOf: []Right{{Verb: "get", Resource: "secrets"}, {Verb: "use", Resource: "secrets"}},
	}}}}
}

// proofUses returns the use of a ServiceAccount by the image of etcd, which runs in the pod of a backup that a restore
// verifies. Some clouds give the identity of the ServiceAccount to every container of a pod, whatever its annotations say.
// So the author that chooses the repository, or this verification, needs the right to the ServiceAccount.
func proofUses(path *field.Path, verify v1beta2.Verification, account, repository string) []use {
	if verify != v1beta2.VerificationRestore || account == "" {
		return nil
	}
	return []use{{needs: []Need{accountNeed(path.Child("serviceAccountName"), account)}, context: []any{verify, account, repository}}}
}

// jobUse keeps the fields that decide where the content of a Secret goes, or that name one: the pull secrets.
func jobUse(job *v1beta2.JobPolicy) *v1beta2.JobPolicy {
	if job == nil {
		return nil
	}
	use := job.OnlySecretUse()
	use.ImagePullSecrets = job.ImagePullSecrets
	if equality.Semantic.DeepEqual(use, v1beta2.JobPolicy{}) {
		return nil
	}
	return &use
}

func restoreUses(path *field.Path, spec v1beta2.RestoreSpec) []use {
	template := spec.ClusterTemplate
	var certificate []use
	if template == nil && spec.Backup == nil { // the pre-restore backup may have this job
		certificate = certificateUses(path, spec.Job, &spec.EtcdCluster)
	}
	// A restore without a job may have that of spec.backup of the cluster, and its proxy.
	proxied := spec.Job == nil || hasProxy(spec.Job)
	spec.ClusterTemplate, spec.RevisionBump, spec.Job = nil, nil, jobUse(spec.Job)
	needs := append(find(path, spec), identityNeeds(path, placeOf(spec.RestoreSource), spec.ServiceAccountName, proxied)...)
	uses := []use{{needs: needs, context: spec}}
	if spec.BackupStorageType != "" || spec.RestoreSource != (v1beta2.RestoreSource{}) {
		uses = append(uses, locationUse(path, spec))
	}
	if template == nil {
		return append(uses, certificate...)
	}
	path = path.Child("clusterTemplate")
	uses = append(uses, use{context: *template, needs: []Need{{
		Field: path.String(), What: "the controller creates an EtcdCluster from this field",
		AnyOf: []Right{{Verb: "create", Group: v1beta2.SchemeGroupVersion.Group, Resource: "etcdclusters"}},
	}}})
	return append(uses, clusterUses(path.Child("spec"), template.Spec)...)
}

// locationUse returns the use of a location that an EtcdRestore names itself. Of a cluster without spec.backup, the pre-restore
// backup goes there, with all keys of the cluster. So the author needs the right to send them anywhere.
func locationUse(path *field.Path, spec v1beta2.RestoreSpec) use {
	return use{context: []any{spec.BackupStorageType, spec.RestoreSource}, needs: []Need{{
		Field: path.Child("backupStorageType").String(), What: "the controller stores the data that the restore replaces beside this location",
		AnyOf: []Right{{Verb: "create", Group: v1beta2.SchemeGroupVersion.Group, Resource: "etcdbackups"}},
	}}}
}

// clusterUses treats each environment variable and each field that names a Secret for members as
// a separate use. All depend on the programs that read them.
func clusterUses(path *field.Path, spec v1beta2.ClusterSpec) []use {
	var uses []use
	if spec.Backup != nil {
		policy := *spec.Backup
		uses = append(uses, proofUses(path.Child("backup"), policy.Verify, policy.ServiceAccountName, spec.Repository)...)
		policy.Schedule, policy.TimeZone, policy.Retention, policy.TTL = "", nil, nil, nil
		policy.Compression, policy.Verify, policy.Job = "", "", jobUse(policy.Job)
		needs := append(find(path.Child("backup"), policy), identityNeeds(path.Child("backup"), policy.BackupSource, policy.ServiceAccountName, hasProxy(policy.Job))...)
		uses = append(uses, use{needs: needs, context: policy})
		uses = append(uses, operatorUses(path, spec.TLS, policy.Job)...)
		spec.Backup = nil
	}
	if spec.Bootstrap != nil && spec.Bootstrap.Existing != nil {
		// The controller shows the certificate to these endpoints.
		existing := *spec.Bootstrap.Existing
		existing.OldMembers = ""
		uses = append(uses, use{needs: find(path.Child("bootstrap", "existing"), existing), context: existing})
		spec.Bootstrap = nil
	}
	programs := programsOf(spec)
	if spec.Pod != nil {
		pod := *spec.Pod
		for i, variable := range pod.EtcdEnv {
			uses = append(uses, use{needs: find(path.Child("pod", "etcdEnv").Index(i), variable), context: []any{programs, variable}})
		}
		pod.EtcdEnv = nil
		spec.Pod = &pod
	}
	for _, need := range find(path, spec) {
		uses = append(uses, use{needs: []Need{need}, context: []any{programs, withoutIndex(need.Field), need.AnyOf}})
	}
	return uses
}

// operatorUses returns the use of the client certificate that a cluster names by a program that a webhook adds because of
// labels or annotations of its backups. A certificate that is issued for the cluster needs no right: the author of the
// cluster chooses the image of its members. An EtcdBackup gets these labels and annotations without a check of its own. So
// the planner of restores gives them to no backup of another cluster, and resources.JobOfCluster to no pod with other Secrets.
func operatorUses(path *field.Path, tls *v1beta2.TLSPolicy, job *v1beta2.JobPolicy) []use {
	chosen := job.OnlySecretUse()
	if tls == nil || tls.Static == nil || tls.Static.OperatorSecret == "" || len(chosen.Labels)+len(chosen.Annotations) == 0 {
		return nil
	}
	name := tls.Static.OperatorSecret
	return []use{{
		needs:   []Need{secretNeed(path.Child("TLS", "static", "operatorSecret"), name)},
		context: []any{"backups", name, chosen.Labels, chosen.Annotations},
	}}
}

// programsOf returns what decides which programs run in the pods of members: the repository, and the labels and annotations, by
// which a webhook may add containers.
func programsOf(spec v1beta2.ClusterSpec) []any {
	var pod v1beta2.PodPolicy
	if spec.Pod != nil {
		pod = *spec.Pod
	}
	var metadata v1beta2.ObjectsMetadata
	if spec.Metadata != nil {
		metadata = *spec.Metadata
	}
	return []any{spec.Repository, pod.Labels, pod.Annotations, metadata.Labels}
}

// statusUses returns the uses of a recovery: the controller restores a member from the location
// that it names.
func statusUses(status v1beta2.ClusterStatus) []use {
	var uses []use
	if r := status.Recovery; r != nil {
		path := field.NewPath("status", "recovery", "source")
		needs := find(path, r.Source)
		if place := r.Source.Backup; place != nil {
			needs = append(needs, identityNeeds(path.Child("backup"), placeOf(place.RestoreSource), place.ServiceAccountName, len(place.Env) > 0)...)
		}
		uses = append(uses, use{needs: needs, context: r.Source})
	}
	return uses
}

// secretNeed returns the need of a field that names a Secret. With the verb use a role can grant
// the use of a Secret without the right to read it.
func secretNeed(path *field.Path, name string) Need {
	return Need{
		Field: path.String(), What: fmt.Sprintf("a pod mounts Secret %q", name),
		AnyOf: []Right{{Verb: "get", Resource: "secrets", Name: name}, {Verb: "use", Resource: "secrets", Name: name}},
	}
}

// accountNeed returns the need of a field that names a ServiceAccount. The right to get it is not
// enough: every viewer of a namespace has that right.
func accountNeed(path *field.Path, name string) Need {
	return Need{
		Field: path.String(), What: fmt.Sprintf("a pod runs as ServiceAccount %q", name),
		AnyOf: []Right{{Verb: "impersonate", Resource: "serviceaccounts", Name: name}, {Verb: "use", Resource: "serviceaccounts", Name: name}},
	}
}
