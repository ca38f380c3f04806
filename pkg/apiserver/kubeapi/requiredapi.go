// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package kubeapi

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"
)

const (
	// retryPeriod is the pause after a request to which the kube-apiserver did not respond.
	retryPeriod = 2 * time.Second
	// requestTimeout limits one request.
	requestTimeout = 10 * time.Second
)

// ErrNotServed means that the kube-apiserver does not serve an API that this server requires.
var ErrNotServed = errors.New("the kube-apiserver does not serve an API that this server requires")

// RequiredAPI is an API that a component of the server watches while it runs.
type RequiredAPI struct {
	// Component is the name of an admission plugin or of a feature.
	Component string
	// GroupVersion and Resources are what the component watches.
	GroupVersion schema.GroupVersion
	Resources    []string
	// DisableFlag is the flag that disables the component.
	DisableFlag string
	// Optional is true if some supported releases of Kubernetes do not serve the API. The
	// component is inactive until the kube-apiserver serves it.
	Optional bool
}

// Check checks which APIs the kube-apiserver serves, and returns the optional ones that it does
// not serve. It retries until the kube-apiserver responds: an error never makes a component
// inactive. If a required API is not served, Check returns ErrNotServed.
func Check(ctx context.Context, client rest.Interface, clock clock.Clock, apis []RequiredAPI) ([]RequiredAPI, error) {
	var notServed []RequiredAPI
	for _, api := range apis {
		missing, err := waitForResponse(ctx, client, clock, api)
		switch {
		case err != nil:
			return nil, err
		case len(missing) == 0:
		case api.Optional:
			notServed = append(notServed, api)
		default:
			return nil, fmt.Errorf("%w: %s requires %s of %s; upgrade Kubernetes, enable this API in the kube-apiserver, or set %s",
				ErrNotServed, api.Component, strings.Join(missing, ", "), api.GroupVersion, api.DisableFlag)
		}
	}
	return notServed, nil
}

// waitForResponse returns the missing resources of an API. It retries until the kube-apiserver
// responds.
func waitForResponse(ctx context.Context, client rest.Interface, clock clock.Clock, api RequiredAPI) ([]string, error) {
	for {
		missing, err := MissingResources(ctx, client, api)
		if err == nil {
			return missing, nil
		}
		klog.FromContext(ctx).Error(err, "Waiting for the kube-apiserver to report which APIs it serves",
			"component", api.Component, "retryAfter", retryPeriod)
		if err := pause(ctx, clock, retryPeriod); err != nil {
			return nil, fmt.Errorf("wait for the kube-apiserver to report which APIs it serves: %w", err)
		}
	}
}

func pause(ctx context.Context, clock clock.Clock, period time.Duration) error {
	timer := clock.NewTimer(period)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-timer.C():
		return nil
	}
}

// MissingResources returns the resources of the API that the kube-apiserver does not serve. It
// reads the group version itself: the kube-apiserver assembles the list of all groups in the
// background, and the list is incomplete right after its start.
func MissingResources(ctx context.Context, client rest.Interface, api RequiredAPI) ([]string, error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	path := "/apis/" + api.GroupVersion.String()
	if api.GroupVersion.Group == "" {
		path = "/api/" + api.GroupVersion.Version
	}
	var list metav1.APIResourceList
	err := client.Get().AbsPath(path).Do(ctx).Into(&list)
	switch {
	case apierrors.IsNotFound(err):
		return api.Resources, nil
	case err != nil:
		return nil, fmt.Errorf("read which resources of %s the kube-apiserver serves: %w", api.GroupVersion, err)
	case list.GroupVersion != api.GroupVersion.String():
		return nil, fmt.Errorf("read which resources of %s the kube-apiserver serves: the response is about %q", api.GroupVersion, list.GroupVersion)
	}
	var missing []string
	for _, resource := range api.Resources {
		if !slices.ContainsFunc(list.APIResources, func(r metav1.APIResource) bool { return r.Name == resource }) {
			missing = append(missing, resource)
		}
	}
	return missing, nil
}

// WaitUntilServed returns when the kube-apiserver serves all resources of the API. It checks once
// a period.
func WaitUntilServed(ctx context.Context, client rest.Interface, clock clock.Clock, api RequiredAPI, period time.Duration) error {
	for {
		if err := pause(ctx, clock, period); err != nil {
			return err
		}
		missing, err := MissingResources(ctx, client, api)
		switch {
		case err != nil:
			klog.FromContext(ctx).Error(err, "The kube-apiserver did not report whether it serves an API", "component", api.Component, "retryAfter", period)
		case len(missing) == 0:
			return nil
		}
	}
}
