// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/test/servers"
)

const apiServiceName = "v1beta2.etcd.database.coreos.com"

// service stands for the Service that selects the pods of the API server.
const service = `apiVersion: v1
kind: Service
metadata: {name: etcd-operator-apiserver, namespace: ` + systemNamespace + `}
spec: {type: ExternalName, externalName: localhost}
`

// userRights lets ordinary users do everything with EtcdClusters of both groups.
const userRights = `apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: bench}
rules:
- apiGroups: [` + crdGroup + `, etcd.database.coreos.com]
  resources: [etcdclusters, etcdclusters/status]
  verbs: ["*"]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: bench}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: bench}
subjects:
- {apiGroup: rbac.authorization.k8s.io, kind: Group, name: ` + ordinaryGroup + `}
`

// install applies the manifests that users apply, but for those that need nodes.
func (e *environment) install(ctx context.Context) error {
	port, err := servers.FreePort()
	if err != nil {
		return err
	}
	e.serverURL = fmt.Sprintf("https://127.0.0.1:%d", port)
	for _, manifest := range []string{"00-namespace.yaml", "10-apiserver-rbac.yaml", "30-apiserver-registration.yaml", "40-user-roles.yaml"} {
		if _, err := e.kubectl(ctx, nil, "apply", "-f", filepath.Join(e.repository, "artifacts", "install", manifest)); err != nil {
			return err
		}
	}
	if _, err := e.kubectl(ctx, []byte(service), "apply", "-f", "-"); err != nil {
		return err
	}
	if _, err := e.kubectl(ctx, []byte(userRights), "apply", "-f", "-"); err != nil {
		return err
	}
	_, err = e.kubectl(ctx, nil, "patch", "apiservice", apiServiceName, "--type=merge", "-p", fmt.Sprintf(`{"spec":{"service":{"port":%d}}}`, port))
	return err
}

func (e *environment) installCRD(ctx context.Context) error {
	if e.withoutCRD {
		return nil
	}
	manifest, err := crdManifest()
	if err != nil {
		return err
	}
	_, err = e.kubectl(ctx, manifest, "create", "-f", "-")
	return err
}

// kubectl runs kubectl as the administrator and returns what it prints.
func (e *environment) kubectl(ctx context.Context, input []byte, args ...string) ([]byte, error) {
	command := exec.CommandContext(ctx, filepath.Join(e.bin, "kubectl"), args...)
	command.Env = append(os.Environ(), "KUBECONFIG="+e.kubeconfig, "HOME="+e.dir)
	command.Stdin = bytes.NewReader(input)
	output, err := command.Output()
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) {
		err = fmt.Errorf("kubectl %v: %w: %s", args, err, exit.Stderr)
	}
	return output, err
}

// serverTrust returns the CA of the API server, which the APIService names.
func (e *environment) serverTrust(ctx context.Context) ([]byte, error) {
	encoded, err := e.kubectl(ctx, nil, "get", "apiservice", apiServiceName, "-o", "jsonpath={.spec.caBundle}")
	if err != nil {
		return nil, err
	}
	return base64.StdEncoding.DecodeString(string(encoded))
}

// waitServed returns when both groups list EtcdClusters.
func (e *environment) waitServed(ctx context.Context) error {
	client, err := newClient(e.admin)
	if err != nil {
		return err
	}
	defer client.CloseIdleConnections()
	groups := []string{v1beta2.SchemeGroupVersion.Group}
	if !e.withoutCRD {
		groups = append(groups, crdGroup)
	}
	for _, group := range groups {
		path := e.kubeURL + "/apis/" + group + "/v1beta2/namespaces/default/etcdclusters"
		var last error
		err := wait.PollUntilContextCancel(ctx, 100*time.Millisecond, true, func(ctx context.Context) (bool, error) {
			_, last = send(ctx, client, call{method: http.MethodGet, url: path})
			return last == nil, nil
		})
		if err != nil {
			return fmt.Errorf("%s is not served: %w (last: %w)\n%s", group, err, last, e.processes[ownServer].Tail())
		}
	}
	return nil
}

func portOf(address string) string {
	parsed, err := url.Parse(address)
	if err != nil {
		return ""
	}
	return parsed.Port()
}
