// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package diskcheck

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/plugin/connect"
	"github.com/etcd-operator/etcd-operator/pkg/plugin/failure"
	"github.com/etcd-operator/etcd-operator/pkg/resources"
)

const (
	// defaultNamespace is where artifacts/install installs the operator.
	defaultNamespace = "etcd-operator-system"
	// controllerSelector selects the Deployment of the controller.
	controllerSelector  = "app.kubernetes.io/name=etcd-operator,app.kubernetes.io/component=controller"
	controllerContainer = "controller"
)

// Image is that of the agent, and the Secrets of the namespace to pull it.
type Image struct {
	Name        string
	PullSecrets []corev1.LocalObjectReference
}

// FindImage returns the image of the agent that the installation uses: that of a member in the
// namespace, which has the Secrets to pull it, or else that of the controller.
func FindImage(ctx context.Context, clients *connect.Clients) (Image, error) {
	pods, err := clients.Kube.CoreV1().Pods(clients.Namespace).List(ctx, metav1.ListOptions{LabelSelector: resources.LabelCluster})
	if err != nil {
		return Image{}, failure.With(err, failure.Right{Verb: "list", Resource: "pods", Namespace: clients.Namespace})
	}
	for i := range pods.Items {
		spec := &pods.Items[i].Spec
		for j := range spec.InitContainers {
			if c := &spec.InitContainers[j]; c.Name == resources.InitLauncher {
				return Image{c.Image, spec.ImagePullSecrets}, nil
			}
		}
	}
	operatorNamespace := findOperator(ctx, clients)
	list, err := clients.Kube.AppsV1().Deployments(operatorNamespace).List(ctx, metav1.ListOptions{LabelSelector: controllerSelector})
	if err != nil {
		err = failure.With(err, failure.Right{Verb: "list", Resource: "deployments", Namespace: operatorNamespace})
		return Image{}, fmt.Errorf("the image of the operator is not known; name it with --image: %w", err)
	}
	for i := range list.Items {
		for _, c := range list.Items[i].Spec.Template.Spec.Containers {
			if c.Name == controllerContainer {
				return Image{Name: c.Image}, nil
			}
		}
	}
	return Image{}, failure.NotMet(fmt.Sprintf("the image of the operator is not known: no member in namespace %s has it, and namespace %s has no Deployment of the controller; name it with --image",
		clients.Namespace, operatorNamespace))
}

// findOperator returns the namespace of the operator. An ordinary user may not read the
// APIService that names it: then it is the default.
func findOperator(ctx context.Context, clients *connect.Clients) string {
	var service struct {
		Spec struct {
			Service struct{ Namespace string }
		}
	}
	group := v1beta2.SchemeGroupVersion
	raw, err := clients.Kube.CoreV1().RESTClient().Get().AbsPath("/apis/apiregistration.k8s.io/v1/apiservices/" + group.Version + "." + group.Group).DoRaw(ctx)
	if err != nil || json.Unmarshal(raw, &service) != nil {
		return defaultNamespace
	}
	return cmp.Or(service.Spec.Service.Namespace, defaultNamespace)
}
