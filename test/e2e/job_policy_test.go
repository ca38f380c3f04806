// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/resources"
)

// jobOfCluster is a spec.backup with a job. Nothing listens at the proxy: the members and the
// volume must be reached without it.
const jobOfCluster = `
  backup:
    storageType: PersistentVolumeClaim
    persistentVolumeClaim: {claimName: backups}
    job:
      labels: {team: data}
      annotations: {sidecar.istio.io/inject: "false"}
      nodeSelector: {kubernetes.io/os: linux}
      tolerations: [{key: backups, operator: Exists}]
      env: [{name: HTTPS_PROXY, value: "http://127.0.0.1:9"}, {name: NO_PROXY, value: .svc}]
      resources: {requests: {cpu: 20m, memory: 64Mi}, limits: {memory: 300Mi}}`

// podsByApp collects the newest state of every pod of a namespace until the test ends.
func (s *scenario) podsByApp() func(app string) []*corev1.Pod {
	s.Helper()
	view, err := env.Kube.CoreV1().Pods(s.namespace).Watch(s.ctx(), metav1.ListOptions{})
	s.must(err, "watch pods")
	s.Cleanup(view.Stop)
	var mu sync.Mutex
	pods := map[string]*corev1.Pod{}
	go func() {
		for event := range view.ResultChan() {
			if pod, ok := event.Object.(*corev1.Pod); ok {
				mu.Lock()
				pods[pod.Name] = pod
				mu.Unlock()
			}
		}
	}()
	return func(app string) []*corev1.Pod {
		mu.Lock()
		defer mu.Unlock()
		var found []*corev1.Pod
		for _, pod := range pods {
			if pod.Labels[resources.LabelApp] == app {
				found = append(found, pod)
			}
		}
		return found
	}
}

// TestJobPolicy: the Jobs of a requested backup, and of the restore of it, run as spec.backup.job
// of the cluster says, in a namespace that enforces the restricted policy.
func TestJobPolicy(t *testing.T) {
	t.Parallel()
	s := start(t)
	s.volume()
	c := s.create("placed", 1, etcdVersion, jobOfCluster)
	data := c.fill()
	pods := s.podsByApp()

	made := postAs[v1beta2.EtcdBackup](c, "backup")
	if made.Spec.Job == nil || made.Spec.Job.Labels["team"] != "data" {
		t.Errorf("the request has made %+v", made.Spec)
	}
	backup := s.awaitBackup(s.ctx(), made.Name, "success", hasSucceeded)
	s.must(s.checkStored(backup.Status.URI), "the stored backup")
	s.placedAsSaid(pods(resources.BackupAppName), resources.ContainerSave)

	c.spoil(data)
	c.awaitLastBackup(made.Name)
	asked := postAs[v1beta2.EtcdRestore](c, "restore")
	s.restored(asked.Name)
	c.settle(1)
	c.holds(data)
	s.placedAsSaid(pods(resources.RestoreAppName), resources.ContainerVerify)

	s.contains(s.rejected(`{"apiVersion":"etcd.database.coreos.com/v1beta2","kind":"EtcdBackup","spec":{"job":{"env":[{"name":"AWS_ENDPOINT_URL","value":"http://x"}]}}}`,
		"create", "--raw", c.raw("backup"), "-f", "-"), "spec.job.env[0].name", "HTTPS_PROXY")
}

// placedAsSaid checks the pods of Jobs that have a container of this name.
func (s *scenario) placedAsSaid(pods []*corev1.Pod, container string) {
	s.Helper()
	if len(pods) == 0 {
		s.Fatalf("no pod with container %s was seen", container)
	}
	for _, pod := range pods {
		var found *corev1.Container
		for i := range pod.Spec.Containers {
			if pod.Spec.Containers[i].Name == container {
				found = &pod.Spec.Containers[i]
			}
		}
		if found == nil {
			s.Fatalf("pod %s has no container %s", pod.Name, container)
		}
		env := map[string]string{}
		for _, variable := range found.Env {
			env[variable.Name] = variable.Value
		}
		for what, ok := range map[string]bool{
			"label":      pod.Labels["team"] == "data",
			"annotation": pod.Annotations["sidecar.istio.io/inject"] == "false",
			"proxy":      env["HTTPS_PROXY"] == "http://127.0.0.1:9" && env["NO_PROXY"] == ".svc" && env["GOMEMLIMIT"] != "",
			"request":    found.Resources.Requests.Memory().String() == "64Mi" && found.Resources.Requests.Cpu().String() == "20m",
			"limit":      found.Resources.Limits.Memory().String() == "300Mi",
			"toleration": len(pod.Spec.Tolerations) > 0 && pod.Spec.Tolerations[0].Key == "backups",
			"user":       pod.Spec.SecurityContext != nil && pod.Spec.SecurityContext.RunAsNonRoot != nil && *pod.Spec.SecurityContext.RunAsNonRoot,
			"token":      pod.Spec.AutomountServiceAccountToken != nil && !*pod.Spec.AutomountServiceAccountToken,
		} {
			if !ok {
				s.Errorf("%s is wrong in pod %s: %+v", what, pod.Name, pod.Spec)
			}
		}
	}
}
