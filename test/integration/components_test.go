// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"bytes"
	"context"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
)

func component(path ...string) string {
	return filepath.Join(append([]string{env.repo, "artifacts", "components"}, path...)...)
}

// TestPolicyWithParameters: a policy whose parameters are ConfigMaps rejects every write until
// the API server may read them, and then holds as it says.
func TestPolicyWithParameters(t *testing.T) {
	namespace := newNamespace(t)
	if _, err := env.client.CoreV1().ConfigMaps(namespace).Create(t.Context(), &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Name: "most"}, Data: map[string]string{"size": "3"},
	}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	policies, bindings := env.client.AdmissionregistrationV1().ValidatingAdmissionPolicies(), env.client.AdmissionregistrationV1().ValidatingAdmissionPolicyBindings()
	fail, deny := admissionv1.Fail, admissionv1.DenyAction
	rule := admissionv1.Rule{APIGroups: []string{v1beta2.SchemeGroupVersion.Group}, APIVersions: []string{"*"}, Resources: []string{"etcdclusters"}}
	if _, err := policies.Create(t.Context(), &admissionv1.ValidatingAdmissionPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: namespace},
		Spec: admissionv1.ValidatingAdmissionPolicySpec{
			FailurePolicy: &fail, ParamKind: &admissionv1.ParamKind{APIVersion: "v1", Kind: "ConfigMap"},
			MatchConstraints: &admissionv1.MatchResources{ResourceRules: []admissionv1.NamedRuleWithOperations{{
				RuleWithOperations: admissionv1.RuleWithOperations{Operations: []admissionv1.OperationType{admissionv1.Create}, Rule: rule},
			}}},
			Validations: []admissionv1.Validation{{Expression: "object.spec.size <= int(params.data.size)", Message: "too many members"}},
		},
	}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := bindings.Create(t.Context(), &admissionv1.ValidatingAdmissionPolicyBinding{
		ObjectMeta: metav1.ObjectMeta{Name: namespace},
		Spec: admissionv1.ValidatingAdmissionPolicyBindingSpec{
			PolicyName: namespace, ValidationActions: []admissionv1.ValidationAction{admissionv1.Deny},
			ParamRef:       &admissionv1.ParamRef{Name: "most", Namespace: namespace, ParameterNotFoundAction: &deny},
			MatchResources: &admissionv1.MatchResources{NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"kubernetes.io/metadata.name": namespace}}},
		},
	}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx := context.WithoutCancel(t.Context())
		for _, remove := range []func(context.Context, string, metav1.DeleteOptions) error{bindings.Delete, policies.Delete} {
			if err := remove(ctx, namespace, metav1.DeleteOptions{}); err != nil {
				t.Error(err)
			}
		}
		if _, err := env.kubectl(ctx, "delete", "-f", component("policy-parameters", "rbac.yaml")); err != nil {
			t.Error(err)
		}
	})
	try := func(ctx context.Context, size int32) error {
		cluster := newCluster("a")
		cluster.Spec.Replicas = &size
		_, err := clustersIn(namespace).Create(ctx, cluster, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		return err
	}
	eventually(t, func(ctx context.Context) error { // the policy is read by a watch
		if err := try(ctx, 1); err == nil {
			return errorf("without the right to read the parameters a write is not rejected")
		}
		return nil
	})
	mustKubectl(t, "apply", "-f", component("policy-parameters", "rbac.yaml"))
	eventually(t, func(ctx context.Context) error { return try(ctx, 3) })
	if err := try(t.Context(), 5); err == nil {
		t.Error("with the right the policy does not hold")
	}
}

// TestNoExistingEtcd: with the component no cluster is created that takes over an etcd, and others are.
func TestNoExistingEtcd(t *testing.T) {
	namespace := newNamespace(t)
	policy := component("no-existing-etcd", "policy.yaml")
	takeOver := newCluster("a")
	takeOver.Spec.Bootstrap = &v1beta2.BootstrapPolicy{Existing: &v1beta2.ExistingEtcd{ClientEndpoints: []string{"http://etcd-0.etcd:2379"}}}
	begun := takeOver.DeepCopy()
	begun.Name = "begun"
	create(t, namespace, begun)
	try := func(ctx context.Context, cluster *v1beta2.EtcdCluster) error {
		_, err := clustersIn(namespace).Create(ctx, cluster, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		return err
	}
	if err := try(t.Context(), takeOver); err != nil {
		t.Fatalf("without the component: %v", err)
	}
	t.Cleanup(func() {
		if _, err := env.kubectl(context.WithoutCancel(t.Context()), "delete", "-f", policy); err != nil {
			t.Error(err)
		}
	})
	mustKubectl(t, "apply", "-f", policy)
	eventually(t, func(ctx context.Context) error { // the policy is read by a watch
		switch err := try(ctx, takeOver); {
		case err == nil:
			return errorf("a cluster that takes over an etcd is not rejected")
		case !strings.Contains(err.Error(), "spec.bootstrap.existing: the administrator"):
			return err
		default:
			return nil
		}
	})
	if err := try(t.Context(), newCluster("b")); err != nil {
		t.Errorf("a cluster of its own is rejected: %v", err)
	}
	if _, err := clustersIn(namespace).Patch(t.Context(), "begun", types.MergePatchType,
		[]byte(`{"spec":{"bootstrap":{"existing":{"oldMembers":"Remove"}}}}`), metav1.PatchOptions{}); err != nil {
		t.Errorf("a migration that had begun cannot be finished: %v", err)
	}
}

// TestAuditOfDirectRequests: with the policy of the component, a request that does not come
// through the kube-apiserver is recorded, without the content of the object.
func TestAuditOfDirectRequests(t *testing.T) {
	namespace := newNamespace(t)
	create(t, namespace, newCluster("a"))
	user := "direct-" + namespace
	grant(t, namespace, user, "get")
	manifest, err := os.ReadFile(component("audit", "policy.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var config corev1.ConfigMap
	if err := yaml.UnmarshalStrict(manifest, &config); err != nil {
		t.Fatal(err)
	}
	policy, log := filepath.Join(t.TempDir(), "policy.yaml"), filepath.Join(t.TempDir(), "audit.log")
	if err := os.WriteFile(policy, []byte(config.Data["policy.yaml"]), 0o600); err != nil {
		t.Fatal(err)
	}
	restart(t, syscall.SIGTERM, "--audit-policy-file="+policy, "--audit-log-path="+log)
	defer restart(t, syscall.SIGTERM)
	if code := directGet(t, directClient(t, user), namespace, "a", nil); code != http.StatusOK {
		t.Fatalf("status %d, want 200", code)
	}
	eventually(t, func(context.Context) error {
		recorded, err := os.ReadFile(log)
		if err != nil {
			return err
		}
		for line := range bytes.Lines(recorded) {
			if bytes.Contains(line, []byte(`"username":"`+user+`"`)) && bytes.Contains(line, []byte(`"resource":"etcdclusters"`)) {
				if bytes.Contains(line, []byte("repository")) {
					t.Errorf("the content is recorded: %s", line)
				}
				return nil
			}
		}
		return errorf("the request is not recorded: %s", recorded)
	})
}
