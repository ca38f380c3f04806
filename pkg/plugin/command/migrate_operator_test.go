// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package command_test

import (
	"context"
	"crypto/sha256"
	"errors"
	"io"
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/etcd-operator/etcd-operator/pkg/plugin/connect"
	"github.com/etcd-operator/etcd-operator/pkg/plugin/failure"
	"github.com/etcd-operator/etcd-operator/pkg/plugin/plugintest"
)

const (
	definitionPath = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/"
	groupPath      = "/apis/etcd.database.coreos.com/v1beta2/"
	podsPath       = "/api/v1/namespaces/prod/pods"
)

type object = map[string]any

// listOf is a list of objects of any kind.
func listOf(kind string, items ...any) object {
	if items == nil {
		items = []any{}
	}
	return object{"apiVersion": "v1", "kind": kind + "List", "metadata": object{}, "items": items}
}

// putOriginal serves a Kubernetes with the original etcd-operator and one cluster.
func putOriginal(server *plugintest.Server) {
	for _, resource := range []string{"etcdbackups", "etcdrestores", "etcdclusters"} {
		name := resource + ".etcd.database.coreos.com"
		server.Put(definitionPath+name, object{"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": object{"name": name, "uid": "u-" + resource}})
		server.Put(groupPath+resource, listOf("Etcd"))
	}
	server.Put("/apis/apiregistration.k8s.io/v1/apiservices/v1beta2.etcd.database.coreos.com", object{
		"apiVersion": "apiregistration.k8s.io/v1", "kind": "APIService", "metadata": object{"name": "v1beta2.etcd.database.coreos.com"}, "spec": object{"group": "etcd.database.coreos.com"}})
	cluster := object{"apiVersion": "etcd.database.coreos.com/v1beta2", "kind": "EtcdCluster", "metadata": object{"name": "old", "namespace": "prod", "uid": "c1"}, "spec": object{"size": 3}}
	server.Put(groupPath+"etcdclusters", listOf("EtcdCluster", cluster))
	operator := appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: "etcd-operator", Namespace: "ops"}}
	operator.Spec.Template.Spec.Containers = []corev1.Container{{Command: []string{"etcd-operator"}}}
	server.Put("/apis/apps/v1/deployments", &appsv1.DeploymentList{Items: []appsv1.Deployment{operator}})
	pod := corev1.Pod{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"}, ObjectMeta: metav1.ObjectMeta{Name: "old-x", Namespace: "prod", Labels: map[string]string{"etcd_cluster": "old"},
		OwnerReferences: []metav1.OwnerReference{{APIVersion: "etcd.database.coreos.com/v1beta2", Kind: "EtcdCluster", Name: "old", UID: "c1"}}}}
	pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
	server.Put(podsPath, &corev1.PodList{Items: []corev1.Pod{pod}})
	server.Put("/api/v1/pods", listOf("Pod", pod))
	server.Put("/api/v1/services", listOf("Service"))
	server.Put("/api/v1/persistentvolumeclaims", listOf("PersistentVolumeClaim"))
}

// TestMigrateOperatorPlan: a dry run prints the plan, and sends no request that changes something.
func TestMigrateOperatorPlan(t *testing.T) {
	server := plugintest.New(t)
	putOriginal(server)
	p := newTerminal(t, server, false)
	p.Exec = status
	p.expect(p.run("migrate", "operator", "--dir", "export"), failure.CodeDone)
	golden(t, "migrate-operator-plan", p.out.String()+p.err.String())
	expectRequests(t, server)
}

// status is etcdctl in the pod of a member that responds.
func status(_ context.Context, _ *connect.Clients, _ *corev1.Pod, _ []string, _ io.Reader, out, _ io.Writer) error {
	_, err := io.WriteString(out, `[{"Status":{"header":{"revision":812},"version":"3.3.27"}}]`)
	return err
}

// TestMigrateOperatorRejects: what keeps the migration from its start. Nothing is changed then.
func TestMigrateOperatorRejects(t *testing.T) {
	fails := func(err error) func(context.Context, *connect.Clients, *corev1.Pod, []string, io.Reader, io.Writer, io.Writer) error {
		return func(context.Context, *connect.Clients, *corev1.Pod, []string, io.Reader, io.Writer, io.Writer) error {
			return err
		}
	}
	for name, c := range map[string]struct {
		prepare  func(*plugintest.Server, *terminal)
		args     string
		terminal bool
		in       string
		code     failure.Code
		want     []string
	}{
		"no CustomResourceDefinition": {prepare: func(s *plugintest.Server, _ *terminal) {
			for _, resource := range []string{"etcdbackups", "etcdrestores", "etcdclusters"} {
				s.Put(definitionPath+resource+".etcd.database.coreos.com", apierrors.NewNotFound(corev1.Resource("crd"), resource))
			}
		}, code: failure.CodeNotMet, want: []string{"no CustomResourceDefinition of the group etcd.database.coreos.com exists"}},
		"definitions may not be read": {prepare: func(s *plugintest.Server, _ *terminal) {
			s.Put(definitionPath+"etcdbackups.etcd.database.coreos.com", plugintest.Forbidden("customresourcedefinitions", "x"))
		}, code: failure.CodeForbidden, want: []string{"the right to get customresourcedefinitions in all namespaces is missing"}},
		"this operator is registered": {prepare: func(s *plugintest.Server, _ *terminal) {
			s.Put("/apis/apiregistration.k8s.io/v1/apiservices/v1beta2.etcd.database.coreos.com", object{"apiVersion": "apiregistration.k8s.io/v1", "kind": "APIService",
				"metadata": object{"name": "x"}, "spec": object{"service": object{"namespace": "ns", "name": "server"}}})
		}, code: failure.CodeNotMet, want: []string{"routes the group to Service ns/server", "kubectl delete apiservice v1beta2.etcd.database.coreos.com"}},
		"this operator has clusters": {prepare: func(s *plugintest.Server, _ *terminal) {
			s.Put("/apis/apiregistration.k8s.io/v1/apiservices/v1beta2.etcd.database.coreos.com", object{"apiVersion": "apiregistration.k8s.io/v1", "kind": "APIService",
				"metadata": object{"name": "x"}, "spec": object{"service": object{"namespace": "ns", "name": "server"}}})
			s.Put("/api/v1/services", listOf("Service", object{"apiVersion": "v1", "kind": "Service", "metadata": object{"name": "mine", "namespace": "prod",
				"annotations": object{"etcd.database.coreos.com/seed": "a"}, "ownerReferences": []object{{"apiVersion": "etcd.database.coreos.com/v1beta2", "kind": "EtcdCluster", "name": "mine", "uid": "m"}}}}))
		}, code: failure.CodeNotMet, want: []string{"such as that of services prod/mine. Do not delete the APIService", "kubectl delete crd etcdbackups.etcd.database.coreos.com etcdrestores"}},
		"no Deployment": {prepare: func(s *plugintest.Server, _ *terminal) { s.Put("/apis/apps/v1/deployments", &appsv1.DeploymentList{}) },
			code: failure.CodeNotMet, want: []string{"no Deployment of the original etcd-operator was found", "add --operator-stopped"}},
		"no Deployment, but it is stopped": {prepare: func(s *plugintest.Server, _ *terminal) { s.Put("/apis/apps/v1/deployments", &appsv1.DeploymentList{}) },
			args: "--operator-stopped", code: failure.CodeDone, want: []string{"none found", "Nothing was changed"}},
		"no ready member": {prepare: func(s *plugintest.Server, _ *terminal) { s.Put(podsPath, &corev1.PodList{}) }, args: "--yes",
			code: failure.CodeNotMet, want: []string{"no member of prod/old is ready"}},
		"an etcd that does not respond": {prepare: func(_ *plugintest.Server, p *terminal) { p.Exec = fails(errors.New("exit status 1")) }, args: "--yes",
			code: failure.CodeNotMet, want: []string{"etcd in pod prod/old-x does not respond: exit status 1"}},
		"an etcdctl without a status": {prepare: func(_ *plugintest.Server, p *terminal) { p.Exec = fails(nil) }, args: "--yes",
			code: failure.CodeNotMet, want: []string{"etcd in pod prod/old-x: the response of etcdctl cannot be used"}},
		"no right to run etcdctl": {prepare: func(_ *plugintest.Server, p *terminal) {
			p.Exec = fails(apierrors.NewForbidden(corev1.Resource("pods/exec"), "old-x", nil))
		}, code: failure.CodeForbidden, want: []string{"the right to create pods/exec in namespace prod is missing"}},
		"another word at the question": {terminal: true, in: "yes\n", code: failure.CodeFailed, want: []string{"Type migrate to carry the plan out", "not confirmed; nothing was changed"}},
	} {
		t.Run(name, func(t *testing.T) {
			server := plugintest.New(t)
			putOriginal(server)
			p := newTerminal(t, server, c.terminal)
			p.In, p.Exec = strings.NewReader(c.in), status
			if c.prepare != nil {
				c.prepare(server, p)
			}
			p.expect(p.run(append([]string{"migrate", "operator", "--dir", filepath.Join(t.TempDir(), "x")}, strings.Fields(c.args)...)...), c.code, c.want...)
			expectRequests(t, server)
		})
	}
	p := newTerminal(t, plugintest.New(t), false)
	p.expect(p.run("migrate", "operator"), failure.CodeUsage, "--dir is missing")
}

// TestMigrateOperatorKeepsDefinitions: while an object belongs to an EtcdCluster, or the snapshot
// is damaged, no CustomResourceDefinition is deleted.
func TestMigrateOperatorKeepsDefinitions(t *testing.T) {
	for name, c := range map[string]struct {
		snapshot string
		want     string
	}{
		"a damaged snapshot":         {"short", "save a snapshot of prod/old from pod old-x"},
		"a pod that keeps its owner": {snapshot(), "objects still have owner references to EtcdClusters: pods prod/old-x"},
	} {
		t.Run(name, func(t *testing.T) {
			server := plugintest.New(t)
			putOriginal(server)
			server.On(http.MethodPatch, "/apis/apps/v1/namespaces/ops/deployments/etcd-operator", func(*http.Request, []byte) any { return &appsv1.Deployment{} })
			server.Put("/api/v1/namespaces/ops/pods", &corev1.PodList{})
			server.On(http.MethodPatch, podsPath+"/old-x", func(*http.Request, []byte) any {
				return apierrors.NewConflict(corev1.Resource("pods"), "old-x", errors.New("changed"))
			})
			p := newTerminal(t, server, false)
			p.Exec = func(ctx context.Context, clients *connect.Clients, pod *corev1.Pod, command []string, in io.Reader, out, errOut io.Writer) error {
				if strings.Contains(command[2], "endpoint status") {
					return status(ctx, clients, pod, command, in, out, errOut)
				}
				_, err := io.WriteString(out, c.snapshot)
				return err
			}
			p.expect(p.run("migrate", "operator", "--dir", filepath.Join(t.TempDir(), "x"), "--yes"), failure.CodeFailed, c.want)
			for _, r := range server.Requests() {
				if strings.HasPrefix(r.Line, http.MethodDelete) {
					t.Errorf("it sent %s", r.Line)
				}
			}
		})
	}
}

// snapshot is a database with its hash.
func snapshot() string {
	database := strings.Repeat("x", 4096)
	hash := sha256.Sum256([]byte(database))
	return database + string(hash[:])
}
