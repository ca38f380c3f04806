// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package options

import (
	"context"
	"errors"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestStartWaitsForTheKubeAPIServer starts a server with a new storage while the kube-apiserver is
// not there. The look for CustomResourceDefinitions waits for it. The check of the storage would
// end the server after memberLookupTimeout.
func TestStartWaitsForTheKubeAPIServer(t *testing.T) {
	t.Parallel()
	o := parse(t, "--embedded-etcd-dir="+filepath.Join(t.TempDir(), "data"))
	o.Recommended.CoreAPI.CoreAPIKubeconfigPath = unreachable(t)
	o.memberLookupTimeout = time.Millisecond
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second) // a new storage settles its version for four of them
	defer cancel()
	err := o.Run(ctx)
	if !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "CustomResourceDefinition") {
		t.Errorf("the server ended with %v, want it to wait for the kube-apiserver", err)
	}
}
