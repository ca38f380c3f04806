// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/plugin/download"
	"github.com/etcd-operator/etcd-operator/pkg/plugin/failure"
	"github.com/etcd-operator/etcd-operator/pkg/plugin/migration"
	"github.com/etcd-operator/etcd-operator/pkg/plugin/progress"
)

// errOwned means that an object still belongs to an EtcdCluster.
var errOwned = errors.New("objects still have owner references to EtcdClusters")

// describe prints the plan.
func (m *operatorMigration) describe() {
	var operators []string
	for i := range m.operators {
		operators = append(operators, m.operators[i].Namespace+"/"+m.operators[i].Name)
	}
	if len(operators) == 0 {
		operators = []string{"none found"}
	}
	var owned []string
	for _, resource := range dependentResources {
		owned = append(owned, fmt.Sprintf("%s %d", resource.Resource, len(m.dependents[resource])))
	}
	fmt.Fprintln(m.Out, "Migration from the original etcd-operator. Its etcd clusters keep running.")
	for _, line := range m.clusters {
		fmt.Fprintln(m.Out, "  cluster "+line)
	}
	for i, step := range []string{
		fmt.Sprintf("export the objects to %s: etcdclusters %d, etcdbackups %d, etcdrestores %d",
			m.directory, len(m.objects["etcdclusters"]), len(m.objects["etcdbackups"]), len(m.objects["etcdrestores"])),
		"scale the Deployments of the original etcd-operator to 0: " + strings.Join(operators, ", "),
		fmt.Sprintf("save a snapshot of each cluster to %s: clusters %d", m.directory, len(m.objects["etcdclusters"])),
		"remove the owner references to EtcdClusters, so that Kubernetes keeps these objects: " + strings.Join(owned, ", "),
		"delete the finalizers of the objects and the CustomResourceDefinitions: " + strings.Join(m.definitionNames(), ", "),
	} {
		fmt.Fprintf(m.Out, "  %d. %s\n", i+1, step)
	}
	fmt.Fprintln(m.Out, "  From step 2 on, no program replaces a member that fails. Move the data soon after.")
}

// carryOut takes the steps in the order that loses nothing. A step that finds nothing to do
// changes nothing, so the command continues where an earlier run has ended.
func (m *operatorMigration) carryOut(ctx context.Context) error {
	for _, step := range []func(context.Context) error{m.export, m.stopOperators, m.saveSnapshots, m.release, m.deleteDefinitions} {
		if err := step(ctx); err != nil {
			if ctx.Err() != nil {
				return failure.Interrupted("interrupted; type the same command again to continue the migration")
			}
			return err
		}
	}
	fmt.Fprintln(m.Out, "Nothing of the original etcd-operator serves the group any more. Next:")
	fmt.Fprintln(m.Out, "  install this operator:  docs/how-to/install.md")
	for i := range m.objects["etcdclusters"] {
		c := &m.objects["etcdclusters"][i]
		fmt.Fprintf(m.Out, "  move the data of %s/%s:\n    kubectl etcd migrate snapshot NEW -n %s %s -f %s --pvc PVC\n",
			c.GetNamespace(), c.GetName(), c.GetNamespace(), migration.SourceFlags(c), m.file("etcdclusters", c))
	}
	fmt.Fprintln(m.Out, "NEW is another name: the old pods and Services keep theirs until you delete them. See docs/how-to/migrate.md.")
	return nil
}

// file is where an object is exported to.
func (m *operatorMigration) file(resource string, object *unstructured.Unstructured) string {
	return filepath.Join(m.directory, resource+"."+object.GetNamespace()+"."+object.GetName()+".yaml")
}

// export writes each object to a file that kubectl applies.
func (m *operatorMigration) export(context.Context) error {
	if err := os.MkdirAll(m.directory, 0o700); err != nil {
		return fmt.Errorf("create the directory of --dir: %w", err)
	}
	written := 0
	for _, resource := range migration.OriginalResources {
		for i := range m.objects[resource] {
			object := &m.objects[resource][i]
			text, err := yaml.Marshal(migration.Exported(object).Object)
			if err != nil {
				return fmt.Errorf("export %s %s/%s: %w", resource, object.GetNamespace(), object.GetName(), err)
			}
			if err := os.WriteFile(m.file(resource, object), text, 0o600); err != nil {
				return fmt.Errorf("export %s %s/%s: %w", resource, object.GetNamespace(), object.GetName(), err)
			}
			written++
		}
	}
	fmt.Fprintf(m.Out, "Exported objects: %d.\n", written)
	return nil
}

// stopOperators scales the Deployments to 0 and waits until their pods have ended.
func (m *operatorMigration) stopOperators(ctx context.Context) error {
	for i := range m.operators {
		d := &m.operators[i]
		right := failure.Right{Verb: "patch", Resource: "deployments", Namespace: d.Namespace}
		_, err := m.Kube.AppsV1().Deployments(d.Namespace).Patch(ctx, d.Name, types.MergePatchType, []byte(`{"spec":{"replicas":0}}`), metav1.PatchOptions{})
		if err != nil {
			return failure.With(err, right)
		}
		selector, err := metav1.LabelSelectorAsSelector(d.Spec.Selector)
		if err != nil {
			return fmt.Errorf("read the selector of Deployment %s/%s: %w", d.Namespace, d.Name, err)
		}
		err = m.followStep(ctx, m.o, "Stop of Deployment "+d.Namespace+"/"+d.Name, func(ctx context.Context) (state, error) {
			pods, err := m.Kube.CoreV1().Pods(d.Namespace).List(ctx, metav1.ListOptions{LabelSelector: selector.String()})
			if err != nil {
				return state{}, failure.With(err, failure.Right{Verb: "list", Resource: "pods", Namespace: d.Namespace})
			}
			return state{
				step: progress.Step{Text: fmt.Sprintf("pods that are left: %d", len(pods.Items))}, done: len(pods.Items) == 0,
				outcome: fmt.Sprintf("Deployment %s/%s is stopped.", d.Namespace, d.Name),
			}, nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// saveSnapshots saves the database of each cluster to a file, and checks its hash.
func (m *operatorMigration) saveSnapshots(ctx context.Context) error {
	for i := range m.objects["etcdclusters"] {
		cluster := &m.objects["etcdclusters"][i]
		name := cluster.GetNamespace() + "/" + cluster.GetName()
		file := filepath.Join(m.directory, cluster.GetNamespace()+"."+cluster.GetName()+"-"+m.Clock.Now().UTC().Format("20060102T150405Z")+".db")
		pod := m.members[name]
		line := m.line("Snapshot of " + name)
		ctx, cancel := context.WithCancel(ctx)
		read, write := io.Pipe()
		go func() {
			err := m.Exec(ctx, m.Clients, pod, migration.SnapshotCommand(pod), nil, write, io.Discard)
			_ = write.CloseWithError(err) // it returns no error; without an error the reader sees the end
		}()
		result, err := download.Save(ctx, read, file, -1, func(bytes int64) {
			line.Show(progress.Step{Text: "from " + pod.Name, Done: bytes, Bytes: true})
		})
		cancel()
		_ = read.Close() // it returns no error
		if err != nil {
			line.Clear()
			return fmt.Errorf("save a snapshot of %s from pod %s: %w", name, pod.Name, err)
		}
		line.End(m.Out, fmt.Sprintf("Saved %s: %s of %s, hash checked.", file, progress.Size(result.Bytes), pod.Name))
	}
	return nil
}

// release removes the owner references to EtcdClusters from all dependents, and reads them again.
func (m *operatorMigration) release(ctx context.Context) error {
	if err := m.readDependents(ctx); err != nil {
		return err
	}
	released := 0
	for _, resource := range dependentResources {
		for i := range m.dependents[resource] {
			object := &m.dependents[resource][i]
			kept, _ := migration.WithoutOwners(object)
			// The resource version keeps the patch from removing an owner that was added meanwhile.
			patch, err := json.Marshal(map[string]any{"metadata": map[string]any{
				"uid": object.GetUID(), "resourceVersion": object.GetResourceVersion(), "ownerReferences": kept,
			}})
			if err != nil {
				return fmt.Errorf("release %s %s/%s: %w", resource.Resource, object.GetNamespace(), object.GetName(), err)
			}
			_, err = m.dynamic.Resource(resource).Namespace(object.GetNamespace()).Patch(ctx, object.GetName(), types.MergePatchType, patch, metav1.PatchOptions{})
			if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
				return failure.With(err, failure.Right{Verb: "patch", Resource: resource.Resource, Namespace: object.GetNamespace()})
			}
			released++
		}
	}
	if err := m.checkReleased(ctx); err != nil {
		return err
	}
	fmt.Fprintf(m.Out, "Released objects: %d. Kubernetes keeps them without their EtcdClusters.\n", released)
	return nil
}

// checkReleased returns errOwned while an object belongs to an EtcdCluster.
func (m *operatorMigration) checkReleased(ctx context.Context) error {
	if err := m.readDependents(ctx); err != nil {
		return err
	}
	var left []string
	for _, resource := range dependentResources {
		for i := range m.dependents[resource] {
			left = append(left, resource.Resource+" "+m.dependents[resource][i].GetNamespace()+"/"+m.dependents[resource][i].GetName())
		}
	}
	if len(left) > 0 {
		return fmt.Errorf("%w: %s. The objects changed meanwhile, or the original etcd-operator runs. Type the command again", errOwned, strings.Join(left, ", "))
	}
	return nil
}

// deleteDefinitions deletes the CustomResourceDefinitions with their objects, and waits until
// Kubernetes no longer serves the group.
func (m *operatorMigration) deleteDefinitions(ctx context.Context) error {
	for _, resource := range migration.OriginalResources {
		definition := m.definitions[resource]
		if definition == nil {
			continue
		}
		if err := m.removeFinalizers(ctx, resource); err != nil {
			return err
		}
		// What an object belongs to now is deleted with the definition.
		if err := m.checkReleased(ctx); err != nil {
			return err
		}
		uid := definition.GetUID()
		err := m.dynamic.Resource(definitionResource).Delete(ctx, definition.GetName(), metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &uid}})
		if err != nil && !apierrors.IsNotFound(err) {
			return failure.With(err, everywhere("delete", "customresourcedefinitions"))
		}
		err = m.followStep(ctx, m.o, "Deletion of "+definition.GetName(), func(ctx context.Context) (state, error) {
			_, err := m.dynamic.Resource(definitionResource).Get(ctx, definition.GetName(), metav1.GetOptions{})
			if apierrors.IsNotFound(err) {
				return state{done: true, outcome: "CustomResourceDefinition " + definition.GetName() + " is deleted."}, nil
			}
			return state{step: progress.Step{Text: "Kubernetes deletes its objects"}}, failure.With(err, everywhere("get", "customresourcedefinitions"))
		})
		if err != nil {
			return err
		}
	}
	return m.followStep(ctx, m.o, "Removal of APIService "+apiServiceName, func(ctx context.Context) (state, error) {
		_, err := m.dynamic.Resource(apiServiceResource).Get(ctx, apiServiceName, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return state{done: true, outcome: "APIService " + apiServiceName + " of the definitions no longer exists."}, nil
		}
		return state{step: progress.Step{Text: "Kubernetes removes it"}}, failure.With(err, everywhere("get", "apiservices"))
	})
}

// removeFinalizers removes the finalizers of the objects: the program that would remove them is stopped.
func (m *operatorMigration) removeFinalizers(ctx context.Context, resource string) error {
	gvr := v1beta2.SchemeGroupVersion.WithResource(resource)
	list, err := m.dynamic.Resource(gvr).List(ctx, metav1.ListOptions{})
	if apierrors.IsNotFound(err) {
		return nil // the definition is being deleted
	}
	if err != nil {
		return failure.With(err, everywhere("list", resource))
	}
	for i := range list.Items {
		object := &list.Items[i]
		exported := slices.ContainsFunc(m.objects[resource], func(o unstructured.Unstructured) bool { return o.GetUID() == object.GetUID() })
		if !exported {
			return failure.NotMet(fmt.Sprintf("%s %s/%s was created while the command ran, and is not exported. Type the command again", resource, object.GetNamespace(), object.GetName()))
		}
		if len(object.GetFinalizers()) == 0 {
			continue
		}
		_, err := m.dynamic.Resource(gvr).Namespace(object.GetNamespace()).Patch(ctx, object.GetName(), types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`), metav1.PatchOptions{})
		if err != nil && !apierrors.IsNotFound(err) {
			return failure.With(err, failure.Right{Verb: "patch", Resource: resource, Namespace: object.GetNamespace()})
		}
	}
	return nil
}
