// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	_ "embed"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/blang/semver/v4"
	"github.com/operator-framework/api/pkg/lib/version"
	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
)

// packageName is the name of the operator in catalogs.
const packageName = "etcd-operator"

// description is what catalogs show.
//
//go:embed description.md
var description string

var (
	errBackend    = errors.New("no Deployment has the pods and the port of the Service that the APIService names")
	errContainers = errors.New("the Deployment has more containers than the one of its program; decide in hack/olm/csv.go which image they run")
	errMajor      = errors.New("nothing says which releases may be upgraded to the first minor version of a major version: decide it in skipRange in hack/olm/csv.go")
)

// kind is a kind of the served API, with what OLM shows.
type kind struct {
	name, plural, display, text string
	// resources are the kinds of what belongs to an object.
	resources []string
	// example is a file below artifacts/examples.
	example string
}

var kinds = []kind{
	{
		name: "EtcdCluster", plural: "etcdclusters", display: "etcd cluster",
		text:      "One etcd cluster. Its members run in pods of the namespace, and are kept at the desired size and version.",
		resources: []string{"Pod", "PersistentVolumeClaim", "Service", "Secret", "ConfigMap", "PodDisruptionBudget"},
		example:   "example-etcd-cluster.yaml",
	},
	{
		name: "EtcdBackup", plural: "etcdbackups", display: "etcd backup",
		text:      "One backup of an etcd cluster, or a series of them, in an object store or on a volume.",
		resources: []string{"Job"}, example: "compat/backup-s3.yaml",
	},
	{
		name: "EtcdRestore", plural: "etcdrestores", display: "etcd restore",
		text:      "The data of a backup in an etcd cluster, an existing or a new one.",
		resources: []string{"Job", "EtcdCluster"}, example: "restore-new-cluster.yaml",
	},
}

func clusterServiceVersion(i *installation, c *chart, examples string, r release) (*v1alpha1.ClusterServiceVersion, error) {
	deployments, err := i.strategy(r.image)
	if err != nil {
		return nil, err
	}
	owned, err := i.owned()
	if err != nil {
		return nil, err
	}
	namespace, err := i.namespace.MarshalJSON()
	if err != nil {
		return nil, err
	}
	upgrades, err := skipRange(r.version)
	if err != nil {
		return nil, err
	}
	platforms := map[string]string{"operatorframework.io/os.linux": "supported"}
	for _, architecture := range r.architectures {
		platforms["operatorframework.io/arch."+architecture] = "supported"
	}
	csv := &v1alpha1.ClusterServiceVersion{
		TypeMeta: metav1.TypeMeta{APIVersion: v1alpha1.ClusterServiceVersionAPIVersion, Kind: v1alpha1.ClusterServiceVersionKind},
		ObjectMeta: metav1.ObjectMeta{
			Name:   packageName + ".v" + r.version.String(),
			Labels: platforms,
			Annotations: map[string]string{
				"alm-examples":   examples,
				"capabilities":   "Deep Insights",
				"categories":     "Database",
				"containerImage": r.image,
				"createdAt":      r.created.UTC().Format(time.RFC3339),
				"description":    c.Description,
				"repository":     c.Home,
				"support":        c.Home + "/issues",
				// The console of OpenShift creates this namespace.
				"operatorframework.io/suggested-namespace":          i.namespace.GetName(),
				"operatorframework.io/suggested-namespace-template": strings.TrimSpace(string(namespace)),
				v1alpha1.SkipRangeAnnotationKey:                     upgrades,
			},
		},
		Spec: v1alpha1.ClusterServiceVersionSpec{
			DisplayName: packageName, Description: description, Keywords: c.Keywords, Maturity: "beta",
			Version: version.OperatorVersion{Version: r.version}, MinKubeVersion: c.minKubeVersion(),
			Provider: v1alpha1.AppLink{Name: "The etcd-operator Authors", URL: c.Home},
			Links:    []v1alpha1.AppLink{{Name: "Documentation", URL: c.Home + "/tree/v" + r.version.String() + "/docs"}},
			// The API server serves all namespaces, and so does the controller.
			InstallModes: []v1alpha1.InstallMode{
				{Type: v1alpha1.InstallModeTypeOwnNamespace}, {Type: v1alpha1.InstallModeTypeSingleNamespace},
				{Type: v1alpha1.InstallModeTypeMultiNamespace}, {Type: v1alpha1.InstallModeTypeAllNamespaces, Supported: true},
			},
			InstallStrategy: v1alpha1.NamedInstallStrategy{
				StrategyName: v1alpha1.InstallStrategyNameDeployment,
				StrategySpec: v1alpha1.StrategyDetailsDeployment{DeploymentSpecs: deployments, ClusterPermissions: i.permissions},
			},
			APIServiceDefinitions: v1alpha1.APIServiceDefinitions{Owned: owned},
			RelatedImages: []v1alpha1.RelatedImage{
				{Name: packageName, Image: r.image}, {Name: "etcd", Image: c.values.APIServer.Storage.Managed.Image},
			},
		},
	}
	return csv, nil
}

// strategy returns the Deployments with the image of the release.
func (i *installation) strategy(image string) ([]v1alpha1.StrategyDeploymentSpec, error) {
	var specs []v1alpha1.StrategyDeploymentSpec
	for _, d := range i.deployments {
		spec := d.DeepCopy().Spec
		containers := spec.Template.Spec.Containers
		if len(containers) != 1 || len(spec.Template.Spec.InitContainers) > 0 {
			return nil, fmt.Errorf("%s: %w", d.Name, errContainers)
		}
		containers[0].Image = image
		specs = append(specs, v1alpha1.StrategyDeploymentSpec{Name: d.Name, Spec: spec, Label: labels.Set(d.Labels)})
	}
	return specs, nil
}

// owned returns the served API: which Deployment serves it, and at which port.
func (i *installation) owned() ([]v1alpha1.APIServiceDescription, error) {
	for _, d := range i.deployments {
		port := containerPort(d, i.service, i.api.Spec.Service.Port)
		if port == 0 {
			continue
		}
		var owned []v1alpha1.APIServiceDescription
		for _, k := range kinds {
			described := v1alpha1.APIServiceDescription{
				Name: k.plural, Group: i.api.Spec.Group, Version: i.api.Spec.Version, Kind: k.name,
				DeploymentName: d.Name, ContainerPort: port, DisplayName: k.display, Description: k.text,
			}
			for _, resource := range k.resources {
				reference := v1alpha1.APIResourceReference{Kind: resource, Version: "v1"}
				if strings.HasPrefix(resource, "Etcd") {
					reference.Version = i.api.Spec.Version
				}
				described.Resources = append(described.Resources, reference)
			}
			owned = append(owned, described)
		}
		return owned, nil
	}
	return nil, errBackend
}

// containerPort returns the port of the Deployment behind a port of the Service; 0 if the Service has other pods.
func containerPort(d appsv1.Deployment, service corev1.Service, port int32) int32 {
	if !labels.SelectorFromSet(service.Spec.Selector).Matches(labels.Set(d.Spec.Template.Labels)) {
		return 0
	}
	for _, p := range service.Spec.Ports {
		for _, container := range d.Spec.Template.Spec.Containers {
			for _, open := range container.Ports {
				if p.Port == port && (p.TargetPort.StrVal == open.Name || p.TargetPort.IntVal == open.ContainerPort) {
					return open.ContainerPort
				}
			}
		}
	}
	return 0
}

// skipRange returns which releases OLM upgrades directly to the version: those of the same and of the previous minor version.
func skipRange(v semver.Version) (string, error) {
	if v.Minor == 0 {
		return "", fmt.Errorf("%s: %w", v, errMajor)
	}
	return fmt.Sprintf(">=%d.%d.0 <%s", v.Major, v.Minor-1, v), nil
}
