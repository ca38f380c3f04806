// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"
	"sigs.k8s.io/yaml"
)

var (
	errKind    = errors.New("OLM installs no object of this kind; delete it in hack/olm/kustomization.yaml, and tell users how to apply it")
	errMissing = errors.New("the kustomization lacks an object")
	errBinding = errors.New("a binding in a bundle cannot name a namespace, and OLM binds ClusterRoles to ServiceAccounts of the operator only; delete it in hack/olm/kustomization.yaml")
)

// manifestKinds are the kinds that OLM creates from files of their own. It creates CustomResourceDefinitions and some
// kinds of the console of OpenShift, too. ServiceAccounts and ClusterRoleBindings are left out, because OLM creates
// those of the ClusterServiceVersion, for the namespace that the operator is installed in.
var manifestKinds = map[string]bool{
	"ClusterRole": true, "ConfigMap": true, "NetworkPolicy": true, "PodDisruptionBudget": true, "PriorityClass": true,
	"PrometheusRule": true, "Role": true, "RoleBinding": true, "Secret": true, "Service": true, "ServiceMonitor": true,
}

// installation is what the kustomization installs.
type installation struct {
	namespace   *unstructured.Unstructured
	api         apiService
	service     corev1.Service // of api
	deployments []appsv1.Deployment
	// permissions are ClusterRoles that are bound in all namespaces.
	permissions []v1alpha1.StrategyDeploymentPermissions
	// manifests are files of their own.
	manifests []*unstructured.Unstructured
}

// apiService has the fields of an APIService that OLM needs to know. It decides about the others.
type apiService struct {
	Spec struct {
		Group   string `json:"group"`
		Version string `json:"version"`
		Service struct {
			Name string `json:"name"`
			Port int32  `json:"port"`
		} `json:"service"`
	} `json:"spec"`
}

// objects are objects by kind and name.
type objects map[string]map[string]*unstructured.Unstructured

// take returns an object and removes it.
func (o objects) take(kind, name string) (*unstructured.Unstructured, error) {
	object, ok := o[kind][name]
	if !ok {
		return nil, fmt.Errorf("%w: %s %s", errMissing, kind, name)
	}
	delete(o[kind], name)
	return object, nil
}

// names returns the names of the objects of a kind in order.
func (o objects) names(kind string) []string { return slices.Sorted(maps.Keys(o[kind])) }

// read builds the kustomization of a directory.
func read(directory string) (*installation, error) {
	all, err := build(directory)
	if err != nil {
		return nil, fmt.Errorf("build %s: %w", directory, err)
	}
	i := &installation{}
	if i.namespace, err = all.take("Namespace", "etcd-operator-system"); err != nil {
		return nil, err
	}
	for _, part := range []func(objects) error{i.takeAPI, i.takeDeployments, i.takePermissions, i.takeManifests} {
		if err := part(all); err != nil {
			return nil, err
		}
	}
	return i, nil
}

func build(directory string) (objects, error) {
	built, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(filesys.MakeFsOnDisk(), directory)
	if err != nil {
		return nil, err
	}
	all := objects{}
	for _, resource := range built.Resources() {
		data, err := resource.MarshalJSON()
		if err != nil {
			return nil, err
		}
		object := &unstructured.Unstructured{}
		if err := object.UnmarshalJSON(data); err != nil {
			return nil, err
		}
		kind := object.GetKind()
		if all[kind] == nil {
			all[kind] = map[string]*unstructured.Unstructured{}
		}
		all[kind][object.GetName()] = object
	}
	return all, nil
}

// convert fails if the type lacks a field of the object, so that no field is lost.
func convert(object *unstructured.Unstructured, into any) error {
	data, err := object.MarshalJSON()
	if err != nil {
		return err
	}
	if err := yaml.UnmarshalStrict(data, into); err != nil {
		return fmt.Errorf("%s %s: %w", object.GetKind(), object.GetName(), err)
	}
	return nil
}

func (i *installation) takeAPI(all objects) error {
	names := all.names("APIService")
	if len(names) != 1 {
		return fmt.Errorf("%w: one APIService, not %v", errMissing, names)
	}
	object, err := all.take("APIService", names[0])
	if err != nil {
		return err
	}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, &i.api); err != nil {
		return fmt.Errorf("APIService %s: %w", names[0], err)
	}
	// OLM creates a Service of another name in its place.
	service, err := all.take("Service", i.api.Spec.Service.Name)
	if err != nil {
		return err
	}
	return convert(service, &i.service)
}

func (i *installation) takeDeployments(all objects) error {
	for _, name := range all.names("Deployment") {
		object, err := all.take("Deployment", name)
		if err != nil {
			return err
		}
		var deployment appsv1.Deployment
		if err := convert(object, &deployment); err != nil {
			return err
		}
		i.deployments = append(i.deployments, deployment)
	}
	return nil
}

// takePermissions takes ClusterRoles with their bindings, and the ServiceAccounts that they are bound to.
func (i *installation) takePermissions(all objects) error {
	for _, name := range all.names("ClusterRoleBinding") {
		object, err := all.take("ClusterRoleBinding", name)
		if err != nil {
			return err
		}
		var binding rbacv1.ClusterRoleBinding
		if err := convert(object, &binding); err != nil {
			return err
		}
		if len(binding.Subjects) != 1 || binding.Subjects[0].Kind != rbacv1.ServiceAccountKind || all["ClusterRole"][binding.RoleRef.Name] == nil {
			return fmt.Errorf("ClusterRoleBinding %s: %w", name, errBinding)
		}
		if object, err = all.take("ClusterRole", binding.RoleRef.Name); err != nil {
			return err
		}
		var role rbacv1.ClusterRole
		if err := convert(object, &role); err != nil {
			return err
		}
		account := binding.Subjects[0].Name
		if _, err := all.take("ServiceAccount", account); err != nil {
			return err
		}
		i.permissions = append(i.permissions, v1alpha1.StrategyDeploymentPermissions{ServiceAccountName: account, Rules: role.Rules})
	}
	return nil
}

// takeManifests takes everything that is left, without the namespace: OLM sets that of the operator.
//
// Roles are not permissions of the ClusterServiceVersion: OLM grants those in all namespaces if the operator is installed
// for all namespaces.
func (i *installation) takeManifests(all objects) error {
	for _, kind := range slices.Sorted(maps.Keys(all)) {
		for _, name := range all.names(kind) {
			if !manifestKinds[kind] {
				return fmt.Errorf("%s %s: %w", kind, name, errKind)
			}
			object := all[kind][name]
			if namespace := object.GetNamespace(); namespace != "" && namespace != i.namespace.GetName() {
				return fmt.Errorf("%s %s/%s: %w", kind, namespace, name, errBinding)
			}
			unstructured.RemoveNestedField(object.Object, "metadata", "namespace")
			if kind == "RoleBinding" {
				if err := i.removeNamespaces(object); err != nil {
					return err
				}
			}
			i.manifests = append(i.manifests, object)
		}
	}
	return nil
}

// removeNamespaces removes the namespaces of subjects. A ServiceAccount without one is in the namespace of the binding.
func (i *installation) removeNamespaces(binding *unstructured.Unstructured) error {
	subjects, _, err := unstructured.NestedSlice(binding.Object, "subjects")
	if err != nil {
		return fmt.Errorf("RoleBinding %s: %w", binding.GetName(), err)
	}
	for _, entry := range subjects {
		subject, ok := entry.(map[string]any)
		if !ok || subject["namespace"] != i.namespace.GetName() {
			return fmt.Errorf("RoleBinding %s: %w", binding.GetName(), errBinding)
		}
		delete(subject, "namespace")
	}
	return unstructured.SetNestedSlice(binding.Object, subjects, "subjects")
}

// chart is what the chart of the operator says about it, too.
type chart struct {
	Description string   `json:"description"`
	Home        string   `json:"home"`
	Keywords    []string `json:"keywords"`
	KubeVersion string   `json:"kubeVersion"`
	values      struct {
		APIServer struct {
			Storage struct {
				Managed struct {
					Image string `json:"image"`
				} `json:"managed"`
			} `json:"storage"`
		} `json:"apiserver"`
	}
}

func readChart(directory string) (*chart, error) {
	c := &chart{}
	for name, into := range map[string]any{"Chart.yaml": c, "values.yaml": &c.values} {
		data, err := os.ReadFile(filepath.Join(directory, name))
		if err != nil {
			return nil, err
		}
		if err := yaml.Unmarshal(data, into); err != nil {
			return nil, fmt.Errorf("%s: %w", filepath.Join(directory, name), err)
		}
	}
	return c, nil
}

// minKubeVersion returns 1.32.0 of >=1.32.0-0.
func (c *chart) minKubeVersion() string {
	return strings.TrimSuffix(strings.TrimPrefix(c.KubeVersion, ">="), "-0")
}

// readExamples returns an object of each kind as JSON, for the console of OpenShift.
func readExamples(directory string) (string, error) {
	var all []any
	for _, k := range kinds {
		data, err := os.ReadFile(filepath.Join(directory, filepath.FromSlash(k.example)))
		if err != nil {
			return "", err
		}
		var example any
		if err := yaml.Unmarshal(data, &example); err != nil {
			return "", fmt.Errorf("%s: %w", k.example, err)
		}
		all = append(all, example)
	}
	data, err := json.MarshalIndent(all, "", "  ")
	return string(data), err
}
