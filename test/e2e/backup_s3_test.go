// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/etcd-operator/etcd-operator/pkg/agent"
	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	layout "github.com/etcd-operator/etcd-operator/pkg/snapshot/manifest"
	"github.com/etcd-operator/etcd-operator/test/harness"
)

// loadS3Image brings the image of the server that speaks S3 to the nodes, once.
var loadS3Image = sync.OnceValue(func() error {
	out, err := exec.CommandContext(context.Background(), filepath.Join(env.Root, "hack", "object-stores.sh"), "--image").CombinedOutput()
	if err != nil {
		return fmt.Errorf("hack/object-stores.sh: %w: %s", err, out)
	}
	return nil
})

// s3Server is a real server that speaks S3, in a pod of the test.
type s3Server struct {
	*scenario
	client *s3.Client
}

const s3Pod = `apiVersion: v1
kind: Pod
metadata:
  name: store
  labels: {name: store}
spec:
  automountServiceAccountToken: false
  terminationGracePeriodSeconds: 0
  securityContext: {runAsNonRoot: true, runAsUser: 65532, fsGroup: 65532, seccompProfile: {type: RuntimeDefault}}
  containers:
  - name: versitygw
    image: docker.io/versity/versitygw:v1.8.0
    command: [/versitygw, -q, --port, ":7070", posix, --sidecar, /data/meta, /data/objects]
    env:
    - {name: ROOT_ACCESS_KEY, value: admin}
    - {name: ROOT_SECRET_KEY, valueFrom: {secretKeyRef: {name: root, key: key}}}
    ports: [{containerPort: 7070}]
    readinessProbe: {tcpSocket: {port: 7070}, periodSeconds: 1}
    securityContext: {allowPrivilegeEscalation: false, capabilities: {drop: [ALL]}}
    volumeMounts: [{name: data, mountPath: /data/objects}, {name: meta, mountPath: /data/meta}]
  volumes: [{name: data, emptyDir: {}}, {name: meta, emptyDir: {}}]
---
apiVersion: v1
kind: Service
metadata:
  name: store
spec:
  selector: {name: store}
  ports: [{port: 7070}]
`

// s3 runs the server; its secret key is the canary.
func (s *scenario) s3() *s3Server {
	s.Helper()
	s.must(loadS3Image(), "bring the server's image")
	s.kubectl("create", "secret", "generic", "root", "--from-literal=key="+canary)
	for name, key := range map[string]string{"aws": canary, "aws-wrong": canary + "-wrong"} {
		s.kubectl("create", "secret", "generic", name,
			"--from-literal=credentials=[default]\naws_access_key_id = admin\naws_secret_access_key = "+key+"\n",
			"--from-literal=config=[default]\nregion = us-east-1\n")
	}
	s.apply(s3Pod)
	view, err := env.Pod(s.ctx(), s.namespace, "store")
	s.must(err, "watch the store")
	defer view.Close()
	s.must(view.Await(s.ctx(), harness.AllReady(1)), "the store to be ready")
	return &s3Server{scenario: s, client: s3.New(s3.Options{
		BaseEndpoint: aws.String("http://" + view.List()[0].Status.PodIP + ":7070"), UsePathStyle: true, Region: "us-east-1",
		Credentials: aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
			return aws.Credentials{AccessKeyID: "admin", SecretAccessKey: canary}, nil
		}),
	})}
}

func (s *s3Server) bucket(name string) {
	s.Helper()
	_, err := s.client.CreateBucket(s.ctx(), &s3.CreateBucketInput{Bucket: &name})
	s.must(err, "make bucket %s", name)
}

// keys lists a bucket.
func (s *s3Server) keys(bucket string) []string {
	s.Helper()
	list, err := s.client.ListObjectsV2(s.ctx(), &s3.ListObjectsV2Input{Bucket: &bucket})
	s.must(err, "list bucket %s", bucket)
	var keys []string
	for i := range list.Contents {
		keys = append(keys, *list.Contents[i].Key)
	}
	return keys
}

// backups counts what is visible as a backup.
func (s *s3Server) backups(bucket, prefix string) int {
	s.Helper()
	n := 0
	for _, k := range s.keys(bucket) {
		if layout.IsManifest(k) && strings.HasPrefix(k, prefix) {
			n++
		}
	}
	return n
}

func toS3(path, secret string) string {
	return fmt.Sprintf("\n  storageType: S3\n  s3: {path: %s, awsSecret: %s, endpoint: \"http://store:7070\", forcePathStyle: true}", path, secret)
}

func reasonOf(b *v1beta2.EtcdBackup) string {
	if c := meta.FindStatusCondition(b.Status.Conditions, "Succeeded"); c != nil && b.Status.Phase == v1beta2.BackupPhaseFailed {
		return c.Reason
	}
	return ""
}

// TestBackupToS3 makes backups to a real server, with wrong credentials, without a
// bucket, by endpoints as old manifests do, and periodic ones.
func TestBackupToS3(t *testing.T) {
	t.Parallel()
	s := start(t)
	c := s.create("cloudy", 3, etcdVersion)
	c.fill()
	store := s.s3()
	store.bucket("bucket")

	s.apply(backupManifest("denied", "  etcdCluster: {name: cloudy}"+toS3("bucket/denied", "aws-wrong")))
	s.apply(backupManifest("no-bucket", "  etcdCluster: {name: cloudy}"+toS3("later/key", "aws")))
	s.apply(backupManifest("fine", "  etcdCluster: {name: cloudy}\n  compression: Zstd"+toS3("bucket/fine", "aws")))
	s.apply(backupManifest("old", "  etcdEndpoints: [\"http://cloudy-client:2379\"]"+toS3("bucket/etcd.backup", "aws")))
	s.apply(backupManifest("series", "  etcdCluster: {name: cloudy}\n  backupPolicy: {backupIntervalInSecond: 4, maxBackups: 2}"+toS3("bucket/series", "aws")))

	s.awaitBackup(s.ctx(), "denied", "StoreDenied", func(b *v1beta2.EtcdBackup) bool { return reasonOf(b) == string(agent.ClassStoreDenied) })
	s.awaitBackup(s.ctx(), "no-bucket", "BucketNotFound", func(b *v1beta2.EtcdBackup) bool { return reasonOf(b) == string(agent.ClassNoBucket) })
	fine := s.awaitBackup(s.ctx(), "fine", "success", succeeded)
	if n := store.backups("bucket", "fine/"); n != 1 || !strings.HasPrefix(fine.Status.URI, "s3://bucket/fine/") || !fine.Status.Verified {
		t.Errorf("%d backups at %s", n, fine.Status.URI)
	}
	old := s.awaitBackup(s.ctx(), "old", "success", succeeded)
	if old.Status.URI != "s3://bucket/etcd.backup" {
		t.Errorf("the old manifest stores at %s", old.Status.URI)
	}
	s.awaitBackup(s.ctx(), "series", "four slots", func(b *v1beta2.EtcdBackup) bool {
		return len(goodOnes(b)) == 2 && b.Status.LastScheduleTime.Sub(b.CreationTimestamp.Time).Seconds() >= 16
	})
	s.kubectl("patch", "etcdbackup", "series", "--type=merge", "-p", `{"spec":{"backupPolicy":{"suspend":true}}}`)
	series := s.awaitBackup(s.ctx(), "series", "rest", func(b *v1beta2.EtcdBackup) bool {
		return b.Status.ObservedGeneration == b.Generation && succeeded(b)
	})
	if n := store.backups("bucket", "series/"); n != 2 || len(goodOnes(series)) != 2 {
		t.Errorf("%d backups are stored, %d in the history; 2 shall be kept: %v", n, len(goodOnes(series)), store.keys("bucket"))
	}
	if n := store.backups("bucket", "denied"); n != 0 {
		t.Error("something is visible of a backup that was refused")
	}

	// What was missing is made: the next attempt succeeds by itself.
	store.bucket("later")
	s.awaitBackup(s.ctx(), "no-bucket", "success once there is a bucket", succeeded)
	s.noCanary()
	logs := s.kubectl("get", "events", "-o", "yaml") + s.kubectl("get", "etcdclusters", "-o", "yaml")
	if strings.Contains(logs, canary) {
		t.Error("a secret is in events or clusters")
	}
	c.await(s.ctx(), "its last backup", func(object *clusterObject) bool {
		return object.Status.LastBackup != nil && is(object, v1beta2.ClusterConditionAvailable, corev1.ConditionTrue)
	})
}
