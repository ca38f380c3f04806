// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package policies

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/admission/plugin/policy/validating"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/utils/ptr"
)

const namespace = "tenant"

// grants is the verb on etcdclusters that each user has; "*" is every verb on everything.
type grants map[string]string

// Authorize implements authorizer.UnconditionalAuthorizer.
func (g grants) Authorize(_ context.Context, a authorizer.Attributes) (authorizer.Decision, string, error) {
	if verb := g[a.GetUser().GetName()]; verb == "*" || verb == a.GetVerb() && a.GetResource() == "etcdclusters" {
		return authorizer.DecisionAllow, "", nil
	}
	return authorizer.DecisionNoOpinion, "", nil
}

// plugin is the admission plugin with the policies of a file of artifacts.
type plugin struct{ *validating.Plugin }

func newPlugin(t *testing.T, granted grants, path ...string) plugin {
	t.Helper()
	objects := []runtime.Object{&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}}
	objects = append(objects, policiesIn(t, filepath.Join(append([]string{"..", "..", "artifacts"}, path...)...))...)
	client := fake.NewClientset(objects...)
	made, err := validating.NewPlugin(nil)
	if err != nil {
		t.Fatal(err)
	}
	factory := informers.NewSharedInformerFactory(client, 0)
	made.SetExternalKubeClientSet(client)
	made.SetExternalKubeInformerFactory(factory)
	made.SetDynamicClient(dynamicfake.NewSimpleDynamicClient(runtime.NewScheme()))
	made.SetRESTMapper(meta.NewDefaultRESTMapper(nil))
	made.SetDrainedNotification(t.Context().Done())
	made.SetUnconditionalAuthorizer(granted)
	if err := made.ValidateInitialization(); err != nil {
		t.Fatal(err)
	}
	factory.Start(t.Context().Done())
	factory.WaitForCacheSync(t.Context().Done())
	if !made.WaitForReady() {
		t.Fatal("the plugin is not ready")
	}
	return plugin{made}
}

// policiesIn returns the policies and the bindings of a manifest.
func policiesIn(t *testing.T, file string) []runtime.Object {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	decoder := utilyaml.NewYAMLOrJSONDecoder(bytes.NewReader(text), 4096)
	var objects []runtime.Object
	for {
		var raw runtime.RawExtension
		if err := decoder.Decode(&raw); errors.Is(err, io.EOF) {
			return objects
		} else if err != nil {
			t.Fatal(err)
		}
		object, _, err := scheme.Codecs.UniversalDeserializer().Decode(raw.Raw, nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		switch typed := object.(type) {
		case *admissionv1.ValidatingAdmissionPolicy:
			setDefaults(typed.Spec.MatchConstraints)
			objects = append(objects, typed)
		case *admissionv1.ValidatingAdmissionPolicyBinding:
			objects = append(objects, typed)
		}
	}
}

// setDefaults sets the defaults of the kube-apiserver that the plugin relies on.
func setDefaults(match *admissionv1.MatchResources) {
	match.MatchPolicy = ptr.To(admissionv1.Equivalent)
	for _, selector := range []**metav1.LabelSelector{&match.NamespaceSelector, &match.ObjectSelector} {
		if *selector == nil {
			*selector = &metav1.LabelSelector{}
		}
	}
}

// request is a write of a user; without an object it is a deletion, without an old one a creation.
type request struct {
	user        string
	object, old runtime.Object
	resource    schema.GroupVersionResource
	// swept is a deletion of a collection, which has no name.
	swept bool
}

func (p plugin) admit(t *testing.T, r request) error {
	t.Helper()
	operation, of := admission.Update, r.object
	var options runtime.Object = &metav1.UpdateOptions{}
	switch {
	case r.object == nil:
		operation, of, options = admission.Delete, r.old, &metav1.DeleteOptions{}
	case r.old == nil:
		operation, options = admission.Create, &metav1.CreateOptions{}
	}
	accessor, err := meta.Accessor(of)
	if err != nil {
		t.Fatal(err)
	}
	kinds, _, err := scheme.Scheme.ObjectKinds(of)
	if err != nil {
		t.Fatal(err)
	}
	name := accessor.GetName()
	if r.swept {
		name = ""
	}
	attributes := admission.NewAttributesRecord(r.object, r.old, kinds[0], accessor.GetNamespace(), name, r.resource, "", operation, options, false,
		&user.DefaultInfo{Name: r.user})
	return p.Validate(context.WithoutCancel(t.Context()), attributes, admission.NewObjectInterfacesFromScheme(scheme.Scheme))
}
