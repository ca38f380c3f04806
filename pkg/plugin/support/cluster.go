// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package support

import (
	"context"
	"errors"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/plugin/failure"
	"github.com/etcd-operator/etcd-operator/pkg/resources"
)

// mostEvents is how many events are read.
const mostEvents = 2000

// cluster adds the EtcdCluster and everything of it. A wrong name, and a Kubernetes that does
// not respond, are errors: the archive would be empty.
func (c *collector) cluster(ctx context.Context) error {
	one := "/apis/" + v1beta2.SchemeGroupVersion.String() + "/namespaces/" + c.Namespace + "/etcdclusters/" + c.Name
	for _, s := range []struct{ file, part, resource, path string }{
		{"cluster.yaml", "EtcdCluster", "etcdclusters", one},
		{"health.yaml", "health of the members", "etcdclusters/health", one + "/health"},
		{"members.yaml", "member lists", "etcdclusters/members", one + "/members"},
	} {
		_, err := c.object(ctx, s.file, source{part: s.part, resource: s.resource, namespace: c.Namespace, path: s.path})
		var status apierrors.APIStatus
		switch {
		case err == nil:
		case ctx.Err() != nil:
			return ctx.Err()
		case s.path == one && apierrors.IsNotFound(err) && !failure.IsMissingAPI(err), !errors.As(err, &status):
			return err
		default:
			c.missing(s.part, err)
		}
	}
	backups, err := c.list(ctx, "backups.yaml", c.ofGroup("EtcdBackup", "etcdbackups"))
	if err != nil {
		return err
	}
	restores, err := c.list(ctx, "restores.yaml", c.ofGroup("EtcdRestore", "etcdrestores"))
	if err != nil {
		return err
	}
	return c.surroundings(ctx, c.owned(backups, restores))
}

// surroundings adds the objects of Kubernetes, the logs of pods, and the events.
func (c *collector) surroundings(ctx context.Context, owned func(*unstructured.Unstructured) bool) error {
	pods, err := c.list(ctx, "pods.yaml", c.core("Pod", "pods", owned))
	if err != nil {
		return err
	}
	for _, s := range []struct {
		file string
		source
	}{
		{"pvcs.yaml", c.core("PersistentVolumeClaim", "persistentvolumeclaims", owned)},
		{"services.yaml", c.core("Service", "services", owned)},
		{"pdbs.yaml", source{
			part: "PodDisruptionBudgets", kind: "PodDisruptionBudget", apiVersion: "policy/v1", resource: "poddisruptionbudgets", namespace: c.Namespace,
			path: "/apis/policy/v1/namespaces/" + c.Namespace + "/poddisruptionbudgets", belongs: owned,
		}},
		{"events.yaml", c.events()},
	} {
		if _, err := c.list(ctx, s.file, s.source); err != nil {
			return err
		}
	}
	return c.logs(ctx, "logs", pods)
}

// ofGroup is a source of backups or restores of the cluster.
func (c *collector) ofGroup(kind, resource string) source {
	return source{
		part: kind + "s", kind: kind, apiVersion: v1beta2.SchemeGroupVersion.String(), resource: resource, namespace: c.Namespace,
		path: "/apis/" + v1beta2.SchemeGroupVersion.String() + "/namespaces/" + c.Namespace + "/" + resource,
		belongs: func(o *unstructured.Unstructured) bool {
			name, _, err := unstructured.NestedString(o.Object, "spec", "etcdCluster", "name")
			return err == nil && name == c.Name
		},
	}
}

// core is a source of objects of Kubernetes.
func (c *collector) core(kind, resource string, belongs func(*unstructured.Unstructured) bool) source {
	return source{
		part: kind + "s", kind: kind, apiVersion: corev1.SchemeGroupVersion.String(), resource: resource, namespace: c.Namespace,
		path: "/api/v1/namespaces/" + c.Namespace + "/" + resource, belongs: belongs,
	}
}

// owned returns what is true for objects of the cluster, also for those that a recovery hides
// or decommissions, and for pods of its backups and restores.
func (c *collector) owned(of ...[]unstructured.Unstructured) func(*unstructured.Unstructured) bool {
	uids := map[string]bool{}
	for _, list := range of {
		for i := range list {
			uids[string(list[i].GetUID())] = true
		}
	}
	return func(o *unstructured.Unstructured) bool {
		labels := o.GetLabels()
		for _, label := range []string{resources.LabelCluster, resources.LabelRecovery, resources.LabelFenced} {
			if labels[label] == c.Name {
				return true
			}
		}
		return uids[labels[resources.LabelBackupUID]] || uids[labels[resources.LabelRestoreUID]]
	}
}

// events is the source of the events about objects whose names begin with that of the cluster.
func (c *collector) events() source {
	s := c.core("Event", "events", func(o *unstructured.Unstructured) bool {
		name, _, err := unstructured.NestedString(o.Object, "involvedObject", "name")
		return err == nil && (name == c.Name || strings.HasPrefix(name, c.Name+"-"))
	})
	s.query = map[string]string{"limit": strconv.Itoa(mostEvents)}
	return s
}
