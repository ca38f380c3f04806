// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	fakediscovery "k8s.io/client-go/discovery/fake"
	fakedynamic "k8s.io/client-go/dynamic/fake"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/tools/record"
	clocktesting "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/certificates"
	"github.com/etcd-operator/etcd-operator/pkg/controller/kubeadapter"
	fakeetcd "github.com/etcd-operator/etcd-operator/pkg/generated/clientset/versioned/fake"
	certplanner "github.com/etcd-operator/etcd-operator/pkg/planner/certificates"
	planner "github.com/etcd-operator/etcd-operator/pkg/planner/cluster"
	"github.com/etcd-operator/etcd-operator/pkg/resources"
)

// certWorld is a Kubernetes with the part of a reconcile that is about certificates.
type certWorld struct {
	*testing.T
	r       *Reconciler
	clock   *clocktesting.FakePassiveClock
	kube    *fake.Clientset
	etcd    *fakeetcd.Clientset
	dynamic *fakedynamic.FakeDynamicClient
	cluster *v1beta2.EtcdCluster
	issuer  *certificates.CA
	pods    []planner.Pod
	// mounting are the pods in the cache, and hidden those of a recovery member.
	mounting, hidden []*corev1.Pod
	// hasRecord is true if the record of the cluster exists.
	hasRecord bool
}

func newCertWorld(t *testing.T, policy v1beta2.TLSPolicy) *certWorld {
	t.Helper()
	w := &certWorld{T: t, clock: clocktesting.NewFakePassiveClock(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)), kube: fake.NewClientset()}
	w.dynamic = fakedynamic.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(),
		map[schema.GroupVersionResource]string{resources.CertManagerResource: "CertificateList"})
	w.cluster = &v1beta2.EtcdCluster{
		ObjectMeta: metav1.ObjectMeta{Name: "c", Namespace: "n", UID: "uid"},
		Spec:       v1beta2.ClusterSpec{Replicas: ptr.To[int32](3), Version: "3.6.16", TLS: &policy},
	}
	w.etcd = fakeetcd.NewClientset(w.cluster)
	w.r = &Reconciler{Config: Config{
		Cache:       mountingPods{w: w},
		Objects:     kubeadapter.Client{Kubernetes: w.kube, Etcd: w.etcd},
		CertManager: &kubeadapter.CertManager{Discovery: w.discovery(), Dynamic: w.dynamic, Clock: w.clock},
		Recorder:    record.NewFakeRecorder(100),
		Clock:       w.clock,
	}}
	var err error
	if w.issuer, err = certificates.NewCA("issuer", w.clock.Now()); err != nil {
		t.Fatal(err)
	}
	return w
}

// mountingPods is a cache that holds pods only.
type mountingPods struct {
	Cache

	w *certWorld
}

func (c mountingPods) Pods(string, string) ([]*corev1.Pod, error) { return c.w.mounting, nil }

func (c mountingPods) HiddenPods(string, string) ([]*corev1.Pod, error) { return c.w.hidden, nil }

func (w *certWorld) discovery() *fakediscovery.FakeDiscovery {
	w.Helper()
	d, ok := w.kube.Discovery().(*fakediscovery.FakeDiscovery)
	if !ok {
		w.Fatal("the fake has another type of discovery")
	}
	return d
}

// install brings cert-manager's API.
func (w *certWorld) install() {
	w.discovery().Resources = []*metav1.APIResourceList{{
		GroupVersion: resources.CertManagerVersion.String(), APIResources: []metav1.APIResource{{Name: "certificates", Kind: "Certificate", Namespaced: true}},
	}}
}

// step reconciles what is about certificates once.
func (w *certWorld) step() *seen {
	w.Helper()
	s, err := w.try()
	if err != nil {
		w.Fatal(err)
	}
	return s
}

// try is a step that may fail.
func (w *certWorld) try() (*seen, error) {
	w.Helper()
	key := types.NamespacedName{Namespace: "n", Name: "c"}
	s := &seen{Observed: planner.Observed{Now: w.clock.Now(), Cluster: w.cluster, NewName: "c-new", Pods: slices.Clone(w.pods)}}
	if w.hasRecord {
		live, err := w.kube.CoreV1().ConfigMaps("n").Get(w.Context(), resources.RecordName(w.cluster), metav1.GetOptions{})
		if err != nil {
			return s, err
		}
		s.record, s.Record = live, planner.Record{State: planner.Current, Record: resources.ParseRecord(live)}
	}
	observeCertificates(w.Context(), &run{Reconciler: w.r, key: key, seen: s})
	observeClients(w.Context(), &run{Reconciler: w.r, key: key, seen: s})
	plan := planner.Decide(s.Observed)
	for _, action := range plan.Actions {
		switch action.(type) {
		case planner.IssueCA, planner.DropOldCAs, planner.IssueCertificate, planner.RequestCertificate, planner.RefreshPod,
			planner.WriteClientSecret, planner.DeleteClientSecret:
			if err := carryOut(w.Context(), &run{Reconciler: w.r, key: key, seen: s}, action); err != nil {
				return s, fmt.Errorf("%T: %w", action, err)
			}
		default: // this world has only what certificates need
		}
	}
	return s, nil
}

func (w *certWorld) request(name string) *unstructured.Unstructured {
	w.Helper()
	u, err := w.dynamic.Resource(resources.CertManagerResource).Namespace("n").Get(w.Context(), name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		w.Fatal(err)
	}
	return u
}

// sign plays the issuer: it meets the request, and the certificate is good for life.
func (w *certWorld) sign(name string, life time.Duration) {
	w.Helper()
	u := w.request(name)
	strs := func(path ...string) []string {
		list, _, err := unstructured.NestedStringSlice(u.Object, path...)
		if err != nil {
			w.Fatal(err)
		}
		return list
	}
	common, _, err := unstructured.NestedString(u.Object, "spec", "commonName")
	if err != nil {
		w.Fatal(err)
	}
	usages := strings.Join(strs("spec", "usages"), ", ")
	chain, key, err := w.issuer.Issue(certificates.Template{
		Name: common, Hosts: append(strs("spec", "dnsNames"), strs("spec", "ipAddresses")...),
		Server: strings.Contains(usages, "server auth"), Client: strings.Contains(usages, "client auth"),
	}, w.clock.Now().Add(life-certificates.LeafLife))
	if err != nil {
		w.Fatal(err)
	}
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{
		Name: name, Namespace: "n", Annotations: map[string]string{"cert-manager.io/certificate-name": name},
	}, Data: map[string][]byte{
		corev1.TLSCertKey: chain, corev1.TLSPrivateKeyKey: key, corev1.ServiceAccountRootCAKey: certificates.PEM(w.issuer.Certificate),
	}}
	secrets := w.kube.CoreV1().Secrets("n")
	_, err = secrets.Update(w.Context(), secret, metav1.UpdateOptions{})
	if apierrors.IsNotFound(err) {
		_, err = secrets.Create(w.Context(), secret, metav1.CreateOptions{})
	}
	if err != nil {
		w.Fatal(err)
	}
}

var requested = v1beta2.TLSPolicy{CertManager: &v1beta2.CertManagerTLS{IssuerRef: v1beta2.IssuerReference{Name: "ca"}}}

var requestedSecrets = []string{"c-peer-tls", "c-server-tls", "c-operator-tls", "c-client-tls"}

func states(s *seen) map[certplanner.State]int {
	counts := map[certplanner.State]int{}
	for i := range s.Certificates {
		counts[s.Certificates[i].State]++
	}
	return counts
}

func TestCertManager(t *testing.T) {
	w := newCertWorld(t, requested)
	if s := w.step(); s.CertManager.Served || len(s.CertManager.Requests) != 0 || states(s)[certplanner.Missing] != 4 {
		t.Fatalf("without cert-manager it is %+v, %v", s.CertManager, states(s))
	}
	// It is installed; that is looked for now and then, and not each time.
	w.install()
	if s := w.step(); s.CertManager.Served {
		t.Error("each reconcile looks for the API")
	}
	w.clock.SetTime(w.clock.Now().Add(kubeadapter.AbsentTTL))
	if s := w.step(); !s.CertManager.Served {
		t.Error("the API is not noticed")
	}
	for _, name := range requestedSecrets {
		if u := w.request(name); u == nil || !metav1.IsControlledBy(u, w.cluster) {
			t.Fatalf("Certificate %s is %v", name, u)
		}
	}
	for _, name := range requestedSecrets {
		w.sign(name, time.Hour)
	}
	first := w.step()
	if states(first)[certplanner.Usable] != 4 {
		t.Fatalf("the requests are not what is needed: %+v", first.Certificates)
	}

	// The issuer renews; that is seen like any change of a secret.
	w.clock.SetTime(w.clock.Now().Add(30 * time.Minute))
	w.sign("c-server-tls", time.Hour)
	if s := w.step(); s.Certificates[1].Serial == first.Certificates[1].Serial || s.Trust != first.Trust || states(s)[certplanner.Usable] != 4 {
		t.Errorf("after a renewal it is %+v", s.Certificates)
	}
}

// TestCertManagerRenewsWithAnotherCA: the CA of the issuer gets another key under the same name, and cert-manager issues one
// Secret again. The status names that cause for each certificate that is not accepted for it, and for no other.
func TestCertManagerRenewsWithAnotherCA(t *testing.T) {
	for renewed, want := range map[string][]v1beta2.CertificateUse{
		"c-operator-tls": {v1beta2.CertificateUseServer, v1beta2.CertificateUseOperator},
		"c-server-tls":   {v1beta2.CertificateUseServer, v1beta2.CertificateUseOperator, v1beta2.CertificateUseClient},
		"c-client-tls":   {v1beta2.CertificateUseClient},
	} {
		w := newCertWorld(t, requested)
		w.install()
		w.step()
		for _, name := range requestedSecrets {
			w.sign(name, time.Hour)
		}
		var err error
		if w.issuer, err = certificates.NewCA("issuer", w.clock.Now()); err != nil {
			t.Fatal(err)
		}
		w.sign(renewed, time.Hour)
		s := w.step()
		var got []v1beta2.CertificateUse
		for _, c := range s.Certificates {
			if c.OtherCA {
				got = append(got, c.Use)
			}
			if c.OtherCA != (c.State == certplanner.Unusable) {
				t.Errorf("%s was renewed: %s is of another CA: %t, %s", renewed, c.Use, c.OtherCA, c.Message)
			}
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s was renewed: of another CA are %v, want %v", renewed, got, want)
		}
	}
}

func TestCertManagerRequestIsRepaired(t *testing.T) {
	w := newCertWorld(t, requested)
	w.install()
	w.step()
	for _, name := range requestedSecrets {
		w.sign(name, time.Hour)
	}
	w.step()
	client := w.dynamic.Resource(resources.CertManagerResource).Namespace("n")
	edited := w.request("c-peer-tls")
	for path, value := range map[string]any{"commonName": "somebody", "duration": "2h"} {
		if err := unstructured.SetNestedField(edited.Object, value, "spec", path); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := client.Update(t.Context(), edited, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := client.Delete(t.Context(), "c-client-tls", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	theirs := w.request("c-server-tls")
	theirs.SetOwnerReferences(nil)
	if err := unstructured.SetNestedField(theirs.Object, "theirs", "spec", "commonName"); err != nil {
		t.Fatal(err)
	}
	if _, err := client.Update(t.Context(), theirs, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}

	w.clock.SetTime(w.clock.Now().Add(secretLife))
	s := w.step()
	if r := s.CertManager.Requests[1]; !r.Exists || r.Owned {
		t.Errorf("a Certificate that is not owned is %+v", r)
	}
	common := func(name string) string {
		value, _, err := unstructured.NestedString(w.request(name).Object, "spec", "commonName")
		if err != nil {
			t.Fatal(err)
		}
		return value
	}
	if got := common("c-peer-tls"); got != v1beta2.PeerCommonName {
		t.Errorf("the common name stays %s", got)
	}
	if duration, _, _ := unstructured.NestedString(w.request("c-peer-tls").Object, "spec", "duration"); duration != "2h" {
		t.Errorf("the user's duration is %q now", duration)
	}
	if w.request("c-client-tls") == nil {
		t.Error("the Certificate that was deleted is not there again")
	}
	if got := common("c-server-tls"); got != "theirs" {
		t.Errorf("a Certificate that is not owned was changed to %s", got)
	}
}

// TestCertManagerLeavesSecretsOfOthers: a Secret that cert-manager has not written is not given to it. A Secret that it has
// written is requested again.
func TestCertManagerLeavesSecretsOfOthers(t *testing.T) {
	w := newCertWorld(t, requested)
	w.install()
	theirs := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "c-server-tls", Namespace: "n"}, Data: map[string][]byte{"password": []byte("p")}}
	if _, err := w.kube.CoreV1().Secrets("n").Create(t.Context(), theirs, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	s := w.step()
	if w.request("c-server-tls") != nil || w.request("c-peer-tls") == nil {
		t.Error("Certificates are requested for Secrets of others only")
	}
	if !s.CertManager.Requests[1].SecretTaken || s.CertManager.Requests[0].SecretTaken {
		t.Errorf("observed %+v", s.CertManager.Requests)
	}
	if err := w.kube.CoreV1().Secrets("n").Delete(t.Context(), "c-server-tls", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	w.clock.SetTime(w.clock.Now().Add(secretLife))
	w.step()
	if w.request("c-server-tls") == nil {
		t.Error("no Certificate after the Secret was deleted")
	}
}

// A certificate that members would not take for that of a peer is not used.
func TestCertManagerIgnoresTheName(t *testing.T) {
	w := newCertWorld(t, requested)
	w.install()
	w.step()
	u := w.request("c-peer-tls")
	if err := unstructured.SetNestedField(u.Object, "other", "spec", "commonName"); err != nil {
		t.Fatal(err)
	}
	if _, err := w.dynamic.Resource(resources.CertManagerResource).Namespace("n").Update(t.Context(), u, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	for _, name := range requestedSecrets {
		w.sign(name, time.Hour)
	}
	s := w.step()
	if c := s.Certificates[0]; c.State != certplanner.Unusable || !strings.Contains(c.Message, "common name") {
		t.Errorf("the certificate of peers is %+v", c)
	}
}
