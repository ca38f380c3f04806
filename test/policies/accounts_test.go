// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package policies

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

const (
	apiserver  = "system:serviceaccount:operators:etcd-operator-apiserver"
	controller = "system:serviceaccount:operators:etcd-operator-controller"
	other      = "system:serviceaccount:operators:other"
)

// TestAccountsCreateSecrets: no program gets the token of another ServiceAccount from a Secret that it creates.
func TestAccountsCreateSecrets(t *testing.T) {
	t.Parallel()
	policy := newPlugin(t, grants{}, "install", "65-accounts.yaml")
	for _, test := range []struct {
		user, name string
		kind       corev1.SecretType
		admitted   bool
	}{
		{apiserver, "etcd-operator-apiserver-tls", corev1.SecretTypeTLS, true},
		{apiserver, "other", corev1.SecretTypeTLS, false},
		{apiserver, "", corev1.SecretTypeTLS, false}, // generateName
		{apiserver, "etcd-operator-apiserver-tls", corev1.SecretTypeServiceAccountToken, false},
		{controller, "c-peer-tls", corev1.SecretTypeTLS, true},
		{controller, "c-app", "servicebinding.io/etcd", true},
		{controller, "c-peer-tls", corev1.SecretTypeServiceAccountToken, false},
		{controller, "bootstrap-token-abcdef", corev1.SecretTypeBootstrapToken, false},
		{other, "token", corev1.SecretTypeServiceAccountToken, true},
	} {
		secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: test.name}, Type: test.kind}
		err := policy.admit(t, request{user: test.user, object: secret, resource: corev1.SchemeGroupVersion.WithResource("secrets")})
		if (err == nil) != test.admitted || err != nil && !strings.Contains(err.Error(), "creates only the Secrets") {
			t.Errorf("%s creates Secret %q of type %s: %v", test.user, test.name, test.kind, err)
		}
	}
}

// TestAccountsPatchAPIService: the API server changes the caBundle of its registration and nothing else.
func TestAccountsPatchAPIService(t *testing.T) {
	t.Parallel()
	policy := newPlugin(t, grants{}, "install", "65-accounts.yaml")
	registration := func(change ...any) runtime.Object {
		u := &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "apiregistration.k8s.io/v1", "kind": "APIService",
			"metadata": map[string]any{"name": "v1beta2.etcd.database.coreos.com", "labels": map[string]any{"a": "b"}},
			"spec": map[string]any{"group": "etcd.database.coreos.com", "version": "v1beta2", "groupPriorityMinimum": int64(1000), "versionPriority": int64(15),
				"service": map[string]any{"name": "etcd-operator-apiserver", "namespace": "operators", "port": int64(443)}},
		}}
		if len(change) > 1 {
			var path []string
			for _, part := range change[1:] {
				path = append(path, part.(string))
			}
			if err := unstructured.SetNestedField(u.Object, change[0], path...); err != nil {
				t.Fatal(err)
			}
		}
		return u
	}
	services := schema.GroupVersionResource{Group: "apiregistration.k8s.io", Version: "v1", Resource: "apiservices"}
	for _, test := range []struct {
		name     string
		user     string
		object   runtime.Object
		admitted bool
	}{
		{"the caBundle", apiserver, registration("Y2E=", "spec", "caBundle"), true},
		{"verification", apiserver, registration(false, "spec", "insecureSkipTLSVerify"), true},
		{"no verification", apiserver, registration(true, "spec", "insecureSkipTLSVerify"), false},
		{"another Service", apiserver, registration("other", "spec", "service", "name"), false},
		{"another priority", apiserver, registration(int64(1), "spec", "versionPriority"), false},
		{"a label", apiserver, registration("true", "metadata", "labels", "kube-aggregator.kubernetes.io/automanaged"), false},
		{"a finalizer", apiserver, registration([]any{"a/b"}, "metadata", "finalizers"), false},
		{"another user", other, registration("other", "spec", "service", "name"), true},
	} {
		err := policy.admit(t, request{user: test.user, object: test.object, old: registration(), resource: services})
		if (err == nil) != test.admitted || err != nil && !strings.Contains(err.Error(), "changes only spec.caBundle") {
			t.Errorf("%s: %v", test.name, err)
		}
	}
}
