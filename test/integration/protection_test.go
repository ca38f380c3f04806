// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"context"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
)

const (
	namespaceUser = "system:serviceaccount:kube-system:namespace-controller"
	garbageUser   = "system:serviceaccount:kube-system:generic-garbage-collector"
	schedulerUser = "system:kube-scheduler"
	tenantUser    = "tenant"
	administrator = ""

	protectedObjects = `
apiVersion: v1
kind: List
items:
- {apiVersion: v1, kind: ServiceAccount, metadata: {name: default}}
- {apiVersion: rbac.authorization.k8s.io/v1, kind: Role, metadata: {name: tenant},
   rules: [{apiGroups: [""], resources: [persistentvolumeclaims, pods, secrets], verbs: [get, list, update, patch, delete]}]}
- {apiVersion: rbac.authorization.k8s.io/v1, kind: RoleBinding, metadata: {name: tenant},
   roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: tenant}, subjects: [{kind: User, name: tenant, apiGroup: rbac.authorization.k8s.io}]}
- {apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: c-a, MARKS}, spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}}
- {apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: other}, spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}}
- {apiVersion: v1, kind: Secret, metadata: {name: c-ca-tls, MARKS}}
- {apiVersion: v1, kind: Service, metadata: {name: c, MARKS}, spec: {clusterIP: None}}
- {apiVersion: policy/v1, kind: PodDisruptionBudget, metadata: {name: c, MARKS}, spec: {minAvailable: 1, selector: {matchLabels: {app: etcd}}}}
- {apiVersion: v1, kind: Pod, metadata: {name: c-a, MARKS}, spec: {containers: [{name: etcd, image: etcd}]}}
- {apiVersion: discovery.k8s.io/v1, kind: EndpointSlice, metadata: {name: c-x, MARKS}, addressType: IPv4, endpoints: []}
`
	marks = `labels: {app: etcd, etcd_cluster: c, etcd.database.coreos.com/deletion-protection: "true"}, annotations: {etcd.database.coreos.com/cluster-uid: uid}`
)

// installProtection applies the policy and the rights of the controller, as they are
// installed, and waits until the policy is in force.
func installProtection(t *testing.T, in string) {
	t.Helper()
	for _, manifest := range []string{"50-controller.yaml", "60-deletion-protection.yaml"} {
		mustKubectl(t, "apply", "-f", filepath.Join(env.repo, "artifacts", "install", manifest))
	}
	err := wait.PollUntilContextTimeout(t.Context(), 100*time.Millisecond, 30*time.Second, true, func(ctx context.Context) (bool, error) {
		output, err := env.kubectl(ctx, "-n", in, "delete", "secret", "c-ca-tls", "--dry-run=server")
		return err != nil && strings.Contains(err.Error()+output, "deletionProtection"), nil
	})
	if err != nil {
		t.Fatalf("the policy does not come into force: %v", err)
	}
}

// TestProtectedObjects asks the real kube-apiserver which user may delete or change what of
// a protected cluster. Every request is a dry run.
func TestProtectedObjects(t *testing.T) {
	t.Parallel()
	in := newNamespace(t)
	if output, err := env.kubectlWith(t.Context(), nil, strings.ReplaceAll(protectedObjects, "MARKS", marks), "-n", in, "apply", "-f", "-"); err != nil {
		t.Fatalf("%v %s", err, output)
	}
	installProtection(t, in)
	const unprotect, unmark, disown = "etcd.database.coreos.com/deletion-protection-", "etcd_cluster-", "etcd.database.coreos.com/cluster-uid=other"
	swept := func(resource string) []string { return []string{"delete", "--raw", resource} }
	for _, test := range []struct {
		user     string
		args     []string
		rejected bool
	}{
		{administrator, []string{"delete", "pvc", "c-a"}, true},
		{administrator, []string{"delete", "pvc", "--all"}, true},
		{administrator, []string{"delete", "pvc", "other"}, false},
		{administrator, []string{"delete", "secret", "--all"}, true},
		{administrator, []string{"delete", "service", "c"}, true},
		{administrator, []string{"delete", "pdb", "c"}, true},
		{administrator, []string{"delete", "pod", "c-a"}, false},
		{administrator, swept("/api/v1/namespaces/" + in + "/pods?dryRun=All"), true},
		{administrator, swept("/apis/discovery.k8s.io/v1/namespaces/" + in + "/endpointslices?dryRun=All"), true},
		{administrator, []string{"label", "pvc", "c-a", unprotect}, false},

		{tenantUser, []string{"delete", "pvc", "c-a"}, true},
		{tenantUser, []string{"delete", "secret", "c-ca-tls"}, true},
		{tenantUser, []string{"label", "pvc", "c-a", unprotect}, true},
		{tenantUser, []string{"label", "pvc", "c-a", unmark}, true},
		{tenantUser, []string{"annotate", "--overwrite", "secret", "c-ca-tls", disown}, true},
		{tenantUser, []string{"label", "secret", "c-ca-tls", "team=a"}, false},
		{tenantUser, []string{"delete", "pod", "c-a"}, false},

		{controllerUser, []string{"delete", "pvc", "c-a"}, false},
		{controllerUser, []string{"delete", "pod", "c-a"}, false},

		{namespaceUser, []string{"delete", "pod", "c-a"}, true},
		{namespaceUser, []string{"delete", "pvc", "c-a"}, true},
		{namespaceUser, []string{"delete", "pvc", "other"}, false},
		{namespaceUser, swept("/api/v1/namespaces/" + in + "/pods?dryRun=All"), true},
		{namespaceUser, swept("/api/v1/namespaces/" + in + "/secrets?dryRun=All"), true},
		{namespaceUser, []string{"delete", "endpointslice", "c-x"}, true},
		{garbageUser, []string{"delete", "pod", "c-a"}, true},
		{garbageUser, []string{"delete", "pvc", "c-a"}, true},
		{schedulerUser, []string{"delete", "pod", "c-a"}, false},
	} {
		args := []string{"-n", in}
		if test.user != administrator {
			args = append(args, "--as="+test.user)
		}
		args = append(args, test.args...)
		if !strings.Contains(strings.Join(args, " "), "--raw") {
			args = append(args, "--dry-run=server")
		}
		output, err := env.kubectl(t.Context(), args...)
		switch {
		case test.rejected && err == nil:
			t.Errorf("%q by %q is allowed: %s", test.args, test.user, output)
		case !test.rejected && err != nil:
			t.Errorf("%q by %q: %v", test.args, test.user, err)
		case test.rejected:
			contains(t, err.Error()+output, "EtcdCluster c has spec.deletionProtection=true", "kubectl patch etcd c -n "+in)
		}
	}
}
