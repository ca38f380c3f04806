// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
)

// try is a request of the holder of a role, below the namespace, and its outcome.
type try struct {
	do   string // method and path
	body string
	code int
	says string
}

// role is a row of docs/explanation/security.md: a right, and the worst that its holder can try.
type role struct {
	name  string
	rules []rbacv1.PolicyRule
	tries []try
}

// ofGroup is a rule for resources of the group.
func ofGroup(verbs string, resources ...string) rbacv1.PolicyRule {
	return rbacv1.PolicyRule{APIGroups: []string{v1beta2.SchemeGroupVersion.Group}, Resources: resources, Verbs: strings.Fields(verbs)}
}

// ofCore is a rule for an object of Kubernetes itself.
func ofCore(verbs, resource, name string) rbacv1.PolicyRule {
	return rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{resource}, ResourceNames: []string{name}, Verbs: strings.Fields(verbs)}
}

// tenant is a namespace with something worth taking, and a user with one role in it.
type tenant struct {
	namespace, user string
	client          *http.Client
}

const (
	storeSecret  = "store"
	s3OfTheOwner = `"storageType":"S3","s3":{"path":"bucket/key","awsSecret":"store","endpoint":"https://s3.example.com"}`
)

func newTenant(t *testing.T, namespace string, rules ...rbacv1.PolicyRule) *tenant {
	t.Helper()
	w := &tenant{namespace: namespace, user: "holder-" + namespace}
	for _, secret := range []string{storeSecret, "mine"} {
		if _, err := env.client.CoreV1().Secrets(namespace).Create(t.Context(), &corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Name: secret}, StringData: map[string]string{"credentials": "canary"},
		}, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	owned := newCluster("owned")
	owned.Spec.Backup = &v1beta2.ClusterBackupPolicy{StorageType: v1beta2.BackupStorageTypeS3, BackupSource: v1beta2.BackupSource{
		S3: &v1beta2.S3BackupSource{Path: "bucket/key", AWSSecret: storeSecret, Endpoint: "https://s3.example.com"},
	}}
	create(t, namespace, owned)
	secured := newCluster("secured")
	secured.Spec.TLS = &v1beta2.TLSPolicy{Static: &v1beta2.StaticTLS{
		OperatorSecret: storeSecret, Member: &v1beta2.MemberSecret{PeerSecret: storeSecret, ServerSecret: storeSecret},
	}}
	secured.Spec.Backup = owned.Spec.Backup.DeepCopy()
	create(t, namespace, secured)
	kept := newCluster("kept")
	kept.Spec.DeletionProtection = ptr.To(true)
	create(t, namespace, kept)
	backedUp(t, namespace, "owned", "good", 81)
	if _, err := env.etcd.EtcdV1beta2().EtcdBackups(namespace).Create(t.Context(), &v1beta2.EtcdBackup{
		ObjectMeta: metav1.ObjectMeta{Name: "series"},
		Spec: v1beta2.BackupSpec{
			EtcdCluster: &v1beta2.EtcdClusterRef{Name: "owned"}, StorageType: v1beta2.BackupStorageTypeS3,
			BackupSource: *owned.Spec.Backup.BackupSource.DeepCopy(), BackupPolicy: &v1beta2.BackupPolicy{Schedule: "@daily"},
		},
	}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	bind(t, namespace, w.user, rules...)
	config := rest.CopyConfig(env.admin)
	config.Impersonate = rest.ImpersonationConfig{UserName: w.user}
	var err error
	if w.client, err = rest.HTTPClientFor(config); err != nil {
		t.Fatal(err)
	}
	return w
}

// bind gives a user a role in a namespace, and returns when it is in force.
func bind(t *testing.T, namespace, user string, rules ...rbacv1.PolicyRule) {
	t.Helper()
	meta := metav1.ObjectMeta{Name: "role-of-" + user}
	if _, err := env.client.RbacV1().Roles(namespace).Create(t.Context(), &rbacv1.Role{ObjectMeta: meta, Rules: rules}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := env.client.RbacV1().RoleBindings(namespace).Create(t.Context(), &rbacv1.RoleBinding{
		ObjectMeta: meta, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: meta.Name},
		Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: "User", Name: user}},
	}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	for _, rule := range rules {
		resource, subresource, _ := strings.Cut(rule.Resources[0], "/")
		eventually(t, func(ctx context.Context) error {
			about := authorizationv1.ResourceAttributes{Namespace: namespace, Verb: rule.Verbs[0], Group: rule.APIGroups[0], Resource: resource, Subresource: subresource}
			if len(rule.ResourceNames) > 0 {
				about.Name = rule.ResourceNames[0]
			}
			if !may(ctx, t, user, about) {
				return errorf("%s has no %s %s yet", user, about.Verb, rule.Resources[0])
			}
			return nil
		})
	}
}

// may asks the kube-apiserver what a user may do.
func may(ctx context.Context, t *testing.T, user string, about authorizationv1.ResourceAttributes) bool {
	t.Helper()
	review, err := env.client.AuthorizationV1().SubjectAccessReviews().Create(ctx, &authorizationv1.SubjectAccessReview{
		Spec: authorizationv1.SubjectAccessReviewSpec{User: user, ResourceAttributes: &about},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return review.Status.Allowed
}

// send sends the request of a try and returns the response of the kube-apiserver.
func (w *tenant) send(t *testing.T, attempt try) (int, string) {
	t.Helper()
	method, path, _ := strings.Cut(attempt.do, " ")
	prefix := "/apis/" + v1beta2.SchemeGroupVersion.String()
	if !strings.HasPrefix(path, "etcd") {
		prefix = "/api/v1"
	}
	request, err := http.NewRequestWithContext(t.Context(), method, fmt.Sprintf("%s%s/namespaces/%s/%s", env.admin.Host, prefix, w.namespace, path), strings.NewReader(attempt.body))
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Content-Type", map[string]string{http.MethodPatch: "application/merge-patch+json"}[method])
	if method != http.MethodPatch {
		request.Header.Set("Content-Type", "application/json")
	}
	if strings.Contains(path, "fieldManager=") {
		request.Header.Set("Content-Type", "application/apply-patch+yaml")
	}
	response, err := w.client.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response.StatusCode, string(body)
}

// outOfReach is what no right on the group gives.
var outOfReach = []try{
	{do: "GET secrets/store", code: 403},
	{do: "GET secrets", code: 403},
	{do: "POST pods", body: `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"p"},"spec":{"containers":[{"name":"c","image":"i"}]}}`, code: 403},
	{do: "GET etcdclusters/owned/proxy/snapshot", code: 403},
	{do: "PATCH etcdclusters/owned/status", body: `{"status":{"phase":"Running"}}`, code: 403},
}

// TestRights: the holder of exactly one role tries the worst. docs/explanation/security.md tells of each.
func TestRights(t *testing.T) {
	for _, r := range roles {
		t.Run(r.name, func(t *testing.T) {
			t.Parallel()
			w := newTenant(t, newNamespace(t), r.rules...)
			tried := map[string]bool{}
			for _, attempt := range slices.Concat(r.tries, outOfReach) {
				// What the role itself allows is in its own list.
				if key := attempt.do; tried[key] && attempt.body == "" || tried[key] && slices.ContainsFunc(outOfReach, func(o try) bool { return o.do == key }) {
					continue
				}
				tried[attempt.do] = true
				code, body := w.send(t, attempt)
				if code != attempt.code || !strings.Contains(body, attempt.says) {
					t.Errorf("%s %s: status %d, want %d and %q:\n%s", attempt.do, attempt.body, code, attempt.code, attempt.says, body)
				}
				if strings.Contains(body, "canary") {
					t.Errorf("%s shows the content of a Secret: %s", attempt.do, body)
				}
			}
		})
	}
}

// TestSecurityTable: each row of the table has its test, and each test its row.
func TestSecurityTable(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(filepath.Join(env.repo, "docs", "explanation", "security.md"))
	if err != nil {
		t.Fatal(err)
	}
	var documented []string
	for _, match := range regexp.MustCompile("(?m)`(Test[A-Za-z]+(?:/[a-z-]+)?)` \\|$").FindAllSubmatch(text, -1) {
		documented = append(documented, string(match[1]))
	}
	var tested []string
	for _, r := range roles {
		tested = append(tested, "TestRights/"+r.name)
	}
	for _, test := range documented {
		switch name, _, row := strings.Cut(test, "/"); {
		case row && !slices.Contains(tested, test):
			t.Errorf("docs/explanation/security.md names %s, which is not there", test)
		case !row && !hasTest(t, name):
			t.Errorf("docs/explanation/security.md names %s, and no file of test/integration has it", name)
		}
	}
	for _, test := range tested {
		if !slices.Contains(documented, test) {
			t.Errorf("docs/explanation/security.md has no row for %s", test)
		}
	}
	// Every subresource has a row.
	for _, sub := range []string{"status", "scale", "backup", "restore", "recover", "defrag", "moveleader", "restart", "replace", "health", "members", "proxy"} {
		if !bytes.Contains(text, []byte("etcdclusters/"+sub+"`")) {
			t.Errorf("docs/explanation/security.md has no row for etcdclusters/%s", sub)
		}
	}
}

func hasTest(t *testing.T, name string) bool {
	t.Helper()
	files, err := filepath.Glob("*_test.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		content, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if bytes.Contains(content, []byte("\nfunc "+name+"(t *testing.T) {")) {
			return true
		}
	}
	return false
}

// TestRightsOfTheAPIServer: what its ServiceAccount has, and what a thief of it lacks.
func TestRightsOfTheAPIServer(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		verb, group, resource, namespace, name string
		want                                   bool
	}{
		{"list", "", "pods", "kube-system", "", true},
		{"list", "", "persistentvolumeclaims", "kube-system", "", true},
		{"update", "", "resourcequotas/status", "kube-system", "q", true},
		{"create", "authorization.k8s.io", "subjectaccessreviews", "", "", true},
		{"create", "", "secrets", namespace, "", true},
		{"get", "", "secrets", namespace, "etcd-operator-apiserver-tls", true},
		{"get", "", "secrets", "kube-system", "any", false},
		{"list", "", "secrets", "kube-system", "", false},
		{"get", "", "secrets", namespace, "another", false},
		{"get", "", "configmaps", "default", "any", false},
		{"create", "", "pods", "kube-system", "", false},
		{"delete", "", "pods", "kube-system", "p", false},
		{"update", "", "persistentvolumeclaims", "kube-system", "c", false},
		{"update", "", "resourcequotas", "kube-system", "q", false},
		{"impersonate", "", "users", "", "admin", false},
		{"bind", "rbac.authorization.k8s.io", "clusterroles", "", "cluster-admin", false},
		{"patch", "apiregistration.k8s.io", "apiservices", "", "v1.apps", false},
		{"get", "apiextensions.k8s.io", "customresourcedefinitions", "", "etcdclusters.etcd.database.coreos.com", true},
		{"get", "apiextensions.k8s.io", "customresourcedefinitions", "", "certificates.cert-manager.io", false},
		{"delete", "apiextensions.k8s.io", "customresourcedefinitions", "", "etcdclusters.etcd.database.coreos.com", false},
	} {
		got := may(t.Context(), t, serverUser, about(test.verb, test.group, test.resource, test.namespace, test.name))
		if got != test.want {
			t.Errorf("%s %s %q in %q: %t, want %t", test.verb, test.resource, test.name, test.namespace, got, test.want)
		}
	}
}

func about(verb, group, resource, namespace, name string) authorizationv1.ResourceAttributes {
	resource, subresource, _ := strings.Cut(resource, "/")
	return authorizationv1.ResourceAttributes{Verb: verb, Group: group, Resource: resource, Subresource: subresource, Namespace: namespace, Name: name}
}

// TestRightsOfTheController: it makes pods and reads Secrets by name in every namespace, so
// that its token gives everything that pods can reach. It cannot grant rights.
func TestRightsOfTheController(t *testing.T) {
	t.Parallel()
	mustKubectl(t, "apply", "-f", filepath.Join(env.repo, "artifacts", "install", "50-controller.yaml"))
	const controller = "system:serviceaccount:" + namespace + ":etcd-operator-controller"
	for _, test := range []struct {
		verb, group, resource, name string
		want                        bool
	}{
		{"create", "", "pods", "", true},
		{"update", "", "configmaps", "any", true},
		{"delete", "", "configmaps", "any", false},
		{"get", "", "secrets", "any", true},
		{"use", "", "serviceaccounts", "any", true},
		{"create", "batch", "jobs", "", true},
		{"create", v1beta2.SchemeGroupVersion.Group, "etcdclusters", "", true},
		{"get", "coordination.k8s.io", "leases", "any", true},
		{"update", "coordination.k8s.io", "leases", "any", false},
		{"list", "", "nodes", "", true},
		{"watch", "", "nodes", "", true},
		{"update", "", "nodes", "any", false},
		{"list", "", "secrets", "", false},
		{"watch", "", "secrets", "", false},
		{"delete", "", "secrets", "any", true}, // as update: either ends what a Secret holds
		{"impersonate", "", "serviceaccounts", "any", false},
		{"create", "", "pods/exec", "any", false},
		{"bind", "rbac.authorization.k8s.io", "clusterroles", "cluster-admin", false},
		{"create", "rbac.authorization.k8s.io", "rolebindings", "", false},
		{"create", "", "serviceaccounts/token", "any", false},
		{"update", v1beta2.SchemeGroupVersion.Group, "etcdclusters", "any", false},
		{"patch", v1beta2.SchemeGroupVersion.Group, "etcdclusters", "any", true},
		{"release-protected", v1beta2.SchemeGroupVersion.Group, "etcdclusters", "any", true},
		{"exceed-rate", v1beta2.SchemeGroupVersion.Group, "etcdbackups", "", true},
		{"exceed", v1beta2.SchemeGroupVersion.Group, "etcdclusters", "", false},
		{"create", v1beta2.SchemeGroupVersion.Group, "etcdclusters/proxy", "any", false},
	} {
		eventually(t, func(ctx context.Context) error {
			if got := may(ctx, t, controller, about(test.verb, test.group, test.resource, "kube-system", test.name)); got != test.want {
				return errorf("%s %s %q: %t, want %t", test.verb, test.resource, test.name, got, test.want)
			}
			return nil
		})
	}
}

// TestGrantedReadOfCertificates: without the role that reads Secrets, a request that asks the
// members of a cluster with TLS says what to grant; with it, it finds the Secret.
func TestGrantedReadOfCertificates(t *testing.T) {
	t.Parallel()
	w := newTenant(t, newNamespace(t), ofGroup("get", "etcdclusters/health"))
	health := try{do: "GET etcdclusters/secured/health"}
	const command = "create rolebinding etcd-operator-apiserver:read-tls --clusterrole=etcd-operator-apiserver:read-tls --serviceaccount=etcd-operator-system:etcd-operator-apiserver"
	if code, body := w.send(t, health); code != http.StatusOK || !strings.Contains(body, "kubectl -n "+w.namespace+" "+command) {
		t.Errorf("without the right: status %d, want one that names the command: %s", code, body)
	}
	if output, err := post(t, "{}", raw(w.namespace, "secured", "backup")+"?dryRun=All"); err != nil {
		t.Errorf("a backup, which the controller makes: %v %s", err, output)
	}
	contains(t, rejectedKubectl(t, "{}", "create", "--raw", raw(w.namespace, "secured", "moveleader"), "-f", "-"), command)
	contains(t, rejectedKubectl(t, "", "get", "--raw", raw(w.namespace, "secured", "proxy/snapshot")), command)
	mustKubectl(t, append([]string{"-n", w.namespace}, strings.Fields(command)...)...)
	eventually(t, func(context.Context) error {
		if code, body := w.send(t, health); code != http.StatusOK || strings.Contains(body, "rolebinding") || !strings.Contains(body, "secret store") {
			return errorf("with the right: status %d: %s", code, body)
		}
		return nil
	})
}

// TestControllerNamesWhatUsersNamed checks that the controller may use the Secrets that a user has
// named, and that GitOps may change other fields of the same object.
func TestControllerNamesWhatUsersNamed(t *testing.T) {
	t.Parallel()
	w := newTenant(t, newNamespace(t), ofGroup("create", "etcdbackups"), ofCore("use", "secrets", "*"))
	body := `{"metadata":{"name":"x"},"spec":{"etcdCluster":{"name":"owned"},` + s3OfTheOwner + `}}`
	if code, said := w.send(t, try{do: "POST etcdbackups", body: body}); code != http.StatusForbidden {
		t.Errorf("a rule for a Secret named *: status %d: %s", code, said)
	}
	every := rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"secrets", "serviceaccounts"}, Verbs: []string{"use"}}
	bind(t, w.namespace, "controller-"+w.namespace, ofGroup("create", "etcdbackups"), every)
	w.user = "controller-" + w.namespace
	config := rest.CopyConfig(env.admin)
	config.Impersonate = rest.ImpersonationConfig{UserName: w.user}
	var err error
	if w.client, err = rest.HTTPClientFor(config); err != nil {
		t.Fatal(err)
	}
	if code, said := w.send(t, try{do: "POST etcdbackups", body: body}); code != http.StatusCreated {
		t.Errorf("with the right of the controller: status %d: %s", code, said)
	}
}
