// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"maps"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/resources"
)

const (
	protect   = `{"spec":{"deletionProtection":true}}`
	unprotect = `{"spec":{"deletionProtection":false}}`

	// deletedWithin bounds the end of a namespace after the protection was lifted: the
	// namespace controller tries again after a minute at the latest.
	deletedWithin = 100 * time.Second
)

// liftLater lifts the protection when the test ends, so that its namespace can go.
func (c *cluster) liftLater() {
	c.Helper()
	c.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), cleanupTimeout)
		defer cancel()
		_, err := env.Etcd.EtcdV1beta2().EtcdClusters(c.namespace).Patch(ctx, c.name, types.MergePatchType, []byte(unprotect), metav1.PatchOptions{})
		if err != nil && !apierrors.IsNotFound(err) {
			c.Errorf("lift the protection of %s: %v", c.name, err)
		}
	})
}

// awaitMarks waits until every object of the cluster has the label of protected ones, or
// none has.
func (c *cluster) awaitMarks(protected bool) {
	c.Helper()
	ctx := c.within(30 * time.Second)
	for {
		wrong := ""
		for _, kind := range []string{"pods", "pvc", "secrets", "services", "pdb"} {
			all := lines(c.kubectl("get", kind, "-l", "etcd_cluster="+c.name, "-o", "name"))
			marked := lines(c.kubectl("get", kind, "-l", "etcd_cluster="+c.name+","+resources.LabelProtected+"=true", "-o", "name"))
			if len(all) == 0 && kind != "secrets" || protected && len(marked) != len(all) || !protected && len(marked) > 0 {
				wrong = kind
			}
		}
		if wrong == "" {
			return
		}
		select {
		case <-ctx.Done():
			c.Fatalf("protected is %v, and %s do not have the label accordingly", protected, wrong)
		case <-time.After(200 * time.Millisecond):
		}
	}
}

func lines(text string) []string { return strings.Fields(text) }

// TestProtectedNamespace deletes the namespace of a protected cluster, and everything in it
// by name, while a client writes. All of the cluster stays and serves. The namespace says
// why, and goes when the protection is lifted.
func TestProtectedNamespace(t *testing.T) {
	t.Parallel()
	s := startFor(t, 2*testTimeout)
	c := s.cluster("precious")
	c.secure("precious-client-tls", "tls.crt", "tls.key", "ca.crt")
	s.apply(manifest("precious", 3, etcdVersion, withAutoTLS, withVolumes))
	c.settle(3)
	data, uids := c.fill(), c.uids()
	c.liftLater()
	c.patch(protect)
	c.awaitMarks(true)
	w := c.write()

	for _, kind := range []string{"pvc", "secrets", "services", "pdb", "etcd"} {
		s.contains(s.rejected("", "delete", kind, "--all"), "precious", "deletionProtection")
	}
	s.must(env.Kube.CoreV1().Namespaces().Delete(s.ctx(), s.namespace, metav1.DeleteOptions{}), "delete the namespace")
	said := s.awaitNamespaceSays(corev1.NamespaceDeletionContentFailure)
	s.contains(said, "EtcdCluster precious has spec.deletionProtection=true", "kubectl patch etcd precious -n "+s.namespace)
	// The namespace controller has tried more than once by then.
	s.awaitRetries()

	if now := c.uids(); !maps.Equal(now, uids) {
		t.Errorf("the pods are %v and were %v", now, uids)
	}
	if pvcs := c.pvcs(); len(pvcs) != 3 {
		t.Errorf("%d PVCs are left", len(pvcs))
	}
	for name, pvc := range c.pvcs() {
		if pvc.DeletionTimestamp != nil {
			t.Errorf("PVC %s is being deleted", name)
		}
	}
	for _, name := range []string{"precious-ca-tls", "precious-client-tls", "precious-peer-tls", "precious-server-tls"} {
		_, err := env.Kube.CoreV1().Secrets(s.namespace).Get(s.ctx(), name, metav1.GetOptions{})
		s.must(err, "read secret %s", name)
	}
	if report := c.stopped(w); report.LongestGap > 3*time.Second {
		t.Errorf("nothing was acknowledged for %v", report.LongestGap)
	}
	c.holds(data)
	// The Services lead to the members still: nothing could create an EndpointSlice again.
	for _, service := range []string{"precious", "precious-client"} {
		slices, err := env.Kube.DiscoveryV1().EndpointSlices(s.namespace).List(s.ctx(), metav1.ListOptions{LabelSelector: "kubernetes.io/service-name=" + service})
		s.must(err, "list the EndpointSlices of service %s", service)
		if len(slices.Items) != 1 || len(slices.Items[0].Endpoints) != 3 {
			t.Errorf("service %s leads to %+v", service, slices.Items)
		}
	}

	from := time.Now()
	s.kubectl("patch", "etcd", "precious", "--type=merge", "-p", unprotect)
	s.awaitNamespaceDeleted(deletedWithin)
	t.Logf("the namespace was gone %v after the protection was lifted", time.Since(from).Round(time.Second))
}

// TestProtectedMembersMove: the pods of a protected cluster are drained, replaced and scaled
// like all others. Only what could not be undone is rejected.
func TestProtectedMembersMove(t *testing.T) {
	t.Parallel()
	s := startFor(t, 2*testTimeout)
	c := s.create("mobile", 3, etcdVersion, "\n  deletionProtection: true", withVolumes)
	c.liftLater()
	data := c.fill()
	c.awaitMarks(true)
	c.awaitDisruptionsAllowed(1)
	one := c.members.Live()[0]
	s.must(evict(s, one), "evict pod %s", one.Name)
	c.await(s.ctx(), "the eviction to be noticed", func(object *v1beta2.EtcdCluster) bool { return !isSettled(object, 3) })
	c.settle(3)
	s.kubectl("delete", "pod", c.members.Live()[1].Name)
	c.settle(3)
	s.kubectl("scale", "etcdcluster/mobile", "--replicas=1")
	c.settle(1)
	c.awaitPVCs("to be those of the members", 1, func(*corev1.PersistentVolumeClaim) bool { return true })
	c.holds(data)
	s.contains(s.rejected("", "label", "pvc", "--all", "--as=system:serviceaccount:"+s.namespace+":default", resources.LabelProtected+"-"), "orbidden")
	s.kubectl("patch", "etcd", "mobile", "--type=merge", "-p", unprotect)
	c.awaitMarks(false)
}

// awaitNamespaceSays waits for a condition of the namespace and returns its message.
func (s *scenario) awaitNamespaceSays(t corev1.NamespaceConditionType) string {
	s.Helper()
	ctx := s.within(time.Minute)
	for {
		object, err := env.Kube.CoreV1().Namespaces().Get(ctx, s.namespace, metav1.GetOptions{})
		s.must(err, "read the namespace, which must say %s", t)
		for _, cond := range object.Status.Conditions {
			if cond.Type == t && cond.Status == corev1.ConditionTrue && strings.Contains(cond.Message, "deletionProtection=true") {
				return cond.Message
			}
		}
		select {
		case <-ctx.Done():
			s.Fatalf("the namespace does not say %s: %+v", t, object.Status.Conditions)
		case <-time.After(200 * time.Millisecond):
		}
	}
}

// awaitRetries waits for a second failure of the namespace controller after now.
func (s *scenario) awaitRetries() {
	s.Helper()
	ctx := s.within(time.Minute)
	select {
	case <-ctx.Done():
		s.Fatal("the test has ended before the namespace controller tried again")
	case <-time.After(15 * time.Second):
	}
}

// awaitNamespaceDeleted waits until the namespace no longer exists.
func (s *scenario) awaitNamespaceDeleted(within time.Duration) {
	s.Helper()
	ctx := s.within(within)
	for {
		object, err := env.Kube.CoreV1().Namespaces().Get(ctx, s.namespace, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return
		}
		select {
		case <-ctx.Done():
			s.Fatalf("the namespace is still there: %+v", object.Status.Conditions)
		case <-time.After(500 * time.Millisecond):
		}
	}
}
