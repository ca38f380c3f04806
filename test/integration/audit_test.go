// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	authorizationv1 "k8s.io/api/authorization/v1"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
)

// auditPolicy makes the kube-apiserver log its access reviews with their users, and the
// requests of our two programs. Its counter of requests does not tell one caller's requests
// from another's.
const auditPolicy = `apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
- level: Request
  resources:
  - group: authorization.k8s.io
    resources: [subjectaccessreviews]
- level: Metadata
  users: ["` + controllerUser + `", "` + serverUser + `"]
- level: None
`

func (e *environment) auditLog() string { return filepath.Join(e.dir, "audit.log") }

func (e *environment) writeAuditPolicy() error {
	return os.WriteFile(filepath.Join(e.dir, "audit-policy.yaml"), []byte(auditPolicy), 0o600)
}

// accessReviews returns how many access reviews the kube-apiserver received for a user and
// resources of our group in a namespace.
func accessReviews(t *testing.T, namespace, user string) int {
	t.Helper()
	log, err := os.ReadFile(env.auditLog())
	if err != nil && !errors.Is(err, fs.ErrNotExist) { // it is made with the first entry
		t.Fatal(err)
	}
	asked := 0
	for line := range bytes.Lines(log) {
		if !bytes.HasSuffix(line, []byte("\n")) {
			break // it is being written
		}
		var event struct {
			RequestObject authorizationv1.SubjectAccessReview `json:"requestObject"`
		}
		if err := json.Unmarshal(line, &event); err != nil {
			t.Fatalf("audit log: %v: %s", err, line)
		}
		spec := event.RequestObject.Spec
		about := spec.ResourceAttributes
		if spec.User == user && about != nil && about.Group == v1beta2.SchemeGroupVersion.Group && about.Namespace == namespace {
			asked++
		}
	}
	return asked
}

// askedOnce waits for the one access review: it is logged after the response.
func askedOnce(t *testing.T, namespace, user string) {
	t.Helper()
	eventually(t, func(context.Context) error {
		if asked := accessReviews(t, namespace, user); asked != 1 {
			return fmt.Errorf("the kube-apiserver received %d access reviews, want 1", asked)
		}
		return nil
	})
}
