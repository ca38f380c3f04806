// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"bytes"
	"context"
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"
	"sigs.k8s.io/yaml"
)

// right is one verb on one resource, as a rule of a role has it.
type right struct{ group, resource, verb string }

// rightsElsewhere are rights of the API server that it does not use when it starts, each with the
// code that uses it. Keep a right here only if that code cannot do without it.
var rightsElsewhere = map[right]string{
	{"", "namespaces", "get"}:               "namespace lifecycle of k8s.io/apiserver: reads a namespace that the cache does not have yet",
	{"", "resourcequotas", "get"}:           "resource quota of k8s.io/apiserver: reads a quota again after a conflict",
	{"", "resourcequotas/status", "update"}: "resource quota of k8s.io/apiserver: TestQuotaCountsClusters",
	{"", "secrets", "update"}:               "pkg/apiserver/servingcert: renews the certificate",
}

// TestRightsAreUsed: each right of the API server is used when it starts, or is listed above with
// its user. TestRightsSuffice is the opposite: it fails if a right is missing.
func TestRightsAreUsed(t *testing.T) {
	t.Parallel()
	granted := map[right]bool{}
	manifest, err := os.ReadFile(filepath.Join(env.repo, "artifacts", "install", "10-apiserver-rbac.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	for document := range bytes.SplitSeq(manifest, []byte("\n---\n")) {
		var role rbacv1.ClusterRole // a Role has the same fields
		if err := yaml.Unmarshal(document, &role); err != nil {
			t.Fatal(err)
		}
		if role.Name == "etcd-operator-apiserver:read-tls" {
			continue // bound to nothing: TestGrantedReadOfCertificates
		}
		for _, rule := range role.Rules {
			for _, group := range rule.APIGroups {
				for _, resource := range rule.Resources {
					for _, verb := range rule.Verbs {
						granted[right{group, resource, verb}] = true
					}
				}
			}
		}
	}
	for r := range rightsElsewhere {
		if !granted[r] {
			t.Errorf("%v is listed, and no role of the API server has it", r)
		}
	}
	eventually(t, func(context.Context) error { // requests are logged after their responses
		used := rightsUsed(t, serverUser)
		var idle []right
		for r := range maps.Keys(granted) {
			if _, listed := rightsElsewhere[r]; !used[r] && !listed {
				idle = append(idle, r)
			}
		}
		if len(idle) > 0 {
			slices.SortFunc(idle, func(a, b right) int { return bytes.Compare([]byte(a.resource+a.verb), []byte(b.resource+b.verb)) })
			return errorf("no request of the API server uses %v", idle)
		}
		return nil
	})
}

// rightsUsed returns what a user did, from the audit log of the kube-apiserver.
func rightsUsed(t *testing.T, user string) map[right]bool {
	t.Helper()
	log, err := os.ReadFile(env.auditLog())
	if err != nil {
		t.Fatal(err)
	}
	used := map[right]bool{}
	for line := range bytes.Lines(log) {
		var event auditv1.Event
		if !bytes.HasSuffix(line, []byte("\n")) || json.Unmarshal(line, &event) != nil || event.User.Username != user || event.ObjectRef == nil {
			continue
		}
		r := right{event.ObjectRef.APIGroup, event.ObjectRef.Resource, event.Verb}
		if event.ObjectRef.Subresource != "" {
			r.resource += "/" + event.ObjectRef.Subresource
		}
		used[r] = true
		if r.verb == "watch" {
			// An informer lists where the kube-apiserver does not send the first state by the watch.
			used[right{r.group, r.resource, "list"}] = true
		}
	}
	return used
}
