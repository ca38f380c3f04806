// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package command_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/etcd-operator/etcd-operator/pkg/plugin/diskcheck"
	"github.com/etcd-operator/etcd-operator/pkg/plugin/failure"
	"github.com/etcd-operator/etcd-operator/pkg/plugin/plugintest"
)

const (
	jobsPath      = "/apis/batch/v1/namespaces/prod/jobs"
	checkPodsPath = "/api/v1/namespaces/prod/pods"
	checkPVCsPath = "/api/v1/namespaces/prod/persistentvolumeclaims"
	classPath     = "/apis/storage.k8s.io/v1/storageclasses/fast"
	fastDisk      = `{"writes":10000,"wanted":10000,"writeBytes":2300,"tookMicroseconds":4200000,"p50Microseconds":310,"p99Microseconds":1900,"maxMicroseconds":14200,"done":true}`
	slowDisk      = `{"writes":812,"wanted":10000,"writeBytes":2300,"tookMicroseconds":60000000,"p50Microseconds":70000,"p99Microseconds":90000,"maxMicroseconds":120000,"done":true}`
	limitDisk     = `{"writes":10,"wanted":10,"writeBytes":2300,"tookMicroseconds":100000,"p50Microseconds":9999,"p99Microseconds":10000,"maxMicroseconds":10000,"done":true}`
)

// diskServer serves a Kubernetes that runs Jobs: looks are what each look at the pod finds, the
// last one again and again. The pod and the PVC are there until the Job is deleted and one more
// look has found them.
type diskServer struct {
	*plugintest.Server

	job     *batchv1.Job
	pods    plugintest.Handler
	looks   []corev1.PodStatus
	deleted int
}

func newDiskServer(t *testing.T, looks ...corev1.PodStatus) *diskServer {
	t.Helper()
	s := &diskServer{Server: plugintest.New(t), looks: looks}
	s.Put(classPath, &storagev1.StorageClass{})
	member := memberPod("3.6.16")
	member.Spec.InitContainers = []corev1.Container{{Name: "install-launcher", Image: "registry/operator:v1"}}
	member.Spec.ImagePullSecrets = []corev1.LocalObjectReference{{Name: "pull"}}
	s.On(http.MethodPost, jobsPath, func(_ *http.Request, body []byte) any {
		s.job = &batchv1.Job{}
		if err := json.Unmarshal(body, s.job); err != nil {
			t.Error(err)
		}
		s.job.Name = s.job.GenerateName + "x1"
		return s.job
	})
	s.On(http.MethodGet, jobsPath+"/etcd-diskcheck-x1", func(*http.Request, []byte) any { return s.job })
	s.On(http.MethodDelete, jobsPath+"/etcd-diskcheck-x1", func(_ *http.Request, body []byte) any {
		if !strings.Contains(string(body), `"propagationPolicy":"Foreground"`) {
			t.Errorf("the Job is deleted with %s", body)
		}
		s.deleted = 1
		return s.job
	})
	s.pods = func(r *http.Request, _ []byte) any {
		if r.URL.Query().Get("labelSelector") == "etcd_cluster" {
			return &corev1.PodList{Items: []corev1.Pod{*member}}
		}
		if selector := r.URL.Query().Get("labelSelector"); selector != "batch.kubernetes.io/job-name=etcd-diskcheck-x1" {
			t.Errorf("unexpected selector %q", selector)
		}
		if s.deleted > 0 {
			s.deleted++
		}
		if s.deleted > 2 || len(s.looks) == 0 {
			return &corev1.PodList{}
		}
		status := s.looks[0]
		if len(s.looks) > 1 {
			s.looks = s.looks[1:]
		}
		return &corev1.PodList{Items: []corev1.Pod{{ObjectMeta: metav1.ObjectMeta{Name: "etcd-diskcheck-x1-abc"}, Spec: corev1.PodSpec{NodeName: "node-1"}, Status: status}}}
	}
	s.On(http.MethodGet, checkPodsPath, s.pods)
	s.On(http.MethodGet, checkPVCsPath, func(*http.Request, []byte) any {
		list := &corev1.PersistentVolumeClaimList{Items: []corev1.PersistentVolumeClaim{{ObjectMeta: metav1.ObjectMeta{Name: "main-a7k2"}}}}
		if s.deleted <= 2 {
			list.Items = append(list.Items, corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Name: "etcd-diskcheck-x1-abc-volume"}})
		}
		return list
	})
	s.Put(checkPodsPath+"/etcd-diskcheck-x1-abc/log", http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprintln(w, `{"writes":2500,"wanted":10000,"writeBytes":2300,"tookMicroseconds":1000000}`)
	}))
	return s
}

// isClean fails the test unless the Job was created and deleted, and the plugin has waited for
// the pod and the PVC.
func (s *diskServer) isClean(t *testing.T) {
	t.Helper()
	var lines []string
	for _, r := range s.Requests() {
		lines = append(lines, r.Line)
	}
	if got, want := strings.Join(lines, ", "), "POST "+jobsPath+", DELETE "+jobsPath+"/etcd-diskcheck-x1"; got != want || s.deleted <= 2 {
		t.Errorf("the requests were %s, and %d looks followed the removal", got, s.deleted-1)
	}
}

func inContainer(state corev1.ContainerState) corev1.PodStatus {
	return corev1.PodStatus{ContainerStatuses: []corev1.ContainerStatus{{Name: "disktest", State: state}}}
}

var (
	diskRuns    = inContainer(corev1.ContainerState{Running: &corev1.ContainerStateRunning{}})
	noImage     = inContainer(corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "ImagePullBackOff", Message: "no such image"}})
	unscheduled = corev1.PodStatus{Conditions: []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Message: "0/3 nodes are available"}}}
)

func diskEnds(message string) corev1.PodStatus {
	return inContainer(corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{Message: message}})
}

func TestDiskcheck(t *testing.T) {
	for name, c := range map[string]struct {
		line  string
		looks []corev1.PodStatus
		code  failure.Code
		want  []string
	}{
		"a fast disk": {
			line: "--storage-class fast", looks: []corev1.PodStatus{unscheduled, {}, diskRuns, diskEnds(fastDisk)},
			want: []string{"StorageClass fast on node node-1: 10000 of 10000 writes of 2300 bytes in 4.2 s, each followed by fdatasync\n  p50 0.31 ms, p99 1.90 ms, max 14.20 ms\n  Fast enough for etcd"},
		},
		"the default class": {looks: []corev1.PodStatus{diskEnds(fastDisk)}, want: []string{"The default StorageClass on node node-1"}},
		"a slow disk": {
			looks: []corev1.PodStatus{diskEnds(slowDisk)}, code: failure.CodeNotMet,
			want: []string{"812 of 10000 writes", "error: the disk is too slow for etcd: p99 of fdatasync is 90.00 ms, and etcd recommends less than 10 ms"},
		},
		"10 ms are not less":   {looks: []corev1.PodStatus{diskEnds(limitDisk)}, code: failure.CodeNotMet, want: []string{"is 10.00 ms"}},
		"a disk that fails":    {looks: []corev1.PodStatus{diskEnds(`{"writes":0,"wanted":10000,"writeBytes":2300,"tookMicroseconds":0,"error":"no space left on device"}`)}, code: failure.CodeFailed, want: []string{"the disk was not measured: no space left on device"}},
		"an old image":         {looks: []corev1.PodStatus{diskEnds("Error: unknown command \"disktest\"")}, code: failure.CodeFailed, want: []string{"its image may be older than this plugin. Its log: Error: unknown command"}},
		"an evicted pod":       {looks: []corev1.PodStatus{{Phase: corev1.PodFailed, Reason: "Evicted", Message: "the node was low on memory"}}, code: failure.CodeFailed, want: []string{"the disk was not measured: pod etcd-diskcheck-x1-abc: the node was low on memory"}},
		"no node in time":      {line: "--timeout 2s --limit 1ms", looks: []corev1.PodStatus{unscheduled}, code: failure.CodeTimedOut, want: []string{"not done within 2s: waits for a node: 0/3 nodes are available; ProvisioningFailed: no disk is left"}},
		"no image in time":     {line: "--timeout 2s --limit 1ms", looks: []corev1.PodStatus{noImage}, code: failure.CodeTimedOut, want: []string{"waits: ImagePullBackOff: no such image"}},
		"no pod in time":       {line: "--timeout 2s --limit 1ms", code: failure.CodeTimedOut, want: []string{"waits for the pod; ProvisioningFailed: no disk is left"}},
		"a slow disk, as data": {line: "-o yaml", looks: []corev1.PodStatus{diskEnds(slowDisk)}, code: failure.CodeNotMet, want: []string{"kind: DiskReport\n", "fastEnough: false\n", "p99Milliseconds: 90\n", "recommendedMilliseconds: 10\n"}},
	} {
		t.Run(name, func(t *testing.T) {
			server := newDiskServer(t, c.looks...)
			server.Put("/api/v1/namespaces/prod/events", &corev1.EventList{Items: []corev1.Event{
				{Type: corev1.EventTypeWarning, InvolvedObject: corev1.ObjectReference{Name: "etcd-diskcheck-x1-abc-volume"}, Reason: "ProvisioningFailed", Message: "no disk is left"},
				{Type: corev1.EventTypeWarning, InvolvedObject: corev1.ObjectReference{Name: "main"}, Reason: "Other", Message: "another"},
			}})
			p := newTerminal(t, server.Server, false)
			p.expect(p.run(append([]string{"diskcheck"}, strings.Fields(c.line)...)...), c.code, c.want...)
			server.isClean(t)
		})
	}
}

func TestDiskcheckAsJSON(t *testing.T) {
	server := newDiskServer(t, diskRuns, diskEnds(fastDisk))
	p := newTerminal(t, server.Server, true)
	p.expect(p.run("diskcheck", "--storage-class", "fast", "-o", "json"), failure.CodeDone)
	var got diskcheck.Report
	if err := json.Unmarshal([]byte(p.out.String()), &got); err != nil || got.Kind != "DiskReport" || !got.FastEnough || got.P99Milliseconds != 1.9 || got.Node != "node-1" || got.StorageClass != "fast" {
		t.Errorf("%v: unexpected %+v", err, got)
	}
}

// TestDiskcheckJob: the pod is restricted, the scheduler places it, and the image is that of the
// members with its Secrets.
func TestDiskcheckJob(t *testing.T) {
	server := newDiskServer(t, diskEnds(fastDisk))
	p := newTerminal(t, server.Server, false)
	p.expect(p.run("diskcheck", "--storage-class=fast", "--size=2Gi", "--node=node-1", "--writes=500", "--limit=20s"), failure.CodeDone)
	job := server.job
	pod := job.Spec.Template.Spec
	container, pvc := pod.Containers[0], pod.Volumes[0].Ephemeral.VolumeClaimTemplate.Spec
	if container.Image != "registry/operator:v1" || pod.ImagePullSecrets[0].Name != "pull" || strings.Join(container.Args, " ") != "disktest /var/lib/etcd-agent/volume --writes=500 --limit=20s" {
		t.Errorf("unexpected container %+v", container)
	}
	if *pvc.StorageClassName != "fast" || pvc.Resources.Requests.Storage().String() != "2Gi" || container.VolumeMounts[0].Name != pod.Volumes[0].Name {
		t.Errorf("unexpected volume %+v", pod.Volumes)
	}
	if field := pod.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms[0].MatchFields[0]; pod.NodeName != "" || field.Key != "metadata.name" || field.Values[0] != "node-1" {
		t.Errorf("the pod is placed by %+v, node %q", pod.Affinity, pod.NodeName)
	}
	if !*pod.SecurityContext.RunAsNonRoot || pod.SecurityContext.SeccompProfile.Type != corev1.SeccompProfileTypeRuntimeDefault || *container.SecurityContext.AllowPrivilegeEscalation ||
		container.SecurityContext.Capabilities.Drop[0] != "ALL" || *pod.AutomountServiceAccountToken {
		t.Errorf("the pod is not restricted: %+v %+v", pod.SecurityContext, container.SecurityContext)
	}
	if *job.Spec.ActiveDeadlineSeconds != 360 || *job.Spec.TTLSecondsAfterFinished == 0 || *job.Spec.BackoffLimit != 0 {
		t.Errorf("the Job does not end by itself: %+v", job.Spec)
	}
}

// TestInterruptedDiskcheck: Ctrl-C removes everything.
func TestInterruptedDiskcheck(t *testing.T) {
	server := newDiskServer(t, diskRuns)
	ctx, cancel := context.WithCancel(t.Context())
	server.Put(checkPodsPath+"/etcd-diskcheck-x1-abc/log", http.HandlerFunc(func(http.ResponseWriter, *http.Request) { cancel() }))
	p := newTerminal(t, server.Server, false)
	p.expect(p.runIn(ctx, "diskcheck"), failure.CodeFailed, "error: interrupted; Job etcd-diskcheck-x1, its pod and its PVC were removed")
	server.isClean(t)
}

// TestDiskcheckImage: without a member the image is that of the controller.
func TestDiskcheckImage(t *testing.T) {
	server := newDiskServer(t, diskEnds(fastDisk))
	empty := &corev1.PodList{}
	deployments := "/apis/apps/v1/namespaces/etcd-operator-system/deployments"
	server.Put(checkPodsPath, empty)
	server.Put(deployments, &appsv1.DeploymentList{})
	p := newTerminal(t, server.Server, false)
	p.expect(p.run("diskcheck"), failure.CodeNotMet, "the image of the operator is not known: no member in namespace prod has it", "name it with --image")

	server.Put(deployments, plugintest.Forbidden("deployments", ""))
	p = newTerminal(t, server.Server, false)
	p.expect(p.run("diskcheck"), failure.CodeForbidden, "name it with --image", "the right to list deployments in namespace etcd-operator-system is missing")
	if server.job != nil {
		t.Fatal("a Job was created")
	}

	server = newDiskServer(t, diskEnds(fastDisk))
	first, pods := true, server.pods
	server.On(http.MethodGet, checkPodsPath, func(r *http.Request, body []byte) any {
		if first { // it is for the members
			first = false
			return empty
		}
		return pods(r, body)
	})
	server.Put("/apis/apiregistration.k8s.io/v1/apiservices/v1beta2.etcd.database.coreos.com", map[string]any{"spec": map[string]any{"service": map[string]any{"namespace": "tools"}}})
	server.Put(strings.Replace(deployments, "etcd-operator-system", "tools", 1), &appsv1.DeploymentList{Items: []appsv1.Deployment{{Spec: appsv1.DeploymentSpec{Template: corev1.PodTemplateSpec{
		Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "mesh", Image: "proxy"}, {Name: "controller", Image: "registry/controller:v2"}}},
	}}}}})
	p = newTerminal(t, server.Server, false)
	p.expect(p.run("diskcheck"), failure.CodeDone)
	if image := server.job.Spec.Template.Spec.Containers[0].Image; image != "registry/controller:v2" {
		t.Errorf("the image is %s", image)
	}
}

func TestDiskcheckRights(t *testing.T) {
	forbidden := plugintest.Forbidden
	for name, c := range map[string]struct {
		method, path string
		want         string
	}{
		"no pods":    {http.MethodGet, checkPodsPath, "the right to list pods in namespace prod is missing"},
		"no Jobs":    {http.MethodPost, jobsPath, "the right to create jobs in namespace prod is missing"},
		"no removal": {http.MethodDelete, jobsPath + "/etcd-diskcheck-x1", "the right to delete jobs in namespace prod is missing"},
	} {
		t.Run(name, func(t *testing.T) {
			server := newDiskServer(t, diskEnds(fastDisk))
			server.On(c.method, c.path, func(*http.Request, []byte) any { return forbidden("x", "x") })
			p := newTerminal(t, server.Server, false)
			p.expect(p.run("diskcheck"), failure.CodeForbidden, c.want, "gives the right")
		})
	}
	// Neither the class, the log nor events are needed.
	server := newDiskServer(t, unscheduled, diskRuns, diskEnds(fastDisk))
	server.Put(classPath, forbidden("storageclasses", "fast"))
	server.Put(checkPodsPath+"/etcd-diskcheck-x1-abc/log", forbidden("pods/log", "x"))
	server.Put("/api/v1/namespaces/prod/events", forbidden("events", ""))
	p := newTerminal(t, server.Server, false)
	p.expect(p.run("diskcheck", "--storage-class", "fast"), failure.CodeDone, "Fast enough for etcd")
}

func TestDiskcheckUsage(t *testing.T) {
	for line, want := range map[string]string{
		"--size x": "--size=x is no size", "--size -1Gi": "is no size", "--size 1Mi": "has no room for 10000 writes", "--writes 0": "out of range", "--writes 1000000": "out of range",
		"--limit 0s": "must be above 0", "--timeout 1s": "longer than --limit", "-o wide": "--output=wide is not supported", "main": "1 arguments were given",
	} {
		t.Run(line, func(t *testing.T) {
			server := newDiskServer(t)
			p := newTerminal(t, server.Server, false)
			p.expect(p.run(append([]string{"diskcheck"}, strings.Fields(line)...)...), failure.CodeUsage, want)
			expectRequests(t, server.Server)
		})
	}
	server := newDiskServer(t)
	server.Put(classPath, apierrors.NewNotFound(storagev1.Resource("storageclasses"), "fast"))
	p := newTerminal(t, server.Server, false)
	p.expect(p.run("diskcheck", "--storage-class", "fast"), failure.CodeNotFound, `storageclasses.storage.k8s.io "fast" not found; see kubectl get storageclasses`)
	expectRequests(t, server.Server)
}
