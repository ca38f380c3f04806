// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"encoding/base64"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/etcd-operator/etcd-operator/pkg/agent"
	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/objectstore"
	"github.com/etcd-operator/etcd-operator/pkg/objectstore/file"
	"github.com/etcd-operator/etcd-operator/pkg/snapshot"
	"github.com/etcd-operator/etcd-operator/test/harness"
)

// storeBucket is the bucket, container or PVC that every store has.
const storeBucket = "backups"

// loadStoreImages brings the images of the servers to the nodes, once.
var loadStoreImages = sync.OnceValue(func() error {
	out, err := exec.CommandContext(context.Background(), filepath.Join(env.Root, "hack", "object-stores.sh"), "--image").CombinedOutput()
	if err != nil {
		return fmt.Errorf("hack/object-stores.sh: %w: %s", err, out)
	}
	return nil
})

// storeKind is a kind of store, and the server that speaks its protocol in a pod.
type storeKind struct {
	kind v1beta2.BackupStorageType
	// secure has the server's certificate made, for the secrets store-tls and store-ca.
	secure bool
	// containers of the pod, and the port that clients use.
	containers string
	port       int
	// source is the field of a manifest: with the path, and the name of the secret.
	source string
	// secret returns the entries of a secret with this key.
	secret func(key string) map[string]string
	// open opens the bucket at an endpoint with the entries of a secret in a directory;
	// makeBucket makes one.
	open       func(ctx context.Context, endpoint, credentials string, transport *http.Transport) (objectstore.Store, error)
	makeBucket func(ctx context.Context, endpoint, bucket string, transport *http.Transport) error
	// checksKeys is true for a server that rejects a wrong key.
	checksKeys bool
}

// store is one that runs in the namespace of a test.
type store struct {
	*scenario
	storeKind

	// endpoint and transport lead to the server from this machine.
	endpoint  string
	transport *http.Transport
	// objects is what is stored, as this machine sees it; of a volume from when it was
	// looked at first, in dir.
	objects objectstore.Store
	dir     string
	// newBucket makes another bucket; nil where there are none.
	newBucket func(name string)
}

// eachStore runs a test against every kind of store.
func eachStore(t *testing.T, test func(*store)) {
	for _, kind := range storeKinds() {
		t.Run(string(kind.kind), func(t *testing.T) {
			t.Parallel()
			s := start(t)
			if kind.kind == v1beta2.BackupStorageTypePersistentVolumeClaim {
				s.volume()
				test(&store{scenario: s, storeKind: kind})
				return
			}
			test(s.store(kind))
		})
	}
}

const storePod = `apiVersion: v1
kind: Pod
metadata:
  name: store
  labels: {name: store}
spec:
  automountServiceAccountToken: false
  terminationGracePeriodSeconds: 0
  securityContext: {runAsNonRoot: true, runAsUser: 65532, fsGroup: 65532, seccompProfile: {type: RuntimeDefault}}
  containers:%s
  volumes: [{name: data, emptyDir: {}}, {name: meta, emptyDir: {}}, {name: tls, secret: {secretName: store-tls, optional: true}}]
---
apiVersion: v1
kind: Service
metadata:
  name: store
spec:
  selector: {name: store}
  ports: [{port: %d}]
`

// store runs the server of a kind; its key is the canary. Secret "store" has the right key,
// and Secret "store-wrong" a wrong key.
func (s *scenario) store(kind storeKind) *store {
	s.Helper()
	env.RequireLocal(s, harness.ObjectStore)
	s.must(loadStoreImages(), "bring the images of the servers")
	right := kind.secret(canary)
	for name, entries := range map[string]map[string]string{"store": right, "store-wrong": kind.secret(canary + "-wrong")} {
		args := []string{"create", "secret", "generic", name}
		for _, entry := range slices.Sorted(maps.Keys(entries)) {
			args = append(args, "--from-literal="+entry+"="+entries[entry])
		}
		s.kubectl(args...)
	}
	s.kubectl("create", "secret", "generic", "root", "--from-literal=key="+canary, "--from-literal=account=backups:"+base64.StdEncoding.EncodeToString([]byte(canary)))
	scheme := "http"
	if kind.secure {
		scheme = "https"
		s.storeCertificate()
	}
	s.apply(fmt.Sprintf(storePod, kind.containers, kind.port))
	view, err := env.Pod(s.ctx(), s.namespace, "store")
	s.must(err, "watch the store")
	defer view.Close()
	s.must(view.Await(s.ctx(), harness.AllReady(1)), "the store to be ready")

	endpoint := scheme + "://" + net.JoinHostPort(view.List()[0].Status.PodIP, strconv.Itoa(kind.port))
	// This machine goes to the address of the pod, which is not in the certificate.
	transport, err := objectstore.NewTransport(objectstore.TransportConfig{Stall: time.Minute, InsecureSkipVerify: true})
	s.must(err, "make a transport")
	s.Cleanup(transport.CloseIdleConnections)
	credentials := s.TempDir()
	for entry, value := range right {
		s.must(os.WriteFile(filepath.Join(credentials, entry), []byte(value), 0o600), "write an entry")
	}
	objects, err := kind.open(s.ctx(), endpoint, credentials, transport)
	s.must(err, "open the store")
	made := &store{scenario: s, storeKind: kind, endpoint: endpoint, transport: transport, objects: objects, newBucket: func(name string) {
		s.must(kind.makeBucket(s.ctx(), endpoint, name, transport), "make bucket %s", name)
	}}
	made.newBucket(storeBucket)
	return made
}

// storeCertificate makes the certificate of the server for its name in the cluster.
func (s *scenario) storeCertificate() {
	s.Helper()
	ca, err := harness.NewCA("stores")
	s.must(err, "make a CA")
	certificate, key, err := ca.Issue(harness.Request{Name: "store", Hosts: []string{"store"}})
	s.must(err, "issue a certificate")
	s.kubectl("create", "secret", "generic", "store-tls", "--from-literal=tls.crt="+string(certificate), "--from-literal=tls.key="+string(key))
	s.kubectl("create", "secret", "generic", "store-ca", "--from-literal=ca.crt="+string(ca.PEM))
}

// at returns what stands in a manifest for a place in the store, below the storage type.
func (s *store) at(path, secret string) string { return fmt.Sprintf(s.source, path, secret) }

// backup returns an EtcdBackup of a cluster to a key of the store.
func (s *store) backup(name, cluster, more string) string {
	return backupManifest(name, fmt.Sprintf("  etcdCluster: {name: %s}\n  storageType: %s\n  %s\n%s", cluster, s.kind, s.at(storeBucket+"/"+name, "store"), more))
}

// fetch reads a stored backup whole, as the snapshot that etcd has sent.
func (s *store) fetch(uri string) (file string) {
	s.Helper()
	place := &agent.Store{Type: s.kind, Bucket: storeBucket}
	key, err := place.KeyOf(uri)
	s.must(err, "read URI %s", uri)
	s.see()
	body, err := s.objects.Get(s.ctx(), key, 0, -1)
	s.must(err, "read %s", key)
	defer body.Close()
	decoded, err := snapshot.Decode(body, nil, nil)
	s.must(err, "decode %s", key)
	defer decoded.Close()
	out, err := os.CreateTemp(s.TempDir(), "*.db")
	s.must(err, "make a file")
	defer out.Close()
	_, err = io.Copy(out, decoded)
	s.must(err, "read %s", key)
	return out.Name()
}

// see opens the volume of the PVC where it lies on this machine.
func (s *store) see() {
	s.Helper()
	if s.objects != nil {
		return
	}
	pvc, err := env.Kube.CoreV1().PersistentVolumeClaims(s.namespace).Get(s.ctx(), storeBucket, metav1.GetOptions{})
	s.must(err, "read the PVC")
	state, err := env.LocalTool(s.ctx(), "state-dir")
	s.must(err, "find the disks of the nodes")
	var found []string
	for _, depth := range []string{"*", "*/*", "*/*/*"} { // the disk of a node, and a path in it
		list, err := filepath.Glob(filepath.Join(state, "data", depth, "local-path", pvc.Spec.VolumeName+"*"))
		s.must(err, "look for the volume")
		found = append(found, list...)
	}
	if len(found) != 1 {
		s.Fatalf("volume %s is at %v", pvc.Spec.VolumeName, found)
	}
	objects, err := file.New(found[0])
	s.must(err, "open the volume")
	s.Cleanup(func() { objects.Close() })
	s.objects, s.dir = objects, found[0]
}

// list returns the keys of all that is stored.
func (s *store) list() []string {
	s.Helper()
	s.see()
	var keys []string
	for object, err := range s.objects.List(s.ctx(), "") {
		s.must(err, "list the store")
		keys = append(keys, object.Key)
	}
	return keys
}

// TestBackupToEachStore makes backups to a real server of each kind, reads what is stored
// back whole, and asks for what must fail: another key, and a bucket that is not there.
func TestBackupToEachStore(t *testing.T) {
	env.RequireLocal(t, harness.ObjectStore)
	t.Parallel()
	eachStore(t, func(s *store) {
		c := s.create("kept", 1, etcdVersion)
		data := c.fill()
		s.apply(s.backup("plain", "kept", "  compression: None\n  verify: Checksum"))
		s.apply(s.backup("packed", "kept", ""))
		if s.newBucket != nil {
			s.apply(backupManifest("no-bucket", fmt.Sprintf("  etcdCluster: {name: kept}\n  storageType: %s\n  %s", s.kind, s.at("later/key", "store"))))
		}
		if s.checksKeys {
			s.apply(backupManifest("denied", fmt.Sprintf("  etcdCluster: {name: kept}\n  storageType: %s\n  %s", s.kind, s.at(storeBucket+"/denied", "store-wrong"))))
		}
		for _, name := range []string{"plain", "packed"} {
			b := s.awaitBackup(s.ctx(), name, "success", hasSucceeded)
			found := s.hasSnapshot(s.fetch(b.Status.URI), data)
			// An endpoint that is not that of a cloud is read back by default.
			by, packed := v1beta2.VerificationHash, true
			if name == "plain" {
				packed = false
				if s.kind != v1beta2.BackupStorageTypePersistentVolumeClaim { // which returns no checksum
					by = v1beta2.VerificationChecksum
				}
			}
			if b.Status.VerifiedBy != by || strings.HasSuffix(b.Status.URI, ".zst") != packed {
				s.Errorf("%s is at %s, verified by %s", name, b.Status.URI, b.Status.VerifiedBy)
			}
			if !b.Status.Verified || found.Revision != b.Status.EtcdRevision || b.Status.StoredSize == 0 {
				s.Errorf("%s has revision %d, and the status says %+v", name, found.Revision, b.Status)
			}
		}
		if s.checksKeys {
			s.awaitBackup(s.ctx(), "denied", "StoreDenied", func(b *v1beta2.EtcdBackup) bool { return reasonOf(b) == string(agent.ClassStoreDenied) })
			s.kubectl("delete", "etcdbackup", "denied", "--timeout=30s")
		}
		if s.newBucket != nil {
			s.awaitBackup(s.ctx(), "no-bucket", "BucketNotFound", func(b *v1beta2.EtcdBackup) bool { return reasonOf(b) == string(agent.ClassNoBucket) })
			s.newBucket("later")
			s.awaitBackup(s.ctx(), "no-bucket", "success once there is a bucket", hasSucceeded)
		}
		// A backup is its snapshot and its manifest, and nothing else is there.
		if keys := s.list(); len(keys) != 4 {
			s.Errorf("stored are %v", keys)
		}
		s.noCanary()
		c.await(s.ctx(), "its last backup", func(object *clusterObject) bool {
			return object.Status.LastBackup != nil && is(object, v1beta2.ClusterConditionAvailable, corev1.ConditionTrue)
		})
	})
}
