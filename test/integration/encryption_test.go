// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"bytes"
	"context"
	"encoding/base64"
	"fmt"
	"net/http"
	"os"
	"path"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/test/servers"
)

const canary = "canary-7f3a"

// encrypted is an API server with a storage of its own, whose bytes the test reads.
type encrypted struct {
	*testing.T
	server *servers.Process
	port   int
	config string
	prefix string
	etcd   *clientv3.Client
}

// key is an entry of an EncryptionConfiguration: the provider, and the name of its one key.
type key struct{ provider, name string }

// TestEncryptionAtRest stores objects without encryption, with a key, and with its successor. What
// is stored shows no value, and each object stays readable until the last key that encrypts it is lost.
func TestEncryptionAtRest(t *testing.T) {
	t.Parallel()
	e := newEncrypted(t)
	identity := key{provider: "identity"}
	first, second := key{"aescbc", "first"}, key{"secretbox", "second"}

	e.start(identity)
	e.create("etcdclusters", "before", `"size":3,"version":"3.6.16"`)
	e.stored("", "before")

	e.start(first, identity)
	e.create("etcdclusters", "after", `"size":3,"version":"3.6.16"`)
	e.create("etcdbackups", "backup", `"etcdCluster":{"name":"after"},"storageType":"PersistentVolumeClaim","persistentVolumeClaim":{"claimName":"backups"}`)
	e.create("etcdrestores", "restore", `"etcdCluster":{"name":"after"},"backup":{"name":"backup"}`)
	e.stored("", "before")
	e.stored("k8s:enc:aescbc:v1:first:", "after", "backup", "restore")
	e.readable()
	e.rewrite()
	e.stored("k8s:enc:aescbc:v1:first:", "before", "after", "backup", "restore")

	e.start(second, first)
	e.readable()
	e.stored("k8s:enc:aescbc:v1:first:", "before", "after", "backup", "restore")
	e.rewrite()
	e.stored("k8s:enc:secretbox:v1:second:", "before", "after", "backup", "restore")

	e.start(second)
	e.readable()
	e.launch(key{"secretbox", "another"})
	eventually(t, func(context.Context) error {
		if log := e.server.Tail(); !strings.Contains(log, "no matching key was found") {
			return errorf("without the key the log says nothing of it: %s", log)
		}
		return nil
	})
	e.start(second)
	e.readable()
}

func newEncrypted(t *testing.T) *encrypted {
	t.Helper()
	e := &encrypted{T: t, config: filepath.Join(t.TempDir(), "config.yaml"), prefix: "/encrypted"}
	var err error
	if e.port, err = servers.FreePort(); err != nil {
		t.Fatal(err)
	}
	if e.etcd, err = clientv3.New(clientv3.Config{Endpoints: []string{env.kubeEtcd.endpoint}, Logger: zap.NewNop()}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := e.etcd.Close(); err != nil {
			t.Error(err)
		}
		if err := e.server.Stop(syscall.SIGTERM, testPatience); err != nil {
			t.Error(err)
		}
	})
	return e
}

// start starts the server again with keys, and waits until it is ready. The first key encrypts.
func (e *encrypted) start(keys ...key) {
	e.Helper()
	e.launch(keys...)
	ctx, cancel := context.WithTimeout(e.Context(), testPatience)
	defer cancel()
	if err := e.server.WaitReady(ctx, e.url()+"/readyz", env.serverTrust); err != nil {
		e.Fatal(err)
	}
}

// launch starts the server again.
func (e *encrypted) launch(keys ...key) {
	e.Helper()
	if err := e.server.Stop(syscall.SIGTERM, testPatience); err != nil {
		e.Fatal(err)
	}
	config := "apiVersion: apiserver.config.k8s.io/v1\nkind: EncryptionConfiguration\nresources:\n" +
		"- resources: ['*." + v1beta2.SchemeGroupVersion.Group + "']\n  providers:\n"
	for _, k := range keys {
		if k.provider == "identity" {
			config += "  - identity: {}\n"
			continue
		}
		secret := base64.StdEncoding.EncodeToString([]byte(fmt.Sprintf("%-32s", k.name)))
		config += fmt.Sprintf("  - %s: {keys: [{name: %s, secret: %s}]}\n", k.provider, k.name, secret)
	}
	if err := os.WriteFile(e.config, []byte(config), 0o600); err != nil {
		e.Fatal(err)
	}
	var err error
	e.server, err = env.launch("encrypted", e.port, "--etcd-servers="+env.kubeEtcd.endpoint, "--etcd-prefix="+e.prefix,
		"--allow-empty-storage", "--encryption-provider-config="+e.config)
	if err != nil {
		e.Fatal(err)
	}
}

func (e *encrypted) url() string { return fmt.Sprintf("https://127.0.0.1:%d", e.port) }

func (e *encrypted) list(resource string) string {
	return fmt.Sprintf("%s/apis/%s/namespaces/default/%s", e.url(), v1beta2.SchemeGroupVersion, resource)
}

func (e *encrypted) get(resource, name string) (int, string) {
	e.Helper()
	return send(e.T, transportFor(e.T, keyPair(e.T, env.pki.ProxyClient)), http.MethodGet, e.list(resource)+"/"+name, "")
}

func (e *encrypted) create(resource, name, spec string) {
	e.Helper()
	body := fmt.Sprintf(`{"metadata":{"name":%q,"annotations":{"example.com/secret":%q}},"spec":{%s}}`, name, canary, spec)
	client := transportFor(e.T, keyPair(e.T, env.pki.ProxyClient))
	if code, text := send(e.T, client, http.MethodPost, e.list(resource), body); code != http.StatusCreated {
		e.Fatalf("create %s: %d %s", name, code, text)
	}
}

// encryptedObjects are the three kinds, with the names that the test creates.
var encryptedObjects = map[string]string{
	"before": "etcdclusters", "after": "etcdclusters", "backup": "etcdbackups", "restore": "etcdrestores",
}

// readable reads all objects.
func (e *encrypted) readable() {
	e.Helper()
	for name, resource := range encryptedObjects {
		eventually(e.T, func(context.Context) error {
			if code, text := e.get(resource, name); code != http.StatusOK || !strings.Contains(text, canary) {
				return errorf("get %s %s: status %d: %s", resource, name, code, text)
			}
			return nil
		})
	}
}

// rewrite stores each object again without a change, as kubectl replace does.
func (e *encrypted) rewrite() {
	e.Helper()
	client := transportFor(e.T, keyPair(e.T, env.pki.ProxyClient))
	for name, resource := range encryptedObjects {
		_, object := e.get(resource, name)
		if code, text := send(e.T, client, http.MethodPut, e.list(resource)+"/"+name+"?fieldManager=kubectl-replace", object); code != http.StatusOK {
			e.Fatalf("replace %s: status %d: %s", name, code, text)
		}
	}
}

// stored checks what etcd stores of the objects: the prefix of the provider, and nothing of the
// objects behind it. Without encryption it finds what the test looks for.
func (e *encrypted) stored(want string, names ...string) {
	e.Helper()
	response, err := e.etcd.Get(e.Context(), e.prefix+"/", clientv3.WithPrefix())
	if err != nil {
		e.Fatal(err)
	}
	values := map[string][]byte{}
	for _, pair := range response.Kvs {
		values[path.Base(string(pair.Key))] = pair.Value
	}
	for _, name := range names {
		value := values[name]
		if encrypts := want != ""; len(value) == 0 || !bytes.HasPrefix(value, []byte(want)) || bytes.Contains(value, []byte(canary)) == encrypts {
			e.Errorf("%s is stored as %.60q of %d bytes, want the prefix %q", name, value, len(value), want)
		}
	}
}
