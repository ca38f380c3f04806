// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"bytes"
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/plugin/connect"
	"github.com/etcd-operator/etcd-operator/pkg/plugin/failure"
	"github.com/etcd-operator/etcd-operator/pkg/plugin/migration"
)

var (
	definitionResource = schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}
	apiServiceResource = schema.GroupVersionResource{Group: "apiregistration.k8s.io", Version: "v1", Resource: "apiservices"}
	apiServiceName     = v1beta2.SchemeGroupVersion.Version + "." + v1beta2.SchemeGroupVersion.Group
	// dependentResources are what the original etcd-operator creates for a cluster.
	dependentResources = []schema.GroupVersionResource{
		corev1.SchemeGroupVersion.WithResource("pods"), corev1.SchemeGroupVersion.WithResource("services"), corev1.SchemeGroupVersion.WithResource("persistentvolumeclaims"),
	}
)

func (a *app) migrateOperatorCommand() *cobra.Command {
	o, directory, stopped := &migrateOptions{}, "", false
	cmd := &cobra.Command{
		Use:   "operator",
		Short: "Replace the original etcd-operator, whose CustomResourceDefinitions have the same group",
		Long: `Exports the EtcdClusters, EtcdBackups and EtcdRestores of the original etcd-operator to a directory
and stops that operator. Then saves a snapshot of each cluster and releases its pods, PVCs and
Services. At last deletes the CustomResourceDefinitions. The etcd of each cluster keeps running.
Then install this operator, and move the data with kubectl etcd migrate snapshot. Without --yes and
without a terminal the command prints the plan and changes nothing. It needs the rights of an
administrator of the Kubernetes cluster.`,
		Example: `  kubectl etcd migrate operator --dir ./etcd-export
  kubectl etcd migrate operator --dir ./etcd-export --yes`,
		Args: takes(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if directory == "" {
				return failure.Usage("--dir is missing; name a directory for the exported objects and the snapshots")
			}
			return a.migrateOperator(cmd.Context(), o, directory, stopped)
		},
	}
	o.bind(cmd)
	cmd.Flags().StringVar(&directory, "dir", "", "directory for the exported objects and the snapshots")
	cmd.Flags().BoolVar(&stopped, "operator-stopped", false, "the original etcd-operator is stopped; needed if no Deployment of it is found")
	return cmd
}

// operatorMigration is what exists of the original etcd-operator.
type operatorMigration struct {
	*app
	*connect.Clients

	o         *migrateOptions
	dynamic   dynamic.Interface
	directory string
	// definitions are the CustomResourceDefinitions, by resource.
	definitions map[string]*unstructured.Unstructured
	// objects of each resource.
	objects   map[string][]unstructured.Unstructured
	operators []appsv1.Deployment
	// dependents are the objects that Kubernetes would delete with the EtcdClusters.
	dependents map[schema.GroupVersionResource][]unstructured.Unstructured
	// members is the pod of each cluster that serves the snapshot, by namespace/name.
	members map[string]*corev1.Pod
	// problems keep the migration from its start.
	problems []string
	// clusters are lines about each cluster.
	clusters []string
}

func (a *app) migrateOperator(ctx context.Context, o *migrateOptions, directory string, stopped bool) error {
	clients, err := a.connect()
	if err != nil {
		return err
	}
	m := &operatorMigration{app: a, Clients: clients, o: o, directory: directory}
	if m.dynamic, err = dynamic.NewForConfig(clients.Config); err != nil {
		return fmt.Errorf("make a client of Kubernetes: %w", err)
	}
	for _, read := range []func(context.Context) error{m.readDefinitions, m.readObjects, m.readOperators, m.readDependents, m.readMembers} {
		if err := read(ctx); err != nil {
			return err
		}
	}
	if len(m.operators) == 0 && !stopped {
		m.problems = append(m.problems, "no Deployment of the original etcd-operator was found. Make sure that none of its programs runs, and add --operator-stopped")
	}
	m.describe()
	if len(m.problems) > 0 {
		return failure.NotMet("the migration cannot start:\n  " + strings.Join(m.problems, "\n  "))
	}
	confirmed, err := a.confirmMigration(ctx, o, "The CustomResourceDefinitions and their objects are deleted. Type migrate to carry the plan out: ", "migrate")
	if err != nil || !confirmed {
		return err
	}
	return m.carryOut(ctx)
}

// everywhere names a right in all namespaces.
func everywhere(verb, resource string) failure.Right {
	return failure.Right{Verb: verb, Resource: resource}
}

// readDefinitions reads the CustomResourceDefinitions, and checks that Kubernetes serves them.
func (m *operatorMigration) readDefinitions(ctx context.Context) error {
	m.definitions = map[string]*unstructured.Unstructured{}
	for _, resource := range migration.OriginalResources {
		found, err := m.dynamic.Resource(definitionResource).Get(ctx, migration.DefinitionName(resource), metav1.GetOptions{})
		switch {
		case err == nil:
			m.definitions[resource] = found
		case !apierrors.IsNotFound(err):
			return failure.With(err, everywhere("get", "customresourcedefinitions"))
		}
	}
	if len(m.definitions) == 0 {
		return failure.NotMet(fmt.Sprintf("no CustomResourceDefinition of the group %s exists, so nothing of the original etcd-operator is to be migrated here. Check --context",
			v1beta2.SchemeGroupVersion.Group))
	}
	registered, err := m.dynamic.Resource(apiServiceResource).Get(ctx, apiServiceName, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil // Kubernetes registers the definitions in a moment
	}
	if err != nil {
		return failure.With(err, everywhere("get", "apiservices"))
	}
	if service, ok, err := unstructured.NestedMap(registered.Object, "spec", "service"); err == nil && ok && len(service) > 0 {
		return m.describeRouted(ctx, fmt.Sprintf("%v/%v", service["namespace"], service["name"]))
	}
	return nil
}

// describeRouted says what to do while this operator is registered beside the definitions. Deleting
// its APIService would delete the pods of its own EtcdClusters.
func (m *operatorMigration) describeRouted(ctx context.Context, service string) error {
	if err := m.readDependents(ctx); err != nil {
		return err
	}
	fact := fmt.Sprintf("APIService %s routes the group to Service %s, so the objects of the CustomResourceDefinitions cannot be read\n", apiServiceName, service)
	for _, resource := range dependentResources {
		for i := range m.dependents[resource] {
			if object := &m.dependents[resource][i]; migration.IsOfThisOperator(object) {
				return failure.NotMet(fact + fmt.Sprintf(`This operator already has EtcdClusters, such as that of %s %s/%s. Do not delete the APIService: Kubernetes would delete their pods.
If the original etcd-operator has no clusters here, delete its CustomResourceDefinitions. The APIService stays:
  kubectl delete crd %s`, resource.Resource, object.GetNamespace(), object.GetName(), strings.Join(m.definitionNames(), " ")))
			}
		}
	}
	return failure.NotMet(fact + `This operator was installed before the original etcd-operator was removed. Uninstall it, with its APIService, which Kubernetes then creates again for the definitions:
  kubectl delete apiservice ` + apiServiceName)
}

// definitionNames returns the names of the CustomResourceDefinitions that exist.
func (m *operatorMigration) definitionNames() []string {
	var names []string
	for _, resource := range migration.OriginalResources {
		if m.definitions[resource] != nil {
			names = append(names, migration.DefinitionName(resource))
		}
	}
	return names
}

func (m *operatorMigration) readObjects(ctx context.Context) error {
	m.objects = map[string][]unstructured.Unstructured{}
	for _, resource := range migration.OriginalResources {
		if m.definitions[resource] == nil {
			continue
		}
		list, err := m.dynamic.Resource(v1beta2.SchemeGroupVersion.WithResource(resource)).List(ctx, metav1.ListOptions{})
		if err != nil {
			return failure.With(err, everywhere("list", resource))
		}
		m.objects[resource] = list.Items
	}
	return nil
}

func (m *operatorMigration) readOperators(ctx context.Context) error {
	list, err := m.Kube.AppsV1().Deployments(metav1.NamespaceAll).List(ctx, metav1.ListOptions{})
	if err != nil {
		return failure.With(err, everywhere("list", "deployments"))
	}
	for i := range list.Items {
		if migration.IsOriginalOperator(&list.Items[i]) {
			m.operators = append(m.operators, list.Items[i])
		}
	}
	return nil
}

// readDependents reads which objects belong to an EtcdCluster.
func (m *operatorMigration) readDependents(ctx context.Context) error {
	m.dependents = map[schema.GroupVersionResource][]unstructured.Unstructured{}
	for _, resource := range dependentResources {
		list, err := m.dynamic.Resource(resource).List(ctx, metav1.ListOptions{})
		if err != nil {
			return failure.With(err, everywhere("list", resource.Resource))
		}
		for i := range list.Items {
			if _, owned := migration.WithoutOwners(&list.Items[i]); owned {
				m.dependents[resource] = append(m.dependents[resource], list.Items[i])
			}
		}
	}
	return nil
}

// readMembers finds a member of each cluster that responds.
func (m *operatorMigration) readMembers(ctx context.Context) error {
	m.members = map[string]*corev1.Pod{}
	for i := range m.objects["etcdclusters"] {
		cluster := &m.objects["etcdclusters"][i]
		name := cluster.GetNamespace() + "/" + cluster.GetName()
		pods, err := m.Kube.CoreV1().Pods(cluster.GetNamespace()).List(ctx, metav1.ListOptions{LabelSelector: migration.OriginalClusterLabel + "=" + cluster.GetName()})
		if err != nil {
			return failure.With(err, failure.Right{Verb: "list", Resource: "pods", Namespace: cluster.GetNamespace()})
		}
		member := migration.ReadyMember(pods.Items, cluster.GetName())
		if member == nil {
			m.problems = append(m.problems, fmt.Sprintf("no member of %s is ready, so no snapshot can be made. Repair the cluster, or delete its EtcdCluster", name))
			continue
		}
		var out, errOut bytes.Buffer
		if err := m.Exec(ctx, m.Clients, member, migration.StatusCommand(member), nil, &out, &errOut); err != nil {
			if apierrors.IsForbidden(err) {
				return failure.With(err, failure.Right{Verb: "create", Resource: "pods/exec", Namespace: cluster.GetNamespace()})
			}
			m.problems = append(m.problems, fmt.Sprintf("etcd in pod %s/%s does not respond: %v: %s", member.Namespace, member.Name, err, strings.TrimSpace(errOut.String())))
			continue
		}
		status, err := migration.ReadStatus(out.Bytes())
		if err != nil {
			m.problems = append(m.problems, fmt.Sprintf("etcd in pod %s/%s: %v", member.Namespace, member.Name, err))
			continue
		}
		m.members[name] = member
		m.clusters = append(m.clusters, fmt.Sprintf("%s: etcd %s, revision %d, pods %d", name, status.Version, status.Revision, len(pods.Items)))
	}
	return nil
}
