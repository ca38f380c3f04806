// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package resources

import (
	"flag"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/yaml"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
)

var update = flag.Bool("update", false, "write the golden files instead of comparing with them")

// Names of members as the controller makes them.
const (
	first  = "example-etcd-cluster-7xk2mq9wzp"
	second = "example-etcd-cluster-b4n8sv2h6t"
	third  = "example-etcd-cluster-qd5r9c3f7l"
	token  = "0f3c5a4e-8a35-4f6c-9a3e-0d9d3d7b1c11"
)

// newCluster returns the cluster of the oldest example in the documentation, with
// changes.
func newCluster(changes ...func(*v1beta2.EtcdCluster)) *v1beta2.EtcdCluster {
	c := &v1beta2.EtcdCluster{
		ObjectMeta: metav1.ObjectMeta{Name: "example-etcd-cluster", Namespace: "default", UID: token},
		Spec:       v1beta2.ClusterSpec{Replicas: ptr.To[int32](3), Version: "3.2.13"},
	}
	for _, change := range changes {
		change(c)
	}
	v1beta2.SetObjectDefaults_EtcdCluster(c)
	return c
}

func version(v string) func(*v1beta2.EtcdCluster) {
	return func(c *v1beta2.EtcdCluster) { c.Spec.Version = v }
}

func policy(p v1beta2.PodPolicy) func(*v1beta2.EtcdCluster) {
	return func(c *v1beta2.EtcdCluster) { c.Spec.Pod = &p }
}

func staticTLS(c *v1beta2.EtcdCluster) {
	c.Spec.TLS = &v1beta2.TLSPolicy{Static: &v1beta2.StaticTLS{
		Member:         &v1beta2.MemberSecret{PeerSecret: "etcd-peer-tls", ServerSecret: "etcd-server-tls"},
		OperatorSecret: "etcd-client-tls",
	}}
}

func autoTLS(c *v1beta2.EtcdCluster) {
	c.Spec.TLS = &v1beta2.TLSPolicy{Auto: &v1beta2.AutoTLS{}}
}

func volumes(c *v1beta2.EtcdCluster) {
	c.Spec.Pod = &v1beta2.PodPolicy{PersistentVolumeClaimSpec: &corev1.PersistentVolumeClaimSpec{
		StorageClassName: ptr.To("fast"),
		Resources:        corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("8Gi")}},
	}}
}

func retain(c *v1beta2.EtcdCluster) {
	volumes(c)
	c.Spec.Pod.PersistentVolumeClaimRetentionPolicy = &v1beta2.PersistentVolumeClaimRetentionPolicy{WhenDeleted: v1beta2.PVCRetain}
}

func loadBalancer(c *v1beta2.EtcdCluster) {
	c.Spec.Services = &v1beta2.ServicesPolicy{Client: &v1beta2.ServiceTemplate{
		Type:                     corev1.ServiceTypeLoadBalancer,
		Annotations:              map[string]string{"example.com/internal": "true"},
		Labels:                   map[string]string{"team": "storage", LabelApp: "refused"},
		NodePort:                 32379,
		LoadBalancerClass:        ptr.To("example.com/internal"),
		LoadBalancerSourceRanges: []string{"10.0.0.0/8"},
		ExternalTrafficPolicy:    corev1.ServiceExternalTrafficPolicyLocal,
		TrafficDistribution:      ptr.To("PreferSameZone"),
		IPFamilyPolicy:           ptr.To(corev1.IPFamilyPolicyPreferDualStack),
	}}
}

func everyOption(c *v1beta2.EtcdCluster) {
	c.Spec.Etcd = &v1beta2.EtcdOptions{
		QuotaBackendBytes: ptr.To(resource.MustParse("8Gi")),
		AutoCompaction:    &v1beta2.AutoCompaction{Mode: v1beta2.AutoCompactionPeriodic, Retention: "90m"},
		SnapshotCount:     ptr.To[int64](25000),
		HeartbeatInterval: &v1beta2.Duration{Duration: 250e6},
		ElectionTimeout:   &v1beta2.Duration{Duration: 2500e6},
		ExtraArgs:         []string{"--max-txn-ops=512", "--metrics=extensive"},
	}
}

// everyPolicy sets every field of PodPolicy that changes a pod.
func everyPolicy() v1beta2.PodPolicy {
	return v1beta2.PodPolicy{
		Labels:       map[string]string{"team": "storage", LabelApp: "refused", LabelRole: "refused"},
		Annotations:  map[string]string{"example.com/note": "kept", AnnotationVersion: "refused"},
		NodeSelector: map[string]string{"disk": "ssd"},
		Affinity: &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{
			NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchExpressions: []corev1.NodeSelectorRequirement{
				{Key: "pool", Operator: corev1.NodeSelectorOpIn, Values: []string{"etcd"}},
			}}},
		}}},
		AntiAffinity: true,
		Resources: corev1.ResourceRequirements{
			Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("200m"), corev1.ResourceMemory: resource.MustParse("256Mi")},
			Limits:   corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("512Mi")},
		},
		Tolerations:        []corev1.Toleration{{Key: "dedicated", Operator: corev1.TolerationOpEqual, Value: "etcd", Effect: corev1.TaintEffectNoSchedule}},
		EtcdEnv:            []corev1.EnvVar{{Name: "GOGC", Value: "50"}},
		BusyboxImage:       "busybox:1.28.0-glibc",
		SecurityContext:    &corev1.PodSecurityContext{RunAsUser: ptr.To[int64](9000), SupplementalGroups: []int64{9001}},
		DNSTimeoutInSecond: 30,
		ClusterDomain:      ".cluster.local",
		TopologySpreadConstraints: []corev1.TopologySpreadConstraint{{
			MaxSkew: 2, TopologyKey: "rack", WhenUnsatisfiable: corev1.DoNotSchedule,
			LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{LabelCluster: "example-etcd-cluster"}},
		}},
		PriorityClassName:             "etcd",
		ImagePullSecrets:              []corev1.LocalObjectReference{{Name: "registry"}},
		ImagePullPolicy:               corev1.PullAlways,
		TerminationGracePeriodSeconds: ptr.To[int64](60),
		ContainerSecurityContext:      &corev1.SecurityContext{ReadOnlyRootFilesystem: ptr.To(false)},
	}
}

// seed, join and learn are the three kinds of pods.
func seed(c *v1beta2.EtcdCluster) *corev1.Pod {
	return Pod(c, MemberPod{Name: first, Bootstrap: true, Token: string(c.UID), InitialCluster: peers(c, first)})
}

func join(c *v1beta2.EtcdCluster) *corev1.Pod {
	return Pod(c, MemberPod{Name: third, InitialCluster: peers(c, third, first, second)})
}

func learn(c *v1beta2.EtcdCluster) *corev1.Pod {
	return Pod(c, MemberPod{Name: second, Learner: true, InitialCluster: peers(c, first, second)})
}

// prepared is the pod of a member that is not added yet.
func prepared(c *v1beta2.EtcdCluster) *corev1.Pod {
	return Pod(c, MemberPod{Name: second, Learner: true, Prepared: true, Image: "agent:v1"})
}

func peers(c *v1beta2.EtcdCluster, members ...string) []Peer {
	var out []Peer
	for _, m := range members {
		out = append(out, Peer{Name: m, URL: PeerURL(c, m)})
	}
	return out
}

func TestGolden(t *testing.T) {
	t.Parallel()
	example := newCluster()
	named := newCluster(version("3.6.16"), staticTLS)
	kubernetes := MemberPod{
		Name: second, Learner: true, InitialCluster: peers(named, first, second),
		PeerFormat: FormatKubernetes, ServerFormat: FormatKubernetes,
	}
	for name, got := range map[string]any{
		"pod-3.2.13-seed":        seed(example),
		"pod-3.2.13-second":      Pod(example, MemberPod{Name: second, InitialCluster: peers(example, first, second)}),
		"pod-3.2.13-third":       join(example),
		"pod-3.2.13-tls":         seed(newCluster(staticTLS)),
		"pod-3.4.20-learner":     learn(newCluster(version("3.4.20"))),
		"pod-3.5.4-learner":      learn(newCluster(version("3.5.4"))),
		"pod-3.5.35-learner":     learn(newCluster(version("3.5.35"))),
		"pod-3.6.16-seed":        seed(newCluster(version("v3.6.16"))),
		"pod-3.6.16-learner":     learn(newCluster(version("3.6.16"))),
		"pod-3.3.27-prepared":    prepared(newCluster(version("3.3.27"))),
		"pod-3.6.16-prepared":    prepared(newCluster(version("3.6.16"), volumes)),
		"pod-3.6.16-voter":       join(newCluster(version("3.6.16"))),
		"pod-3.6.16-volume":      learn(newCluster(version("3.6.16"), volumes)),
		"pod-3.6.16-options":     learn(newCluster(version("3.6.16"), everyOption)),
		"pod-3.6.16-policy":      learn(newCluster(version("3.6.16"), policy(everyPolicy()))),
		"pod-3.6.16-tls":         seed(named),
		"pod-3.6.16-tls-names":   Pod(named, kubernetes),
		"pod-3.6.16-tls-auto":    learn(newCluster(version("3.6.16"), autoTLS)),
		"pod-3.7.3-learner":      learn(newCluster(version("3.7.3"))),
		"claim":                  PVC(newCluster(volumes), first),
		"claim-retained":         PVC(newCluster(retain), first),
		"service-peer":           PeerService(example),
		"service-client":         ClientService(example),
		"service-client-balance": ClientService(newCluster(loadBalancer)),
		"budget":                 PodDisruptionBudget(example, 2),
		"record":                 RecordConfigMap(example, exampleRecord()),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			checkGolden(t, filepath.Join("testdata", name+".yaml"), got)
		})
	}
}

// TestPublishedManifests builds the first pod of every cluster among the manifests that
// guides for etcd-operator have always shown.
func TestPublishedManifests(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob(filepath.Join("..", "..", "artifacts", "examples", "compat", "*.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	clusters := 0
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var c v1beta2.EtcdCluster
		if err := yaml.Unmarshal(text, &c); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		if c.Kind != "EtcdCluster" {
			continue
		}
		clusters++
		c.Namespace, c.UID = "default", token
		v1beta2.SetObjectDefaults_EtcdCluster(&c)
		checkGolden(t, filepath.Join("testdata", "compat", filepath.Base(file)), seed(&c))
	}
	if clusters == 0 {
		t.Error("there is no cluster among the manifests")
	}
}

func checkGolden(t *testing.T, path string, obj any) {
	t.Helper()
	got, err := yaml.Marshal(obj)
	if err != nil {
		t.Fatal(err)
	}
	if *update {
		if err := os.WriteFile(path, got, 0o600); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatalf("%v (go test ./pkg/resources -update writes it)", err)
	}
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Errorf("%s (-want +got; go test ./pkg/resources -update accepts it):\n%s", path, diff)
	}
}
