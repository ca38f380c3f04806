// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package resources

import (
	"maps"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/etcd-operator/etcd-operator/pkg/agent"
	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
)

func lostCluster(volumes bool) *v1beta2.EtcdCluster {
	c := &v1beta2.EtcdCluster{
		ObjectMeta: metav1.ObjectMeta{Name: "c", Namespace: "n", UID: "uid"},
		Spec: v1beta2.ClusterSpec{Version: "3.6.16", TLS: &v1beta2.TLSPolicy{Static: &v1beta2.StaticTLS{
			Member: &v1beta2.MemberSecret{PeerSecret: "peers", ServerSecret: "servers"}, OperatorSecret: "operator",
		}}},
	}
	if volumes {
		c.Spec.Pod = &v1beta2.PodPolicy{PersistentVolumeClaimSpec: &corev1.PersistentVolumeClaimSpec{}}
	}
	return c
}

func recovery(edit func(*v1beta2.RecoveryStatus)) *v1beta2.RecoveryStatus {
	r := &v1beta2.RecoveryStatus{
		ID: "one", Phase: v1beta2.RecoveryPhaseFilling, RecoveryMember: "c-new", RevisionBump: 7, Source: v1beta2.RecoverySource{Member: "c-old"},
	}
	edit(r)
	return r
}

// request returns the request to the agent in an init container.
func request(t *testing.T, pod *corev1.Pod, name string, command agent.Command) *agent.Request {
	t.Helper()
	for i := range pod.Spec.InitContainers {
		c := &pod.Spec.InitContainers[i]
		if c.Name != name {
			continue
		}
		for _, arg := range c.Command {
			if raw, found := strings.CutPrefix(arg, "--"+agent.RequestFlag+"="); found {
				r, err := agent.DecodeRequest(command, []byte(raw))
				if err != nil {
					t.Fatal(err)
				}
				return r
			}
		}
	}
	t.Fatalf("no request in init container %s", name)
	return nil
}

func TestRecoveryPodFromMember(t *testing.T) {
	t.Parallel()
	pod, err := RecoveryPod(lostCluster(false), recovery(func(*v1beta2.RecoveryStatus) {}), MemberPod{}, "agent:1")
	if err != nil {
		t.Fatal(err)
	}
	fetch := request(t, pod, InitFetch, agent.CommandFetch)
	if e := fetch.Etcd; e.Endpoints[0].Name != "c-old" || e.Endpoints[0].URL != "https://c-old.c.n.svc:2379" || e.TLSDir != agent.EtcdTLSDir {
		t.Errorf("fetched from %+v", e)
	}
	restore := request(t, pod, InitRestore, agent.CommandRestore).Restore
	if restore.InitialClusterToken == "uid" || !strings.HasPrefix(restore.InitialClusterToken, "uid/") || restore.RevisionBump != 7 ||
		restore.DataDir != dataDir || restore.Name != "c-new" || restore.File != fetch.Fetch.File {
		t.Errorf("restored as %+v", restore)
	}
	// Each init container takes Kubernetes a second, so the one that fetches also copies the agent.
	if init := pod.Spec.InitContainers; len(init) != 2 || init[0].Image != "agent:1" || init[1].Image != pod.Spec.Containers[0].Image || !strings.HasPrefix(init[1].Command[0], fetch.Fetch.InstallDir+"/") {
		t.Errorf("the init containers are %+v, and the agent is copied into %q", init, fetch.Fetch.InstallDir)
	}
	if !IsHidden(pod.Labels, "c") || pod.Labels[LabelCluster] != "" {
		t.Errorf("clients see it: %v", pod.Labels)
	}
	if MayFill(pod) {
		t.Error("it may start an empty cluster")
	}
	for i := range pod.Spec.InitContainers {
		sc := pod.Spec.InitContainers[i].SecurityContext
		if sc == nil || *sc.AllowPrivilegeEscalation || !*sc.ReadOnlyRootFilesystem {
			t.Errorf("init container %s is not restricted", pod.Spec.InitContainers[i].Name)
		}
	}
}

// An old etcd's program looks its own name up, which the DNS does not know of a hidden pod.
func TestRecoveryPodKnowsItsName(t *testing.T) {
	t.Parallel()
	for version, needed := range map[string]bool{"3.2.13": true, "3.3.27": true, "3.6.16": false} {
		c := lostCluster(false)
		c.Spec.Version = version
		pod, err := RecoveryPod(c, recovery(func(*v1beta2.RecoveryStatus) {}), MemberPod{}, "agent:1")
		if err != nil {
			t.Fatal(err)
		}
		known := slices.ContainsFunc(pod.Spec.HostAliases, func(a corev1.HostAlias) bool { return slices.Contains(a.Hostnames, "c-new.c.n.svc") })
		if known != needed {
			t.Errorf("%s: the pod knows %+v", version, pod.Spec.HostAliases)
		}
	}
}

func TestRecoveryPodFromStore(t *testing.T) {
	t.Parallel()
	r := recovery(func(r *v1beta2.RecoveryStatus) {
		r.Source = v1beta2.RecoverySource{Restore: "r", Backup: &v1beta2.BackupPlace{
			StorageType:   v1beta2.BackupStorageTypeS3,
			RestoreSource: v1beta2.RestoreSource{S3: &v1beta2.S3RestoreSource{Path: "bucket/key", AWSSecret: "aws", CASecret: "ca"}},
			Decryption:    &v1beta2.BackupDecryption{AgeIdentitiesSecret: "age"}, SHA256: "abc",
		}}
	})
	pod, err := RecoveryPod(lostCluster(true), r, MemberPod{}, "agent:1")
	if err != nil {
		t.Fatal(err)
	}
	fetch := request(t, pod, InitFetch, agent.CommandFetch)
	if fetch.Etcd != nil || fetch.Store.Bucket != "bucket" || fetch.Fetch.SHA256 != "abc" || fetch.Fetch.TargetVersion != "3.6.16" {
		t.Errorf("fetched %+v %+v", fetch.Store, fetch.Fetch)
	}
	// What the store gives now is bounded as what was checked.
	if want := RestoreTargetOf(lostCluster(true)).MaxSize; want == 0 || fetch.Fetch.MaxSize != want {
		t.Errorf("at most %d bytes are fetched, want %d", fetch.Fetch.MaxSize, want)
	}
	var secrets []string
	for i := range pod.Spec.Volumes {
		if s := pod.Spec.Volumes[i].Secret; s != nil {
			secrets = append(secrets, s.SecretName)
		}
	}
	for _, want := range []string{"aws", "ca", "age"} {
		if !slices.Contains(secrets, want) {
			t.Errorf("secret %s is not mounted: %v", want, secrets)
		}
	}
	if pvc := RecoveryPVC(lostCluster(true), &v1beta2.RecoveryStatus{ID: "r", RecoveryMember: "c-new"}); !IsHidden(pvc.Labels, "c") {
		t.Errorf("the PVC is not hidden: %v", pvc.Labels)
	}

	r.Phase = v1beta2.RecoveryPhaseCutover
	if pod, err = RecoveryPod(lostCluster(true), r, MemberPod{}, "agent:1"); err != nil || len(pod.Spec.InitContainers) != 0 {
		t.Errorf("a seed that has served is filled again: %v", err)
	}
}

// TestRecoveryPodTrustsTheStore: the CA of a store of any kind is mounted where the new
// bootstrap member is filled.
func TestRecoveryPodTrustsTheStore(t *testing.T) {
	t.Parallel()
	for storageType, source := range map[v1beta2.BackupStorageType]v1beta2.RestoreSource{
		v1beta2.BackupStorageTypeABS: {ABS: &v1beta2.ABSSource{Path: "c/k", ABSSecret: "s", CASecret: "ca"}},
		v1beta2.BackupStorageTypeGCS: {GCS: &v1beta2.GCSSource{Path: "b/k", GCPSecret: "s", CASecret: "ca"}},
		v1beta2.BackupStorageTypeOSS: {OSS: &v1beta2.OSSSource{Path: "b/k", OSSSecret: "s", CASecret: "ca"}},
	} {
		pod, err := RecoveryPod(lostCluster(true), recovery(func(r *v1beta2.RecoveryStatus) {
			r.Source = v1beta2.RecoverySource{Restore: "r", Backup: &v1beta2.BackupPlace{StorageType: storageType, RestoreSource: source}}
		}), MemberPod{}, "agent:1")
		if err != nil {
			t.Fatal(err)
		}
		if fetch := request(t, pod, InitFetch, agent.CommandFetch); fetch.Store.CADir != agent.CADir {
			t.Errorf("%s: fetched from %+v", storageType, fetch.Store)
		}
		if !slices.ContainsFunc(pod.Spec.Volumes, func(v corev1.Volume) bool { return v.Secret != nil && v.Secret.SecretName == "ca" }) {
			t.Errorf("%s: the volumes are %+v", storageType, pod.Spec.Volumes)
		}
	}
}

func TestLabelsOfALineage(t *testing.T) {
	t.Parallel()
	labels := map[string]string{LabelApp: AppName, LabelCluster: "c"}
	if !IsFenced(&labels, "c") || labels[LabelCluster] != "" || labels[LabelFenced] != "c" || IsFenced(&labels, "c") {
		t.Errorf("retired: %v", labels)
	}
	labels = map[string]string{LabelApp: AppName, LabelRecovery: "c"}
	if !IsPublished(&labels, "c") || labels[LabelCluster] != "c" || labels[LabelRecovery] != "" || IsPublished(&labels, "c") {
		t.Errorf("revealed: %v", labels)
	}
}

// A seed reads the user's secrets under their names, or it would never serve. It notes the
// CAs that it trusts, or the controller would expect other CAs.
func TestRecoveryPodKnowsTheSecrets(t *testing.T) {
	t.Parallel()
	m := MemberPod{PeerFormat: FormatKubernetes, ServerFormat: FormatKubernetes, Trust: "these", Certificates: "those"}
	c := lostCluster(false)
	pod, err := RecoveryPod(c, recovery(func(*v1beta2.RecoveryStatus) {}), m, "agent:1")
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"--peer-cert-file=" + peerTLSDir + "/tls.crt", "--cert-file=" + serverTLSDir + "/tls.crt"} {
		if !slices.Contains(pod.Spec.Containers[0].Command, want) {
			t.Errorf("%s is missing in %v", want, pod.Spec.Containers[0].Command)
		}
	}
	if pod.Annotations[AnnotationTrust] != "these" || pod.Annotations[AnnotationCertificates] != "those" || pod.Name != "c-new" {
		t.Errorf("pod %s says %v", pod.Name, pod.Annotations)
	}
}

// TestDropSource: without the PVC that is lost, the pod keeps the containers that look for the marker, and still
// counts as one that fills its data directory.
func TestDropSource(t *testing.T) {
	t.Parallel()
	pod, err := RecoveryPod(lostCluster(true), recovery(func(r *v1beta2.RecoveryStatus) { r.Source.PVC = "c-old" }), MemberPod{}, "agent")
	if err != nil {
		t.Fatal(err)
	}
	DropSource(pod)
	if got := request(t, pod, InitFetch, agent.CommandSalvage); got.FilledDir != dataDir || !Fills(pod) {
		t.Errorf("the marker is looked for in %q, and the pod fills: %t", got.FilledDir, Fills(pod))
	}
	if slices.ContainsFunc(pod.Spec.Volumes, func(v corev1.Volume) bool { return v.Name == sourceVolume }) {
		t.Error("the pod mounts a PVC that is lost")
	}
	for i := range pod.Spec.InitContainers {
		for _, m := range pod.Spec.InitContainers[i].VolumeMounts {
			if !slices.ContainsFunc(pod.Spec.Volumes, func(v corev1.Volume) bool { return v.Name == m.Name }) {
				t.Errorf("init container %s mounts %s, which the pod does not have", pod.Spec.InitContainers[i].Name, m.Name)
			}
		}
	}
}

// TestRecoveryPodReadsAVolume: etcd's own image reads the PVC of the old member, and only that
// container sees it, read-only. Once the recovery member has its data, the pod has no part of that.
func TestRecoveryPodReadsAVolume(t *testing.T) {
	t.Parallel()
	c := lostCluster(true)
	r := recovery(func(r *v1beta2.RecoveryStatus) { r.Source.PVC = "c-old" })
	pod, err := RecoveryPod(c, r, MemberPod{}, "agent")
	if err != nil {
		t.Fatal(err)
	}
	got := request(t, pod, InitFetch, agent.CommandSalvage)
	if got.Salvage.DataDir != "/var/lib/etcd-agent/source/data" || got.Salvage.File != request(t, pod, InitRestore, agent.CommandRestore).Restore.File {
		t.Errorf("the request is %+v", got.Salvage)
	}
	mounts := 0
	for _, container := range append(slices.Clone(pod.Spec.InitContainers), pod.Spec.Containers...) {
		for _, m := range container.VolumeMounts {
			if m.Name != sourceVolume {
				continue
			}
			mounts++
			if container.Name != InitFetch || container.Image != Image(c) || !m.ReadOnly {
				t.Errorf("container %s of image %s mounts it: %+v", container.Name, container.Image, m)
			}
		}
	}
	volume := slices.IndexFunc(pod.Spec.Volumes, func(v corev1.Volume) bool { return v.Name == sourceVolume })
	if mounts != 1 || volume < 0 || pod.Spec.Volumes[volume].PersistentVolumeClaim.ClaimName != "c-old" || pod.Spec.Volumes[volume].PersistentVolumeClaim.ReadOnly {
		t.Errorf("%d mounts of %+v", mounts, pod.Spec.Volumes)
	}
	r.Phase = v1beta2.RecoveryPhaseCutover
	if pod, err = RecoveryPod(c, r, MemberPod{}, "agent"); err != nil || slices.ContainsFunc(pod.Spec.Volumes, func(v corev1.Volume) bool { return v.Name == sourceVolume }) {
		t.Errorf("it mounts the PVC during the cutover: %+v, %v", pod.Spec.Volumes, err)
	}
}

// TestRecoveryPodFillsOnce: each init container that fills sees the data directory, and all name the same
// transfer. The marker that the transfer leaves is that of one recovery and of one source.
func TestRecoveryPodFillsOnce(t *testing.T) {
	t.Parallel()
	backup := func(sha string) func(*v1beta2.RecoveryStatus) {
		return func(r *v1beta2.RecoveryStatus) {
			r.Source = v1beta2.RecoverySource{Restore: "r", Backup: &v1beta2.BackupPlace{
				StorageType: v1beta2.BackupStorageTypeS3, RestoreSource: v1beta2.RestoreSource{S3: &v1beta2.S3RestoreSource{Path: "bucket/key"}}, SHA256: sha,
			}}
		}
	}
	other := lostCluster(true)
	other.UID = "other"
	seen := map[string]string{}
	for name, test := range map[string]struct {
		cluster *v1beta2.EtcdCluster
		command agent.Command
		edit    func(*v1beta2.RecoveryStatus)
	}{
		"member":           {lostCluster(true), agent.CommandFetch, func(*v1beta2.RecoveryStatus) {}},
		"another member":   {lostCluster(true), agent.CommandFetch, func(r *v1beta2.RecoveryStatus) { r.Source.Member = "c-other" }},
		"PVC":              {lostCluster(true), agent.CommandSalvage, func(r *v1beta2.RecoveryStatus) { r.Source.PVC = "c-old" }},
		"backup":           {lostCluster(true), agent.CommandFetch, backup("a")},
		"another backup":   {lostCluster(true), agent.CommandFetch, backup("b")},
		"another recovery": {lostCluster(true), agent.CommandFetch, func(r *v1beta2.RecoveryStatus) { r.ID = "two" }},
		"another cluster":  {other, agent.CommandFetch, func(*v1beta2.RecoveryStatus) {}},
		"a long name": {lostCluster(true), agent.CommandFetch, func(r *v1beta2.RecoveryStatus) {
			r.RecoveryMember = strings.Repeat("c", 63)
		}},
	} {
		pod, err := RecoveryPod(test.cluster, recovery(test.edit), MemberPod{}, "agent:1")
		if err != nil {
			t.Fatal(err)
		}
		fill, restore := request(t, pod, InitFetch, test.command), request(t, pod, InitRestore, agent.CommandRestore)
		if fill.FilledDir != restore.Restore.DataDir || fill.ID != restore.ID {
			t.Errorf("%s: %s looks at %s, and %s fills %s", name, fill.ID, fill.FilledDir, restore.ID, restore.Restore.DataDir)
		}
		if before, found := seen[fill.ID]; found {
			t.Errorf("%s has the ID of %s", name, before)
		}
		seen[fill.ID] = name
		for _, c := range pod.Spec.InitContainers {
			if c.Name == InitInstall {
				continue
			}
			i := slices.IndexFunc(c.VolumeMounts, func(m corev1.VolumeMount) bool { return m.Name == dataVolume })
			if i < 0 || c.VolumeMounts[i].ReadOnly != (c.Name == InitFetch) {
				t.Errorf("%s: init container %s mounts %+v", name, c.Name, c.VolumeMounts)
			}
		}
		if !Fills(pod) || Fills(Pod(test.cluster, MemberPod{Name: "c-a"})) {
			t.Errorf("%s: an ordinary pod is not told from one that fills", name)
		}
	}
}

// TestFillingPodDrainsNoClients: a pod that only fills a volume ends without the pause for clients, which would be part of
// every restore. A pod that clients reach later, and the one that follows on the volume, drain them.
func TestFillingPodDrainsNoClients(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		volumes bool
		phase   v1beta2.RecoveryPhase
		drains  bool
	}{
		{true, v1beta2.RecoveryPhaseFilling, false}, {true, v1beta2.RecoveryPhaseCutover, true},
		{false, v1beta2.RecoveryPhaseFilling, true}, {false, v1beta2.RecoveryPhaseCutover, true},
	} {
		c := lostCluster(test.volumes)
		pod, err := RecoveryPod(c, recovery(func(r *v1beta2.RecoveryStatus) { r.Phase = test.phase }), MemberPod{}, "agent:1")
		if err != nil {
			t.Fatal(err)
		}
		if got := pod.Spec.Containers[0].Lifecycle != nil; got != test.drains {
			t.Errorf("volumes %t, %s: drains %t, want %t", test.volumes, test.phase, got, test.drains)
		}
		if ordinary := Pod(c, MemberPod{Name: pod.Name}); pod.Annotations[AnnotationTemplate] != ordinary.Annotations[AnnotationTemplate] {
			t.Errorf("volumes %t, %s: its template differs from that of the member, so that it counts as outdated", test.volumes, test.phase)
		}
	}
}

// TestPublishedRecoveryMember: the containers that fill a recovery member learn from its pod that clients reach it.
func TestPublishedRecoveryMember(t *testing.T) {
	t.Parallel()
	pod, err := RecoveryPod(lostCluster(false), recovery(func(*v1beta2.RecoveryStatus) {}), MemberPod{}, "agent:1")
	if err != nil {
		t.Fatal(err)
	}
	published := maps.Clone(pod.Labels)
	if _, hidden := pod.Labels[LabelCluster]; hidden || !IsPublished(&published, "c") || published[LabelCluster] != "c" {
		t.Errorf("hidden %q, published %q", pod.Labels, published)
	}
	for i := range pod.Spec.InitContainers {
		c := &pod.Spec.InitContainers[i]
		learns := slices.ContainsFunc(c.Env, func(e corev1.EnvVar) bool {
			return e.Name == agent.PublishedEnv && e.ValueFrom.FieldRef.FieldPath == "metadata.labels['"+LabelCluster+"']"
		})
		if learns != (c.Name != InitInstall) {
			t.Errorf("container %s learns it %t", c.Name, learns)
		}
	}
}
