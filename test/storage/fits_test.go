// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package storage_test

import (
	"path/filepath"
	"strings"
	"testing"
)

// TestCommandFitsTheInstallation: a command that would fill a storage that the API servers do not use stops nothing and says which
// one does. A Deployment that an attempt which was ended has deleted is no reason to end.
func TestCommandFitsTheInstallation(t *testing.T) {
	const (
		managed = "https://etcd-operator-storage-0.etcd-operator-storage.etcd-operator-system.svc:2379,https://etcd-operator-storage-1.etcd-operator-storage.etcd-operator-system.svc:2379"
		ofUser  = "https://etcd-0.example.com:2379"
	)
	for name, test := range map[string]struct {
		command, deployment, servers string
		members                      bool
		rejects                      string
	}{
		"restore, members":                             {command: "restore", deployment: external, servers: managed, members: true},
		"restore, members named in the arguments":      {command: "restore", deployment: `["--etcd-servers=` + managed + `"]`, members: true},
		"restore, no Deployment":                       {command: "restore"},
		"restore, single":                              {command: "restore", deployment: embedded, rejects: "use storage.sh restore-single"},
		"restore, single beside members":               {command: "restore", deployment: embedded, servers: managed, members: true, rejects: "then restore-single; or apply artifacts/ha again"},
		"restore, external":                            {command: "restore", deployment: external, servers: ofUser, rejects: "an etcd of your own"},
		"restore, external, members are left":          {command: "restore", deployment: external, servers: ofUser, members: true, rejects: "an etcd of your own"},
		"restore-single, single":                       {command: "restore-single", deployment: embedded},
		"restore-single, single beside members":        {command: "restore-single", deployment: embedded, members: true, rejects: "then restore-single; or apply artifacts/ha again"},
		"restore-single, no Deployment":                {command: "restore-single"},
		"restore-single, members that were deleted":    {command: "restore-single", deployment: external, servers: managed},
		"restore-single, members":                      {command: "restore-single", deployment: external, servers: managed, members: true, rejects: "use storage.sh restore"},
		"restore-single, members without a Deployment": {command: "restore-single", members: true, rejects: "use storage.sh restore"},
		"restore-single, external":                     {command: "restore-single", deployment: external, servers: ofUser, rejects: "an etcd of your own"},
		"from-single, external":                        {command: "from-single", deployment: external, servers: ofUser, rejects: "an etcd of your own"},
		"to-single, external, members are left":        {command: "to-single", deployment: external, servers: ofUser, members: true, rejects: "an etcd of your own"},
	} {
		t.Run(name, func(t *testing.T) {
			i := newInstallation(t)
			for file, content := range map[string]string{"deployment": test.deployment, "servers": test.servers, "saved.db": "objects"} {
				if content != "" {
					i.has(file, content)
				}
			}
			if !test.members {
				i.has("without-members", "")
			}
			args := []string{test.command}
			if strings.HasPrefix(test.command, "restore") {
				args = append(args, filepath.Join(i.root, "saved.db"))
			}
			// The call after the programs were stopped ends the script.
			out, _ := i.storage("012", "wait --for=delete pod", args...)
			if i.hasStopped() != (test.rejects == "") || !strings.Contains(out, test.rejects) {
				t.Errorf("stopped: %t, want the error %q: %s", i.hasStopped(), test.rejects, out)
			}
		})
	}
}
