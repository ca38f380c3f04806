// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"encoding/base64"
	"fmt"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/etcd-operator/etcd-operator/pkg/agent"
	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/resources"
	"github.com/etcd-operator/etcd-operator/test/harness"
)

// TestBackupToAStoreThatIsNotTrusted: the certificate of a store that is signed by another
// authority than the user names, or by none that is public, keeps a backup from being made.
// The status says what is wrong and which field to set; nothing is stored, and nothing is
// left when the EtcdBackup goes. With the right authority in the same Secret the next
// attempt succeeds.
func TestBackupToAStoreThatIsNotTrusted(t *testing.T) {
	t.Parallel()
	s := start(t).store(secureS3Kind())
	other, err := harness.NewAuthority("others")
	s.must(err, "make an authority")
	s.kubectl("create", "secret", "generic", "other-ca", "--from-literal=ca.crt="+string(other.PEM))
	s.create("wary", 1, etcdVersion)
	to := func(name, caSecret string) string {
		source := strings.Replace(s.at(storeBucket+"/"+name, "store"), ", caSecret: store-ca", caSecret, 1)
		return backupManifest(name, fmt.Sprintf("  etcdCluster: {name: wary}\n  storageType: S3\n  %s", source))
	}
	s.apply(to("public", ""))
	s.apply(to("mended", ", caSecret: other-ca"))
	for name, words := range map[string][]string{
		"public": {"name the Secret with the store's certificate authority", "ca.crt", "s3.caSecret"},
		"mended": {"must be signed by the ca.crt of the Secret in s3.caSecret"},
	} {
		failed := s.awaitBackup(s.ctx(), name, "a failure", func(b *v1beta2.EtcdBackup) bool { return reasonOf(b) == string(agent.ClassStore) })
		message := meta.FindStatusCondition(failed.Status.Conditions, "Succeeded").Message
		s.contains(message, append(words, "the certificate of the store is not trusted", "x509")...)
		s.contains(failed.Status.Reason, "the certificate of the store is not trusted")
	}
	if keys := s.list(); len(keys) > 0 {
		s.Errorf("stored are %v", keys)
	}
	right, err := env.Kube.CoreV1().Secrets(s.namespace).Get(s.ctx(), "store-ca", metav1.GetOptions{})
	s.must(err, "read the right authority")
	s.kubectl("patch", "secret", "other-ca", "--type=merge", "-p", fmt.Sprintf(`{"data":{"ca.crt":%q}}`, base64.StdEncoding.EncodeToString(right.Data["ca.crt"])))
	s.awaitBackup(s.ctx(), "mended", "success", succeeded)
	if keys := s.list(); len(keys) != 2 {
		s.Errorf("stored are %v", keys)
	}
	s.kubectl("delete", "etcdbackup", "public", "mended", "--timeout=30s")
	s.awaitGone("jobs,pods", resources.LabelApp+"="+resources.BackupAppName)
	s.noCanary()
}
