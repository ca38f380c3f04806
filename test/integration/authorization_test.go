// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net/http"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/generated/clientset/versioned"
	"github.com/etcd-operator/etcd-operator/test/servers"
)

// userClient returns a client of a user without any group.
func userClient(t *testing.T, user string) versioned.Interface {
	t.Helper()
	config, err := env.configFor(user)
	if err != nil {
		t.Fatal(err)
	}
	config.WarningHandler = rest.NoWarnings{}
	client, err := versioned.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	return client
}

// TestThousandNames reads a thousand objects as a user to which only RBAC grants this. A
// server that sends one access review for each name is held at 200 a second by its client.
func TestThousandNames(t *testing.T) {
	const names, workers = 1000, 8
	namespace := newNamespace(t)
	grant(t, namespace, "reader", "get")
	var creates errgroup.Group
	creates.SetLimit(workers)
	for i := range names {
		creates.Go(func() error {
			_, err := clustersIn(namespace).Create(t.Context(), newCluster(fmt.Sprintf("c-%04d", i)), metav1.CreateOptions{})
			return err
		})
	}
	if err := creates.Wait(); err != nil {
		t.Fatal(err)
	}
	client := userClient(t, "reader").EtcdV1beta2().EtcdClusters(namespace)
	if _, err := client.Get(t.Context(), "c-0000", metav1.GetOptions{}); err != nil {
		t.Fatal(err)
	}

	begun := time.Now()
	var reads errgroup.Group
	reads.SetLimit(workers)
	for i := range names {
		reads.Go(func() error {
			_, err := client.Get(t.Context(), fmt.Sprintf("c-%04d", i), metav1.GetOptions{})
			return err
		})
	}
	if err := reads.Wait(); err != nil {
		t.Fatal(err)
	}
	took := time.Since(begun)
	t.Logf("%d reads of distinct names through the aggregator in %s: %.0f/s", names, took.Round(time.Millisecond), names/took.Seconds())
	// Only this test uses the name of the user, so requests of other tests do not count.
	if asked := accessReviews(t, namespace, "reader"); asked != 0 {
		t.Errorf("the kube-apiserver received %d access reviews, want 0", asked)
	}
	if err := clustersIn(namespace).DeleteCollection(t.Context(), metav1.DeleteOptions{}, metav1.ListOptions{}); err != nil {
		t.Error(err)
	}
}

// TestAskedTwiceOnRequest turns the second question back on.
func TestAskedTwiceOnRequest(t *testing.T) {
	namespace := newNamespace(t)
	create(t, namespace, newCluster("a"))
	grant(t, namespace, "twice", "get")
	client := userClient(t, "twice").EtcdV1beta2().EtcdClusters(namespace)
	restart(t, syscall.SIGKILL, "--authorize-front-proxy-requests")
	defer restart(t, syscall.SIGKILL)
	if _, err := client.Get(t.Context(), "a", metav1.GetOptions{}); err != nil {
		t.Fatal(err)
	}
	askedOnce(t, namespace, "twice")
}

// TestDirectRequestsAreAsked checks that the kube-apiserver also authorizes requests that do not
// come through it.
func TestDirectRequestsAreAsked(t *testing.T) {
	namespace := newNamespace(t)
	create(t, namespace, newCluster("a"))
	grant(t, namespace, "direct", "get")
	allowed := directClient(t, "direct")
	if code := directGet(t, allowed, namespace, "a", nil); code != http.StatusOK {
		t.Errorf("status %d, want 200", code)
	}
	askedOnce(t, namespace, "direct")
	if code := directGet(t, directClient(t, "user-without-rights"), namespace, "a", nil); code != http.StatusForbidden {
		t.Errorf("status %d, want 403", code)
	}
}

func TestUserWithoutRight(t *testing.T) {
	t.Parallel()
	namespace := newNamespace(t)
	create(t, namespace, newCluster("a"))
	client := userClient(t, "outsider").EtcdV1beta2().EtcdClusters(namespace)
	if _, err := client.Get(t.Context(), "a", metav1.GetOptions{}); !apierrors.IsForbidden(err) {
		t.Errorf("got %v, want forbidden", err)
	}
	grant(t, namespace, "half", "get", "patch")
	half := userClient(t, "half").EtcdV1beta2().EtcdClusters(namespace)
	if _, err := half.List(t.Context(), metav1.ListOptions{}); !apierrors.IsForbidden(err) {
		t.Errorf("list with a right to get: got %v, want forbidden", err)
	}
	// An apply of what does not exist is a create, about which the kube-apiserver was
	// not asked when it let the patch pass.
	_, err := half.Patch(t.Context(), "new", "application/apply-patch+yaml",
		[]byte(`{"apiVersion":"etcd.database.coreos.com/v1beta2","kind":"EtcdCluster","metadata":{"name":"new"},"spec":{"size":3,"version":"3.6.16"}}`),
		metav1.PatchOptions{FieldManager: "half"})
	if !apierrors.IsForbidden(err) {
		t.Errorf("create by apply with a right to patch: got %v, want forbidden", err)
	}
}

func TestRevokedRight(t *testing.T) {
	t.Parallel()
	namespace := newNamespace(t)
	create(t, namespace, newCluster("a"))
	grant(t, namespace, "former", "get")
	client := userClient(t, "former").EtcdV1beta2().EtcdClusters(namespace)
	direct := directClient(t, "former")
	eventually(t, func(ctx context.Context) error {
		_, err := client.Get(ctx, "a", metav1.GetOptions{})
		return err
	})
	if code := directGet(t, direct, namespace, "a", nil); code != http.StatusOK {
		t.Errorf("direct: status %d, want 200", code)
	}
	if err := env.client.RbacV1().RoleBindings(namespace).Delete(t.Context(), "former", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	begun := time.Now()
	eventually(t, func(ctx context.Context) error {
		if _, err := client.Get(ctx, "a", metav1.GetOptions{}); !apierrors.IsForbidden(err) {
			return errorf("got %v, want forbidden", err)
		}
		return nil
	})
	t.Logf("through the aggregator the right stopped after %s", time.Since(begun).Round(time.Millisecond))
	eventually(t, func(context.Context) error {
		if code := directGet(t, direct, namespace, "a", nil); code != http.StatusForbidden {
			return errorf("direct: status %d, want 403", code)
		}
		return nil
	})
	t.Logf("directly the right stopped after %s", time.Since(begun).Round(time.Millisecond))
}

// TestForgedHeaders sends the proxy's headers without being the proxy.
func TestForgedHeaders(t *testing.T) {
	t.Parallel()
	namespace := newNamespace(t)
	create(t, namespace, newCluster("a"))
	forged := map[string]string{"X-Remote-User": "admin", "X-Remote-Group": "system:masters"}

	otherCA, err := servers.NewCA(t.TempDir(), "other-ca")
	if err != nil {
		t.Fatal(err)
	}
	shown := func(ca *servers.CA, name string) *tls.Certificate {
		issued, err := ca.Issue(t.TempDir(), "client", name)
		if err != nil {
			t.Fatal(err)
		}
		return keyPair(t, issued)
	}
	for _, test := range []struct {
		name        string
		certificate *tls.Certificate
		want        int
	}{
		{"no certificate", nil, http.StatusForbidden},
		{"a user's certificate", shown(env.pki.Client, "mallory"), http.StatusForbidden},
		{"user with the common name of the proxy is forbidden", shown(env.pki.Client, "front-proxy-client"), http.StatusForbidden},
		{"the proxy's CA, another name", shown(env.pki.Proxy, "someone-else"), http.StatusUnauthorized},
		{"the proxy's name, another CA", shown(otherCA, "front-proxy-client"), http.StatusUnauthorized},
		{"the proxy itself", keyPair(t, env.pki.ProxyClient), http.StatusOK},
	} {
		if code := directGet(t, transportFor(t, test.certificate), namespace, "a", forged); code != test.want {
			t.Errorf("%s: status %d, want %d", test.name, code, test.want)
		}
	}
}

func keyPair(t *testing.T, issued *servers.Pair) *tls.Certificate {
	t.Helper()
	loaded, err := tls.X509KeyPair(issued.Cert, issued.Key)
	if err != nil {
		t.Fatal(err)
	}
	return &loaded
}

// transportFor returns a client of our server itself, which verifies it.
func transportFor(t *testing.T, certificate *tls.Certificate) *http.Client {
	t.Helper()
	trust, err := env.serverTrust(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(trust)
	config := &tls.Config{RootCAs: pool, ServerName: serviceName + "." + namespace + ".svc"}
	if certificate != nil {
		// Shown even where the server does not request a certificate of this CA.
		config.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return certificate, nil }
	}
	transport := &http.Transport{TLSClientConfig: config, ForceAttemptHTTP2: true}
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport, Timeout: testPatience}
}

func directClient(t *testing.T, user string) *http.Client {
	t.Helper()
	config, err := env.configFor(user)
	if err != nil {
		t.Fatal(err)
	}
	return transportFor(t, keyPair(t, &servers.Pair{Cert: config.CertData, Key: config.KeyData}))
}

func directGet(t *testing.T, client *http.Client, namespace, name string, headers map[string]string) int {
	t.Helper()
	url := fmt.Sprintf("%s/apis/%s/namespaces/%s/etcdclusters/%s", env.serverURL(), v1beta2.SchemeGroupVersion, namespace, name)
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	for header, value := range headers {
		request.Header.Set(header, value)
	}
	response, err := client.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	if _, err := io.Copy(io.Discard, response.Body); err != nil {
		t.Fatal(err)
	}
	return response.StatusCode
}
