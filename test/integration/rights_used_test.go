// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/etcd-operator/etcd-operator/test/harness"
)

// rightsElsewhere are rights of the API server that it does not use when it starts, each with the
// code that uses it. Keep a right here only if that code cannot do without it.
var rightsElsewhere = map[string]string{
	"get namespaces":               "namespace lifecycle of k8s.io/apiserver: reads a namespace that the cache does not have yet",
	"get resourcequotas":           "resource quota of k8s.io/apiserver: reads a quota again after a conflict",
	"update resourcequotas/status": "resource quota of k8s.io/apiserver: TestQuotaCountsClusters",
	"update secrets":               "pkg/apiserver/servingcert: renews the certificate",
}

// TestRightsAreUsed: each right of the API server is used when it starts, or is listed above with
// its user. TestRightsSuffice is the opposite: it fails if a right is missing.
func TestRightsAreUsed(t *testing.T) {
	t.Parallel()
	manifest, err := os.ReadFile(filepath.Join(env.repo, "artifacts", "install", "10-apiserver-rbac.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	// That role is bound to nothing: TestGrantedReadOfCertificates.
	granted, err := harness.GrantedRights(manifest, "etcd-operator-apiserver:read-tls")
	if err != nil {
		t.Fatal(err)
	}
	eventually(t, func(context.Context) error { // requests are logged after their responses
		used, err := harness.UsedRights(env.auditLog(), serverUser)
		if err != nil {
			return err
		}
		if wrong := harness.CompareRights(granted, used, rightsElsewhere); len(wrong) > 0 {
			return errorf("rights of the API server: %v", wrong)
		}
		return nil
	})
}
