// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net/http"
	"strings"
	"syscall"
	"testing"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/test/servers"
)

// TestReplicas runs two servers on one etcd elsewhere. They show the same certificate, and
// each returns what the other has stored.
func TestReplicas(t *testing.T) {
	t.Parallel()
	var urls []string
	var shown [][]byte
	client := transportFor(t, keyPair(t, env.pki.ProxyClient))
	for i := range 2 {
		port, err := servers.FreePort()
		if err != nil {
			t.Fatal(err)
		}
		replica, err := env.launch(fmt.Sprintf("replica-%d", i), port,
			"--etcd-servers="+env.kubeEtcd.endpoint, "--etcd-prefix=/replicas", "--allow-empty-storage")
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := replica.Stop(syscall.SIGTERM, testPatience); err != nil {
				t.Error(err)
			}
		})
		url := fmt.Sprintf("https://127.0.0.1:%d", port)
		ctx, cancel := context.WithTimeout(t.Context(), testPatience)
		defer cancel()
		if err := replica.WaitReady(ctx, url+"/readyz", env.serverTrust); err != nil {
			t.Fatal(err)
		}
		urls, shown = append(urls, url), append(shown, certificateOf(t, url))
	}
	if !bytes.Equal(shown[0], shown[1]) || !bytes.Equal(shown[0], certificateOf(t, env.serverURL())) {
		t.Error("the servers show different certificates")
	}

	clusters := "/apis/" + v1beta2.SchemeGroupVersion.String() + "/namespaces/default/etcdclusters"
	body := `{"apiVersion":"etcd.database.coreos.com/v1beta2","kind":"EtcdCluster","metadata":{"name":"a"},"spec":{"size":3,"version":"3.6.16"}}`
	if code, text := send(t, client, http.MethodPost, urls[0]+clusters, body); code != http.StatusCreated {
		t.Fatalf("create: %d %s", code, text)
	}
	if code, text := send(t, client, http.MethodGet, urls[1]+clusters+"/a", ""); code != http.StatusOK {
		t.Errorf("get from the other: %d %s", code, text)
	}
	if code, text := send(t, client, http.MethodGet, urls[1]+clusters, ""); code != http.StatusOK || !strings.Contains(text, `"name":"a"`) {
		t.Errorf("list from the other: %d %s", code, text)
	}
}

// send sends a request as the front proxy does for an administrator.
func send(t *testing.T, client *http.Client, method, url, body string) (int, string) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("X-Remote-User", "admin")
	request.Header.Set("Content-Type", "application/json")
	response, err := client.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response.StatusCode, string(text)
}

// certificateOf returns the certificate that a server shows.
func certificateOf(t *testing.T, url string) []byte {
	t.Helper()
	trust, err := env.serverTrust(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(trust)
	dialer := tls.Dialer{Config: &tls.Config{RootCAs: pool, ServerName: serviceName + "." + namespace + ".svc"}}
	connection, err := dialer.DialContext(t.Context(), "tcp", strings.TrimPrefix(url, "https://"))
	if err != nil {
		t.Fatal(err)
	}
	defer connection.Close()
	return connection.(*tls.Conn).ConnectionState().PeerCertificates[0].Raw
}
