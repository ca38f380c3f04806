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
	"sync"
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
	singleRequests(t, client, urls)
}

// singleRequests sends many equal requests at the same time to both servers. Exactly one of them
// succeeds, and the others are conflicts that say what to wait for.
func singleRequests(t *testing.T, client *http.Client, urls []string) {
	t.Helper()
	const namespaced = "/apis/etcd.database.coreos.com/v1beta2/namespaces/default/"
	// Without members a backup is rejected at once, unless the server has no client certificate for them.
	const tls = `"TLS":{"static":{"operatorSecret":"none","member":{"serverSecret":"none","peerSecret":"none"}}}`
	const store = `"storageType":"PersistentVolumeClaim","persistentVolumeClaim":{"claimName":"backups","path":"a"}`
	const lost = `{"status":{"conditions":[{"type":"QuorumLost","status":"True"}],"memberStatuses":[{"name":"m","pod":"m","raftIndex":7},{"name":"n"},{"name":"o"}]}}`
	for name, body := range map[string]string{
		"backup":  `{}`,
		"restore": `{"spec":{"backup":{"name":"any"}}}`,
		"recover": `{}`,
	} {
		cluster := "single-" + name
		object := fmt.Sprintf(`{"apiVersion":"etcd.database.coreos.com/v1beta2","kind":"EtcdCluster","metadata":{"name":%q},"spec":{"size":3,"version":"3.6.16",%s,"backup":{%s}}}`, cluster, tls, store)
		if code, text := send(t, client, http.MethodPost, urls[0]+namespaced+"etcdclusters", object); code != http.StatusCreated {
			t.Fatalf("create %s: %d %s", cluster, code, text)
		}
		if name == "recover" {
			if code, text := sendAs(t, client, http.MethodPatch, urls[0]+namespaced+"etcdclusters/"+cluster+"/status", lost, "application/merge-patch+json"); code != http.StatusOK {
				t.Fatalf("write the status of %s: %d %s", cluster, code, text)
			}
		}
		if name == "restore" {
			backup := `{"apiVersion":"etcd.database.coreos.com/v1beta2","kind":"EtcdBackup","metadata":{"name":"any"},"spec":{"etcdCluster":{"name":"` + cluster + `"},` + store + `}}`
			if code, text := send(t, client, http.MethodPost, urls[0]+namespaced+"etcdbackups", backup); code != http.StatusCreated {
				t.Fatalf("create an EtcdBackup: %d %s", code, text)
			}
			const made = `{"status":{"succeeded":true,"uri":"a/b","etcdRevision":7}}`
			if code, text := sendAs(t, client, http.MethodPatch, urls[0]+namespaced+"etcdbackups/any/status", made, "application/merge-patch+json"); code != http.StatusOK {
				t.Fatalf("write the status of the EtcdBackup: %d %s", code, text)
			}
		}
		var group sync.WaitGroup
		var mu sync.Mutex
		codes := map[int]int{}
		for i := range 20 {
			group.Go(func() {
				code, text := send(t, client, http.MethodPost, urls[i%len(urls)]+namespaced+"etcdclusters/"+cluster+"/"+name, body)
				mu.Lock()
				defer mu.Unlock()
				codes[code]++
				if code != http.StatusCreated && code != http.StatusConflict {
					t.Errorf("%s: %d %s", name, code, text)
				}
			})
		}
		group.Wait()
		if codes[http.StatusCreated] != 1 {
			t.Errorf("%s: %v, want one %d", name, codes, http.StatusCreated)
		}
	}
}

// send sends a request as the front proxy does for an administrator.
func send(t *testing.T, client *http.Client, method, url, body string) (int, string) {
	t.Helper()
	return sendAs(t, client, method, url, body, "application/json")
}

func sendAs(t *testing.T, client *http.Client, method, url, body, contentType string) (int, string) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("X-Remote-User", "admin")
	request.Header.Set("X-Remote-Group", "system:masters")
	request.Header.Set("Content-Type", contentType)
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
