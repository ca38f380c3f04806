// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package kubeapi

import (
	"context"
	"errors"
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"
)

// ErrDefinitionsExist means that Kubernetes serves the API group of this server from
// CustomResourceDefinitions.
var ErrDefinitionsExist = errors.New("CustomResourceDefinitions of the API group of this server exist")

const definitionsPath = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/"

// CheckNoDefinitions returns ErrDefinitionsExist if a CustomResourceDefinition of one of the
// resources of the group exists, as the original etcd-operator has them. If this server served
// the group, too, the objects of these definitions would disappear, and garbage collection would
// delete the pods that they own. It retries until the kube-apiserver responds.
func CheckNoDefinitions(ctx context.Context, client rest.Interface, clock clock.Clock, group string, resources ...string) error {
	var found []string
	for _, resource := range resources {
		name := resource + "." + group
		exists, err := waitForDefinition(ctx, client, clock, name)
		if err != nil {
			return err
		}
		if exists {
			found = append(found, name)
		}
	}
	if len(found) == 0 {
		return nil
	}
	return fmt.Errorf("%w: %s. Another operator uses them, such as the original etcd-operator. With this server beside them, "+
		"Kubernetes would delete the pods of the etcd clusters of that operator. Do not delete the CustomResourceDefinitions by hand. "+
		"kubectl etcd migrate operator says what to do next: docs/how-to/migrate.md",
		ErrDefinitionsExist, strings.Join(found, ", "))
}

// waitForDefinition returns whether a CustomResourceDefinition exists. It retries until the
// kube-apiserver responds.
func waitForDefinition(ctx context.Context, client rest.Interface, clock clock.Clock, name string) (bool, error) {
	for {
		exists, err := hasDefinition(ctx, client, name)
		if err == nil {
			return exists, nil
		}
		klog.FromContext(ctx).Error(err, "Waiting for the kube-apiserver to report whether a CustomResourceDefinition exists",
			"name", name, "retryAfter", retryPeriod)
		if err := pause(ctx, clock, retryPeriod); err != nil {
			return false, fmt.Errorf("wait for the kube-apiserver to report whether CustomResourceDefinition %s exists: %w", name, err)
		}
	}
}

func hasDefinition(ctx context.Context, client rest.Interface, name string) (bool, error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	switch err := client.Get().AbsPath(definitionsPath + name).Do(ctx).Error(); {
	case apierrors.IsNotFound(err):
		return false, nil
	case err != nil:
		return false, fmt.Errorf("read CustomResourceDefinition %s: %w", name, err)
	default:
		return true, nil
	}
}
