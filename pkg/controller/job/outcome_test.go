// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package job

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"unicode/utf8"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/etcd-operator/etcd-operator/pkg/untrusted"
)

// TestNewestFinished: one that succeeded counts before any that failed, else the newest.
func TestNewestFinished(t *testing.T) {
	t.Parallel()
	good, bad := phase(corev1.PodSucceeded), phase(corev1.PodFailed)
	for want, pods := range map[string][]*corev1.Pod{
		"":  {newPod("r", running)},
		"a": {newPod("a", good), newPod("b", bad, madeLater)},
		"b": {newPod("a", bad, madeLater), newPod("b", good)},
		"c": {newPod("a", bad), newPod("c", bad, madeLater), newPod("b", bad)},
		"d": {newPod("d", bad), newPod("r", running, madeLater)},
	} {
		found := ""
		if p := NewestFinished(newJob(), pods); p != nil {
			found = p.Name
		}
		if found != want {
			t.Errorf("%q, want %q", found, want)
		}
	}
}

func TestStarted(t *testing.T) {
	t.Parallel()
	ended := &corev1.ContainerStateTerminated{}
	repeated := newPod("p", waiting("ContainerCreating"))
	repeated.Status.ContainerStatuses[0].LastTerminationState.Terminated = ended
	for name, test := range map[string]struct {
		pod  *corev1.Pod
		want bool
	}{
		"nothing":  {newPod("p"), false},
		"waits":    {newPod("p", waiting("x")), false},
		"runs":     {newPod("p", running), true},
		"ended":    {newPod("p", state(corev1.ContainerState{Terminated: ended})), true},
		"repeated": {repeated, true},
	} {
		if got := HasStarted(newJob(), test.pod); got != test.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}

// TestContainersOfOthers: a mesh adds containers that end before the agent, after it, or
// never.
func TestContainersOfOthers(t *testing.T) {
	t.Parallel()
	ended := func(code int32) corev1.ContainerState {
		return corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: code}}
	}
	runs := corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}
	starts := corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "PodInitializing"}}
	for name, test := range map[string]struct {
		init, agent, proxy           corev1.ContainerState
		phase                        corev1.PodPhase
		started, finished, succeeded bool
	}{
		"the proxy is prepared":          {runs, starts, starts, corev1.PodPending, false, false, false},
		"the proxy is first":             {ended(0), starts, runs, corev1.PodPending, false, false, false},
		"the agent works":                {ended(0), runs, runs, corev1.PodRunning, true, false, false},
		"the proxy stays":                {ended(0), ended(0), runs, corev1.PodRunning, true, true, true},
		"the proxy is killed":            {ended(0), ended(0), ended(137), corev1.PodFailed, true, true, true},
		"the agent fails, proxy stays":   {ended(0), ended(1), runs, corev1.PodRunning, true, true, false},
		"the agent fails":                {ended(0), ended(1), ended(0), corev1.PodFailed, true, true, false},
		"the proxy cannot be prepared":   {ended(1), starts, starts, corev1.PodFailed, false, true, false},
		"the proxy ends before the work": {ended(0), runs, ended(1), corev1.PodRunning, true, false, false},
	} {
		pod := newPod("p")
		pod.Spec.InitContainers = []corev1.Container{{Name: "proxy-init"}}
		pod.Spec.Containers = append(pod.Spec.Containers, corev1.Container{Name: "proxy"})
		pod.Status = corev1.PodStatus{
			Phase:                 test.phase,
			InitContainerStatuses: []corev1.ContainerStatus{{Name: "proxy-init", State: test.init}},
			ContainerStatuses:     []corev1.ContainerStatus{{Name: "proxy", State: test.proxy}, {Name: "save", State: test.agent}},
		}
		job := newJob()
		if got := HasStarted(job, pod); got != test.started {
			t.Errorf("%s: started %t", name, got)
		}
		if got := NewestFinished(job, []*corev1.Pod{pod}) != nil; got != test.finished {
			t.Errorf("%s: finished %t", name, got)
		}
		if got := HasSucceeded(job, pod); got != test.succeeded {
			t.Errorf("%s: succeeded %t", name, got)
		}
	}
}

// TestReasons: what Kubernetes says of a pod, in words that a condition takes.
func TestReasons(t *testing.T) {
	t.Parallel()
	with := func(kind corev1.PodConditionType, status corev1.ConditionStatus) func(*corev1.Pod) {
		return func(p *corev1.Pod) {
			p.Status.Conditions = []corev1.PodCondition{{Type: kind, Status: status, Reason: "by-eviction", Message: "m"}}
		}
	}
	for want, pod := range map[string]*corev1.Pod{
		"Evicted: pod p: low":  newPod("p", func(p *corev1.Pod) { p.Status.Reason, p.Status.Message = "Evicted", "low" }),
		"Byeviction: pod p: m": newPod("p", with(corev1.DisruptionTarget, corev1.ConditionTrue)),
		"PodFailed: pod p failed before its containers said why": newPod("p", with(corev1.DisruptionTarget, corev1.ConditionFalse)),
	} {
		reason, message := PodReason(pod)
		if got := reason + ": " + message; got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	if got := WaitingFor(newPod("p", with(corev1.PodScheduled, corev1.ConditionFalse))); got != "by-eviction: m" {
		t.Errorf("not scheduled: %q", got)
	}
	if got := WaitingFor(newPod("p", with(corev1.PodScheduled, corev1.ConditionTrue))); got != "" {
		t.Errorf("scheduled: %q", got)
	}
	for said, want := range map[string]string{"": "AgentFailed", "Error": "AgentFailed", "Completed": "AgentFailed", "OOMKilled": "OOMKilled", "2x": "PodFailed", "-": "PodFailed"} {
		if got, _ := EndedSilently("c", &corev1.ContainerStateTerminated{Reason: said}); got != want {
			t.Errorf("%q is %q, want %q", said, got, want)
		}
	}
	long := Shorten(strings.Repeat("ä", untrusted.MaxText) + "\xff")
	if len(long) > untrusted.MaxText || !utf8.ValidString(long) || Shorten(" a: ") != "a" || !utf8.ValidString(Shorten("a\xff")) {
		t.Errorf("%d bytes", len(long))
	}
	if Ended(&batchv1.Job{}) != nil {
		t.Error("a new Job has ended")
	}
}

// TestProgressOfAnAgent believes only what an agent may say.
func TestProgressOfAnAgent(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		response http.HandlerFunc
		good     bool
	}{
		"a response": {func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(`{"bytes":5,"totalBytes":10}`)) }, true},
		"not found":  {func(w http.ResponseWriter, _ *http.Request) { http.Error(w, `{"bytes":5}`, http.StatusNotFound) }, false},
		"negative":   {func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(`{"bytes":-5}`)) }, false},
		"too much": {func(w http.ResponseWriter, _ *http.Request) {
			_, _ = w.Write([]byte(`{"x":"` + strings.Repeat("x", maxProgress) + `"}`))
		}, false},
		"sends it on": {func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "http://127.0.0.1:1", http.StatusFound)
		}, false},
	} {
		server := httptest.NewServer(test.response)
		agent := NewAgentProgress()
		agent.client.Transport = toServer{server}
		got, err := agent.Of(t.Context(), "10.0.0.1")
		if (err == nil) != test.good || test.good && (got.Bytes != 5 || got.TotalBytes != 10) {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
		if agent.client.Timeout == 0 {
			t.Error("nothing bounds the question")
		}
		server.Close()
	}
}

// toServer takes requests to pods to a server, however often they are sent on.
type toServer struct{ *httptest.Server }

func (s toServer) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.URL.Hostname() != "10.0.0.1" {
		return &http.Response{StatusCode: http.StatusOK, Body: io.NopCloser(strings.NewReader(`{"bytes":5,"totalBytes":10}`)), Request: r}, nil
	}
	there := r.Clone(r.Context())
	there.URL.Host = s.Listener.Addr().String()
	return http.DefaultTransport.RoundTrip(there)
}
