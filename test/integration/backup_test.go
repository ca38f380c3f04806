// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
)

// policy keeps objects of a kind out that carry a label, in one namespace.
func policy(t *testing.T, namespace, resource string) {
	t.Helper()
	policies, bindings := env.client.AdmissionregistrationV1().ValidatingAdmissionPolicies(), env.client.AdmissionregistrationV1().ValidatingAdmissionPolicyBindings()
	fail := admissionv1.Fail
	_, err := policies.Create(t.Context(), &admissionv1.ValidatingAdmissionPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: namespace},
		Spec: admissionv1.ValidatingAdmissionPolicySpec{
			FailurePolicy: &fail,
			MatchConstraints: &admissionv1.MatchResources{ResourceRules: []admissionv1.NamedRuleWithOperations{{RuleWithOperations: admissionv1.RuleWithOperations{
				Operations: []admissionv1.OperationType{admissionv1.Create},
				Rule: admissionv1.Rule{
					APIGroups: []string{v1beta2.SchemeGroupVersion.Group}, APIVersions: []string{"*"}, Resources: []string{resource},
				},
			}}}},
			Validations: []admissionv1.Validation{{Expression: "!('tape' in object.metadata.labels)", Message: "no tapes here"}},
		},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	_, err = bindings.Create(t.Context(), &admissionv1.ValidatingAdmissionPolicyBinding{
		ObjectMeta: metav1.ObjectMeta{Name: namespace},
		Spec: admissionv1.ValidatingAdmissionPolicyBindingSpec{
			PolicyName: namespace, ValidationActions: []admissionv1.ValidationAction{admissionv1.Deny},
			MatchResources: &admissionv1.MatchResources{NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"kubernetes.io/metadata.name": namespace}}},
		},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx := context.WithoutCancel(t.Context())
		if err := bindings.Delete(ctx, namespace, metav1.DeleteOptions{}); err != nil {
			t.Error(err)
		}
		if err := policies.Delete(ctx, namespace, metav1.DeleteOptions{}); err != nil {
			t.Error(err)
		}
	})
}

const intoPVC = `{"spec":{"backup":{"storageType":"PersistentVolumeClaim","persistentVolumeClaim":{"claimName":"backups"}}}}`

// TestBackupIsAskedFor posts to the subresource as a user does: with nothing, with an empty
// object, and with a body that must be rejected.
func TestBackupIsAskedFor(t *testing.T) {
	t.Parallel()
	s := newSource(t)
	path := raw(s.namespace, "a", "backup")
	for _, body := range []string{"", "{}"} {
		if output, err := post(t, body, path); err == nil || !strings.Contains(output, "spec.storageType") || !strings.Contains(output, "spec.backup of the EtcdCluster") {
			t.Errorf("%q without a destination: %v %s", body, err, output)
		}
	}
	mustKubectl(t, "-n", s.namespace, "patch", "etcdcluster", "a", "--type=merge", "-p", intoPVC)
	for body, says := range map[string]string{
		`{"spec":{"etcdCluster":{"name":"b"}}}`:                                  "spec.etcdCluster.name",
		`{"spec":{"storageType":"Tape"}}`:                                        "spec.storageType",
		`{"spec":{"backupPolicy":{"schedule":"@daily"}}}`:                        "spec.backupPolicy",
		`{"metadata":{"uid":"other"}}`:                                           "UID",
		`{"kind":"EtcdCluster","apiVersion":"etcd.database.coreos.com/v1beta2"}`: "EtcdCluster",
		`nothing`: "must be an object",
	} {
		if output, err := post(t, body, path); err == nil || !strings.Contains(output, says) {
			t.Errorf("%s: %v %s, want %s", body, err, output, says)
		}
	}
	if output, err := post(t, "", path+"?dryRun=All"); err != nil || !strings.Contains(output, `"kind":"EtcdBackup"`) {
		t.Errorf("a dry run: %v %s", err, output)
	}
	backups := env.etcd.EtcdV1beta2().EtcdBackups(s.namespace)
	if list, err := backups.List(t.Context(), metav1.ListOptions{}); err != nil || len(list.Items) > 0 {
		t.Fatalf("a rejected request or a dry run has left %+v (%v)", list, err)
	}
	for range 2 {
		output, err := post(t, "", path)
		if err != nil {
			t.Fatal(err)
		}
		var made v1beta2.EtcdBackup
		if err := json.Unmarshal([]byte(output), &made); err != nil || made.Spec.EtcdCluster == nil || made.Spec.PersistentVolumeClaim == nil || made.UID == "" {
			t.Fatalf("made %s (%v)", output, err)
		}
		if output, err := post(t, "{}", path); err == nil || !strings.Contains(output, made.Name) {
			t.Errorf("while one is under way: %v %s", err, output)
		}
		stored, err := backups.Get(t.Context(), made.Name, metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		stored.Status.Phase = v1beta2.BackupPhaseFailed
		if _, err := backups.UpdateStatus(t.Context(), stored, metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
}

// TestBackupThatIsAskedForIsAdmitted: what the subresource creates goes through the
// policies for EtcdBackups, and through the authorization of the subresource alone.
func TestBackupThatIsAskedForIsAdmitted(t *testing.T) {
	t.Parallel()
	s := newSource(t)
	mustKubectl(t, "-n", s.namespace, "patch", "etcdcluster", "a", "--type=merge", "-p", intoPVC)
	path := raw(s.namespace, "a", "backup")
	policy(t, s.namespace, "etcdbackups")
	tape := `{"metadata":{"labels":{"tape":"yes"}}}`
	eventually(t, func(ctx context.Context) error { // the policy is read by a watch
		output, err := env.kubectlWith(ctx, nil, tape, "create", "--raw", path+"?dryRun=All", "-f", "-")
		if err == nil || !strings.Contains(output, "no tapes here") {
			return errorf("a policy for EtcdBackups is not asked: %v %s", err, output)
		}
		return nil
	})

	user := "clock-" + s.namespace
	mustKubectl(t, "-n", s.namespace, "create", "role", "clock", "--verb=create", "--resource=etcdclusters.etcd.database.coreos.com/backup")
	mustKubectl(t, "-n", s.namespace, "create", "rolebinding", "clock", "--role=clock", "--user="+user)
	if output, err := env.kubectlWith(t.Context(), nil, "", "create", "--raw", path, "-f", "-", "--as="+user); err != nil {
		t.Fatalf("%v %s", err, output)
	}
	if output, err := env.kubectlWith(t.Context(), nil, "", "create", "--raw", path, "-f", "-", "--as=nobody-"+s.namespace); err == nil || !strings.Contains(output, "orbidden") {
		t.Errorf("without any right: %v %s", err, output)
	}
	for _, args := range [][]string{
		{"get", "etcdclusters"}, {"get", "etcdbackups"}, {"get", "secrets"}, {"delete", "etcdbackups", "--all"},
		{"get", "--raw", raw(s.namespace, "a", "health")}, {"get", "--raw", raw(s.namespace, "a", "proxy/snapshot")},
	} {
		contains(t, rejectedKubectl(t, "", append(args, "-n", s.namespace, "--as="+user)...), "orbidden")
	}
}
