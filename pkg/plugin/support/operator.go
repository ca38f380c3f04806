// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package support

import (
	"cmp"
	"context"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
)

const (
	// defaultNamespace is where artifacts/install installs the operator.
	defaultNamespace = "etcd-operator-system"
	// operatorSelector selects the API server and the controller.
	operatorSelector = "app.kubernetes.io/name in (etcd-operator,etcd-operator-apiserver),app.kubernetes.io/component in (apiserver,controller)"
)

// operator adds the programs of the operator and their logs.
func (c *collector) operator(ctx context.Context) error {
	namespace := defaultNamespace
	service, err := c.object(ctx, "operator/apiservice.yaml", source{
		part: "APIService", resource: "apiservices", path: "/apis/apiregistration.k8s.io/v1/apiservices/" + v1beta2.SchemeGroupVersion.Version + "." + v1beta2.SchemeGroupVersion.Group,
	})
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case err != nil:
		c.missing("APIService", err)
	default:
		named, _, err := unstructured.NestedString(service.Object, "spec", "service", "namespace")
		if err == nil {
			namespace = cmp.Or(named, defaultNamespace)
		}
	}
	query := map[string]string{"labelSelector": operatorSelector}
	if _, err := c.list(ctx, "operator/deployments.yaml", source{
		part: "Deployments of the operator", kind: "Deployment", apiVersion: "apps/v1", resource: "deployments", namespace: namespace,
		path: "/apis/apps/v1/namespaces/" + namespace + "/deployments", query: query,
	}); err != nil {
		return err
	}
	pods, err := c.list(ctx, "operator/pods.yaml", source{
		part: "pods of the operator", kind: "Pod", apiVersion: "v1", resource: "pods", namespace: namespace,
		path: "/api/v1/namespaces/" + namespace + "/pods", query: query,
	})
	if err != nil {
		return err
	}
	return c.logs(ctx, "operator/logs", pods)
}
