// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package policies

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/etcd-operator/etcd-operator/pkg/resources"
)

// secretWith returns a Secret with a value of the label of protected objects; "" leaves the label out.
func secretWith(value string) *corev1.Secret {
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{
		Namespace: namespace, Name: "a", Labels: map[string]string{"etcd_cluster": "c"}, Annotations: map[string]string{resources.AnnotationClusterUID: "uid"},
	}}
	if value != "" {
		secret.Labels[resources.LabelProtected] = value
	}
	return secret
}

// TestDeletionProtection: the label protects an object from everyone, and only the controller sets it.
func TestDeletionProtection(t *testing.T) {
	t.Parallel()
	const tenant, controller, administrator = "tenant", "controller", "administrator"
	policy := newPlugin(t, grants{controller: "release-protected", administrator: "*"}, "install", "60-deletion-protection.yaml")
	secrets := corev1.SchemeGroupVersion.WithResource("secrets")
	const setByTenant, undeleted, marks = "is set only by the controller", "spec.deletionProtection=true", "marks of this object"
	for _, test := range []struct {
		name        string
		user        string
		object, old runtime.Object
		swept       bool
		want        string
	}{
		{"a tenant creates", tenant, secretWith("true"), nil, false, setByTenant},
		{"a tenant sets the label", tenant, secretWith("true"), secretWith(""), false, setByTenant},
		{"a tenant changes the value", tenant, secretWith("true"), secretWith("false"), false, marks},
		{"a tenant creates without the label", tenant, secretWith(""), nil, false, ""},
		{"a tenant writes another value", tenant, secretWith("false"), nil, false, ""},
		{"a tenant changes a protected object", tenant, secretWith("true"), secretWith("true"), false, ""},
		{"a tenant takes the label away", tenant, secretWith(""), secretWith("true"), false, marks},
		{"a tenant deletes", tenant, nil, secretWith("true"), false, undeleted},
		{"the controller creates", controller, secretWith("true"), nil, false, ""},
		{"the controller sets the label", controller, secretWith("true"), secretWith(""), false, ""},
		{"the controller deletes", controller, nil, secretWith("true"), false, ""},
		{"an administrator restores a copy", administrator, secretWith("true"), nil, false, ""},
		{"an administrator takes the label away", administrator, secretWith(""), secretWith("true"), false, ""},
		{"an administrator deletes", administrator, nil, secretWith("true"), true, undeleted},
	} {
		err := policy.admit(t, request{user: test.user, object: test.object, old: test.old, resource: secrets, swept: test.swept})
		switch {
		case test.want == "" && err != nil:
			t.Errorf("%s: %v", test.name, err)
		case test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want)):
			t.Errorf("%s: got %v, want %q", test.name, err, test.want)
		case test.want == undeleted || test.want == marks:
			for _, remedy := range []string{
				`kubectl patch etcd c -n ` + namespace + ` --type=merge -p '{"spec":{"deletionProtection":false}}'`,
				"kubectl label secrets a -n " + namespace + " " + resources.LabelProtected + "-", // the EtcdCluster may not own it
			} {
				if !strings.Contains(err.Error(), remedy) {
					t.Errorf("%s: the rejection does not name %q: %v", test.name, remedy, err)
				}
			}
		}
	}
}
