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
	// retryPeriod follows a question that the kube-apiserver did not answer.
	retryPeriod = 2 * time.Second
	// patience bounds one question.
	patience = 10 * time.Second
)

// ErrNotServed is returned when the kube-apiserver says that it does not serve an API that
// the server cannot do without.
var ErrNotServed = errors.New("the kube-apiserver does not serve an API that this server needs")

// Need is an API that a part of the server watches for as long as it runs.
type Need struct {
	// Part is the name of the part: an admission plugin, or a feature.
	Part string
	// GroupVersion and Resources are what it watches.
	GroupVersion schema.GroupVersion
	Resources    []string
	// Off is the flag that switches the part off.
	Off string
	// Optional is true if supported releases of Kubernetes do not serve the API. The part
	// is left out there, until the kube-apiserver serves it.
	Optional bool
}

// Await finds out which needs the kube-apiserver meets, and returns the optional ones that
// it does not meet. It asks until the kube-apiserver answers: only an answer, never an
// error, leaves a part out. If a need that is not optional is not met, it returns
// ErrNotServed.
func Await(ctx context.Context, client rest.Interface, clock clock.Clock, needs []Need) ([]Need, error) {
	var unmet []Need
	for _, need := range needs {
		missing, err := await(ctx, client, clock, need)
		switch {
		case err != nil:
			return nil, err
		case len(missing) == 0:
		case need.Optional:
			unmet = append(unmet, need)
		default:
			return nil, fmt.Errorf("%w: %s needs %s of %s: upgrade Kubernetes, let it serve this API, or set %s",
				ErrNotServed, need.Part, strings.Join(missing, ", "), need.GroupVersion, need.Off)
		}
	}
	return unmet, nil
}

func await(ctx context.Context, client rest.Interface, clock clock.Clock, need Need) ([]string, error) {
	for {
		missing, err := Missing(ctx, client, need)
		if err == nil {
			return missing, nil
		}
		klog.FromContext(ctx).Error(err, "Waiting for the kube-apiserver to say which APIs it serves",
			"part", need.Part, "retryAfter", retryPeriod)
		if err := pause(ctx, clock, retryPeriod); err != nil {
			return nil, fmt.Errorf("wait for the kube-apiserver to say which APIs it serves: %w", err)
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

// Missing returns the resources of the need that the kube-apiserver does not serve. It asks
// for the one group version: the list of all groups is put together in the background, and
// is not complete right after the start of a kube-apiserver.
func Missing(ctx context.Context, client rest.Interface, need Need) ([]string, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	path := "/apis/" + need.GroupVersion.String()
	if need.GroupVersion.Group == "" {
		path = "/api/" + need.GroupVersion.Version
	}
	var list metav1.APIResourceList
	err := client.Get().AbsPath(path).Do(ctx).Into(&list)
	switch {
	case apierrors.IsNotFound(err):
		return need.Resources, nil
	case err != nil:
		return nil, fmt.Errorf("read which resources of %s the kube-apiserver serves: %w", need.GroupVersion, err)
	case list.GroupVersion != need.GroupVersion.String():
		return nil, fmt.Errorf("read which resources of %s the kube-apiserver serves: the answer is about %q", need.GroupVersion, list.GroupVersion)
	}
	var missing []string
	for _, resource := range need.Resources {
		if !slices.ContainsFunc(list.APIResources, func(r metav1.APIResource) bool { return r.Name == resource }) {
			missing = append(missing, resource)
		}
	}
	return missing, nil
}

// AwaitServed returns when the kube-apiserver serves all that the need is about. It asks
// once a period.
func AwaitServed(ctx context.Context, client rest.Interface, clock clock.Clock, need Need, period time.Duration) error {
	for {
		if err := pause(ctx, clock, period); err != nil {
			return err
		}
		missing, err := Missing(ctx, client, need)
		switch {
		case err != nil:
			klog.FromContext(ctx).Error(err, "The kube-apiserver did not say whether it serves an API", "part", need.Part, "retryAfter", period)
		case len(missing) == 0:
			return nil
		}
	}
}
