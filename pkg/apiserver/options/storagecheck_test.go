// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package options

import (
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/apiserver/pkg/server/egressselector"
	"k8s.io/apiserver/pkg/storage/storagebackend"
	"k8s.io/client-go/kubernetes/fake"
	kubetesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/apiserver/embeddedetcd"
	"github.com/etcd-operator/etcd-operator/pkg/resources"
)

// TestEmptyStorageIsRejectedWhileMembersExist checks that a server does not start with an empty
// storage while members of EtcdClusters exist.
func TestEmptyStorageIsRejectedWhileMembersExist(t *testing.T) {
	t.Parallel()
	cluster := &v1beta2.EtcdCluster{ObjectMeta: metav1.ObjectMeta{Name: "a", Namespace: "n", UID: "u"}}
	member := func(edit func(*metav1.ObjectMeta)) metav1.ObjectMeta {
		meta := metav1.ObjectMeta{
			Name: "a-x", Namespace: "n", Labels: resources.Labels("a"),
			OwnerReferences: []metav1.OwnerReference{resources.Owner(cluster)},
		}
		edit(&meta)
		return meta
	}
	as := func(*metav1.ObjectMeta) {}
	for name, test := range map[string]struct {
		there runtime.Object
		named string
	}{
		"storage is new without pods and PVCs": {&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "n"}}, ""},
		"pod of a member means a lost storage": {&corev1.Pod{ObjectMeta: member(as)}, "pod n/a-x"},
		"PVC of a member means a lost storage": {&corev1.PersistentVolumeClaim{ObjectMeta: member(as)}, "persistentvolumeclaim n/a-x"},
		"PVC without an owner is ignored":      {&corev1.PersistentVolumeClaim{ObjectMeta: member(func(m *metav1.ObjectMeta) { m.OwnerReferences = nil })}, ""},
		"PVC of a hibernated cluster means a lost storage": {&corev1.PersistentVolumeClaim{ObjectMeta: member(func(m *metav1.ObjectMeta) {
			m.OwnerReferences, m.Annotations = nil, map[string]string{resources.AnnotationClusterUID: "u"}
		})}, "persistentvolumeclaim n/a-x"},
		"PVC that stayed when its cluster was deleted is ignored": {&corev1.PersistentVolumeClaim{ObjectMeta: member(func(m *metav1.ObjectMeta) {
			m.OwnerReferences, m.Annotations = nil, map[string]string{resources.AnnotationClusterUID: "u", resources.AnnotationRetained: "kept"}
		})}, ""},
		"PVC of another owner is ignored": {&corev1.PersistentVolumeClaim{ObjectMeta: member(func(m *metav1.ObjectMeta) {
			m.OwnerReferences[0].Kind, m.Annotations = "Other", map[string]string{resources.AnnotationClusterUID: "u"}
		})}, ""},
		"pod of another API group is ignored":             {&corev1.Pod{ObjectMeta: member(func(m *metav1.ObjectMeta) { m.OwnerReferences[0].APIVersion = "apps/v1" })}, ""},
		"pod of another kind is ignored":                  {&corev1.Pod{ObjectMeta: member(func(m *metav1.ObjectMeta) { m.OwnerReferences[0].Kind = "Other" })}, ""},
		"pod of another API version means a lost storage": {&corev1.Pod{ObjectMeta: member(func(m *metav1.ObjectMeta) { m.OwnerReferences[0].APIVersion = v1beta2.SchemeGroupVersion.Group + "/v2" })}, "pod n/a-x"},
		"pod without the label is ignored":                {&corev1.Pod{ObjectMeta: member(func(m *metav1.ObjectMeta) { m.Labels = nil })}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			err := checkNoMembers(t.Context(), fake.NewClientset(test.there), time.Millisecond, time.Second)
			switch {
			case test.named == "" && err != nil:
				t.Errorf("refused: %v", err)
			case test.named != "" && (!errors.Is(err, ErrStorageLost) || !strings.Contains(err.Error(), test.named)):
				t.Errorf("want a rejection because of %s, got %v", test.named, err)
			}
		})
	}
}

// TestMemberLookupIsRetried checks that a failed lookup is not treated as no members.
func TestMemberLookupIsRetried(t *testing.T) {
	t.Parallel()
	kube := fake.NewClientset()
	asked := 0
	kube.PrependReactor("list", "persistentvolumeclaims", func(kubetesting.Action) (bool, runtime.Object, error) {
		asked++
		return asked <= 2, nil, apierrors.NewForbidden(corev1.Resource("persistentvolumeclaims"), "", errors.New("not yet"))
	})
	if err := checkNoMembers(t.Context(), kube, time.Millisecond, time.Minute); err != nil || asked != 3 {
		t.Errorf("asked %d times: %v", asked, err)
	}
	kube.PrependReactor("list", "pods", func(kubetesting.Action) (bool, runtime.Object, error) {
		return true, nil, apierrors.NewForbidden(corev1.Resource("pods"), "", errors.New("never"))
	})
	if err := checkNoMembers(t.Context(), kube, 10*time.Millisecond, time.Second); !apierrors.IsForbidden(err) {
		t.Errorf("without a response: %v", err)
	}
}

// TestUsedStorageIsRecognized checks that a storage counts as used if it has the key that its first server has written.
// Objects alone prove nothing: a GitOps tool creates some as soon as a storage that was emptied is served.
func TestUsedStorageIsRecognized(t *testing.T) {
	t.Parallel()
	etcd, err := embeddedetcd.Start(t.Context(), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(etcd.Stop)
	o, err := New()
	if err != nil {
		t.Fatal(err)
	}
	o.Recommended.Etcd.StorageConfig.Transport.ServerList = []string{etcd.Endpoint()}
	o.Recommended.Etcd.StorageConfig.Prefix = "objects" // a flag may leave the slash out
	// Every lookup of members fails, so a check that needs one fails.
	o.Recommended.CoreAPI.CoreAPIKubeconfigPath = unreachable(t)
	client, err := storageClient(o.Recommended.Etcd.StorageConfig.Transport)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { client.Close() })
	// A check that passes returns at once. A check that looks for members fails.
	pass := func(what string) {
		if err := o.checkStorage(t.Context(), client); err != nil {
			t.Errorf("%s: %v", what, err)
		}
	}
	fail := func(what string) {
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
		defer cancel()
		if o.checkStorage(ctx, client) == nil {
			t.Error(what)
		}
	}
	put := func(key string) {
		if _, err := client.Put(t.Context(), key, "x"); err != nil {
			t.Fatal(err)
		}
	}
	put("/objectsofothers/a")
	fail("a storage without objects was taken without asking")
	put("/objects/etcdclusters/ns/a")
	fail("a storage with objects that no server has used was taken without asking")
	put("/objects/begun")
	if _, err := client.Delete(t.Context(), "/objects/etcdclusters/ns/a"); err != nil {
		t.Fatal(err)
	}
	pass("a storage whose objects were deleted was not recognised")
	o.Recommended.Etcd.StorageConfig.Prefix = "/another"
	fail("another prefix was taken for the same")
	o.AllowEmptyStorage = true
	pass("rejected although it is allowed")
	o.AllowEmptyStorage = false
	pass("what was allowed was not noted")
}

// unreachable is the configuration of a client for a Kubernetes that is not there.
func unreachable(t *testing.T) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "kubeconfig")
	err := clientcmd.WriteToFile(clientcmdapi.Config{
		Clusters:       map[string]*clientcmdapi.Cluster{"none": {Server: "https://127.0.0.1:1"}},
		Contexts:       map[string]*clientcmdapi.Context{"none": {Cluster: "none"}},
		CurrentContext: "none",
	}, file)
	if err != nil {
		t.Fatal(err)
	}
	return file
}

// TestStorageCheckUsesTheEgressSelector checks that the check connects as the server does.
func TestStorageCheckUsesTheEgressSelector(t *testing.T) {
	t.Parallel()
	storage, err := embeddedetcd.Start(t.Context(), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(storage.Stop)
	dialed := make(chan string, 100)
	selector := egressselector.NewEgressSelectorWithMap(map[egressselector.EgressType]utilnet.DialFunc{
		egressselector.Etcd: func(ctx context.Context, network, address string) (net.Conn, error) {
			dialed <- network + " " + address
			return (&net.Dialer{}).DialContext(ctx, "unix", strings.TrimPrefix(storage.Endpoint(), "unix://"))
		},
	})
	client, err := storageClient(storagebackend.TransportConfig{ServerList: []string{"http://etcd.invalid:2379"}, EgressLookup: selector.Lookup})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { client.Close() })
	if inUse, err := parse(t).isStorageInUse(t.Context(), client); err != nil || inUse {
		t.Errorf("used %t, %v", inUse, err)
	}
	if got := <-dialed; got != "tcp etcd.invalid:2379" {
		t.Errorf("dialed %s", got)
	}
}

// TestStorageIsConnectedToAgain: a storage that was away for long is connected to within seconds after it is back. Until
// then no response is confirmed.
func TestStorageIsConnectedToAgain(t *testing.T) {
	t.Parallel()
	dialed := make(chan struct{}, 1000)
	selector := egressselector.NewEgressSelectorWithMap(map[egressselector.EgressType]utilnet.DialFunc{
		egressselector.Etcd: func(context.Context, string, string) (net.Conn, error) {
			dialed <- struct{}{}
			return nil, errors.New("refused")
		},
	})
	client, err := storageClient(storagebackend.TransportConfig{ServerList: []string{"http://etcd.invalid:2379"}, EgressLookup: selector.Lookup})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { client.Close() })
	ctx, cancel := context.WithTimeout(t.Context(), 15*time.Second) // some 3 s. The default of gRPC takes 26 s
	defer cancel()
	go func() { _, _ = client.Get(ctx, "a") }()
	for attempt := range 7 {
		select {
		case <-dialed:
		case <-ctx.Done():
			t.Fatalf("only %d attempts", attempt)
		}
	}
}

// TestStorageTransport checks that the check reads the file of the egress selector.
func TestStorageTransport(t *testing.T) {
	t.Parallel()
	without, err := parse(t, "--etcd-servers=http://127.0.0.1:2379").storageTransport()
	if err != nil {
		t.Fatal(err)
	}
	if without.EgressLookup != nil {
		t.Error("without a file there is another way")
	}
	file := filepath.Join(t.TempDir(), "egress.yaml")
	const direct = "apiVersion: apiserver.k8s.io/v1beta1\nkind: EgressSelectorConfiguration\negressSelections: [{name: etcd, connection: {proxyProtocol: Direct}}]\n"
	if err := os.WriteFile(file, []byte(direct), 0o600); err != nil {
		t.Fatal(err)
	}
	with, err := parse(t, "--etcd-servers=http://127.0.0.1:2379", "--egress-selector-config-file="+file).storageTransport()
	if err != nil || with.EgressLookup == nil {
		t.Errorf("the file has no effect: %v", err)
	}
	if _, err := parse(t, "--etcd-servers=http://127.0.0.1:2379", "--egress-selector-config-file=/nosuch").storageTransport(); err == nil {
		t.Error("a file that is not there is no error")
	}
}
