// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"encoding/base64"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/etcd-operator/etcd-operator/pkg/agent"
	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/resources"
	"github.com/etcd-operator/etcd-operator/test/harness"
)

// TestBackupToUntrustedStore: the certificate of a store that is signed by another
// CA than the user names, or by none that is public, keeps a backup from being made.
// The status says what is wrong and which field to set; nothing is stored, and nothing is
// left when the EtcdBackup goes. With the right CA in the same Secret the next
// attempt succeeds.
func TestBackupToUntrustedStore(t *testing.T) {
	env.RequireLocal(t, harness.ObjectStore)
	t.Parallel()
	s := start(t).store(secureS3Kind())
	other, err := harness.NewCA("others")
	s.must(err, "make a CA")
	s.kubectl("create", "secret", "generic", "other-ca", "--from-literal=ca.crt="+string(other.PEM))
	s.create("wary", 1, etcdVersion)
	to := func(name, caSecret string) string {
		source := strings.Replace(s.at(storeBucket+"/"+name, "store"), ", caSecret: store-ca", caSecret, 1)
		return backupManifest(name, fmt.Sprintf("  etcdCluster: {name: wary}\n  storageType: S3\n  %s", source))
	}
	s.apply(to("public", ""))
	s.apply(to("mended", ", caSecret: other-ca"))
	for name, words := range map[string][]string{
		"public": {"name the Secret with the store's CA", "ca.crt", "s3.caSecret"},
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
	s.must(err, "read the right CA")
	s.kubectl("patch", "secret", "other-ca", "--type=merge", "-p", fmt.Sprintf(`{"data":{"ca.crt":%q}}`, base64.StdEncoding.EncodeToString(right.Data["ca.crt"])))
	s.awaitBackup(s.ctx(), "mended", "success", hasSucceeded)
	if keys := s.list(); len(keys) != 2 {
		s.Errorf("stored are %v", keys)
	}
	s.kubectl("delete", "etcdbackup", "public", "mended", "--timeout=30s")
	s.awaitDeleted("jobs,pods", resources.LabelApp+"="+resources.BackupAppName)
	s.noCanary()
}

// rootsPolicy mounts the Secret store-ca where programs look for the CAs of a system,
// as an installation may do that has its own.
const rootsPolicy = `apiVersion: admissionregistration.k8s.io/v1
kind: MutatingAdmissionPolicy
metadata: {name: %[1]s}
spec:
  failurePolicy: Fail
  reinvocationPolicy: Never
  matchConstraints:
    resourceRules: [{apiGroups: [""], apiVersions: [v1], operations: [CREATE], resources: [pods]}]
  matchConditions:
  - {name: backup, expression: "has(object.metadata.labels) && 'app' in object.metadata.labels && object.metadata.labels['app'] == 'etcd-backup'"}
  mutations:
  - patchType: ApplyConfiguration
    applyConfiguration:
      expression: >-
        Object{spec: Object.spec{
        volumes: [Object.spec.volumes{name: "roots", secret: Object.spec.volumes.secret{secretName: "store-ca"}}],
        containers: object.spec.containers.map(c, Object.spec.containers{name: c.name,
        volumeMounts: [Object.spec.containers.volumeMounts{name: "roots", readOnly: true, mountPath: "/etc/ssl/certs"}]})}}
---
apiVersion: admissionregistration.k8s.io/v1
kind: MutatingAdmissionPolicyBinding
metadata: {name: %[1]s}
spec:
  policyName: %[1]s
  matchResources:
    namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: %[1]s}}
`

// mountRoots applies the policy and waits until it has an effect.
func (s *scenario) mountRoots() {
	s.Helper()
	s.apply(fmt.Sprintf(rootsPolicy, s.namespace))
	s.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), cleanupTimeout)
		defer cancel()
		policies := env.Kube.AdmissionregistrationV1()
		if err := policies.MutatingAdmissionPolicyBindings().Delete(ctx, s.namespace, metav1.DeleteOptions{}); err != nil {
			s.Errorf("delete the binding: %v", err)
		}
		if err := policies.MutatingAdmissionPolicies().Delete(ctx, s.namespace, metav1.DeleteOptions{}); err != nil {
			s.Errorf("delete the policy: %v", err)
		}
	})
	probe := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "probe", Namespace: s.namespace, Labels: map[string]string{resources.LabelApp: resources.BackupAppName}},
		Spec: corev1.PodSpec{
			AutomountServiceAccountToken: new(bool), SecurityContext: restrictedPod(),
			Containers: []corev1.Container{{Name: "x", Image: "x", SecurityContext: restrictedContainer()}},
		},
	}
	var last error
	err := wait.PollUntilContextCancel(s.within(time.Minute), 200*time.Millisecond, true, func(ctx context.Context) (bool, error) {
		var made *corev1.Pod
		made, last = env.Kube.CoreV1().Pods(s.namespace).Create(ctx, probe, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		return last == nil && len(made.Spec.Containers[0].VolumeMounts) == 1, nil
	})
	s.must(err, "wait for the policy (%v)", last)
}

// TestBackupToStoreThatThePodTrusts: where an installation mounts its own CAs into the
// pods of Jobs, a store whose certificate these have signed needs no caSecret.
func TestBackupToStoreThatThePodTrusts(t *testing.T) {
	env.RequireLocal(t, harness.ObjectStore)
	t.Parallel()
	kind := secureS3Kind()
	kind.source = strings.Replace(kind.source, ", caSecret: store-ca", "", 1)
	s := start(t).store(kind)
	s.mountRoots()
	c := s.create("trusting", 1, etcdVersion)
	data := c.fill()
	s.apply(s.backup("once", "trusting", ""))
	b := s.awaitBackup(s.ctx(), "once", "success", hasSucceeded)
	s.hasSnapshot(s.fetch(b.Status.URI), data)
}
