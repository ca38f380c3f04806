// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/etcd-operator/etcd-operator/test/harness"
)

// rightsElsewhere are rights of the controller that the suite does not see it use, each with the code that
// uses it. Keep a right here only if that code cannot do without it.
var rightsElsewhere = map[string]string{
	"release-protected etcdclusters.etcd.database.coreos.com": "artifacts/install/60-deletion-protection.yaml: recognises the controller by it",
	"get jobs.batch": "pkg/controller/backup, pkg/controller/restore: read the Job whose name is taken, after a process ended while it created one",
	"update etcdbackups.etcd.database.coreos.com": "pkg/controller/backup: takes a finalizer of earlier releases away, and follows spec.backup",
	"delete etcdbackups.etcd.database.coreos.com": "pkg/controller/backup: deletes an EtcdBackup whose spec.ttl is over",
	"use secrets":         "pkg/registry/etcd/rights: the API server asks whether the controller may name it",
	"use serviceaccounts": "pkg/registry/etcd/rights: the API server asks whether the controller may name it",
}

// unusedRights returns an error if the whole suite has run, and the controller did not use a right that
// artifacts/install grants it. It reads the audit log of the local Kubernetes.
func unusedRights() error {
	run := flag.Lookup("test.run")
	if *coreOnly || run == nil || run.Value.String() != "" || !env.IsLocal() {
		return nil
	}
	logs, err := env.LocalTool(context.Background(), "logs-dir")
	if err != nil {
		return err
	}
	used, err := harness.UsedRights(filepath.Join(strings.TrimSpace(logs), "audit.log"), "system:serviceaccount:"+harness.SystemNamespace+":"+harness.Controller)
	if errors.Is(err, fs.ErrNotExist) {
		fmt.Fprintln(os.Stderr, "end-to-end tests: the rights of the controller were not compared with its requests: the local Kubernetes has no audit log (up --audit)")
		return nil
	}
	if err != nil {
		return fmt.Errorf("read the audit log: %w", err)
	}
	manifest, err := os.ReadFile(env.Artifact("install", "50-controller.yaml"))
	if err != nil {
		return err
	}
	granted, err := harness.GrantedRights(manifest)
	if err != nil {
		return err
	}
	if wrong := harness.CompareRights(granted, used, rightsElsewhere); len(wrong) > 0 {
		return fmt.Errorf("rights of the controller: %s", strings.Join(wrong, "; "))
	}
	return nil
}
