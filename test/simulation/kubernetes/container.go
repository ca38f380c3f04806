// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package kubernetes

import (
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/etcd-operator/etcd-operator/pkg/resources"
	simetcd "github.com/etcd-operator/etcd-operator/test/simulation/etcd"
)

// waiting writes into the status that the container does not run.
func (r *Run) waiting(pod *corev1.Pod, reason string) {
	r.post(pod, corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason}})
	r.ready = false
}

// post writes the state of the container into the status. Some kubelets do not say
// which generation of the pod they know.
func (r *Run) post(pod *corev1.Pod, state corev1.ContainerState) {
	status := corev1.ContainerStatus{Name: resources.ContainerName, RestartCount: int32(r.restarts), State: state}
	if r.containers > 0 {
		status.ContainerID = "containerd://" + r.uid + "-" + strconv.Itoa(r.containers)
	}
	pod.Status.ContainerStatuses = []corev1.ContainerStatus{status}
	if r.w.Plan.Seed%2 == 0 {
		pod.Status.ObservedGeneration = r.seen
	}
	setCondition(pod, corev1.PodReady, corev1.ConditionFalse, r.now())
}

// startIn starts the container in d.
func (r *Run) startIn(d time.Duration) {
	r.generation++
	r.starting = true
	generation := r.generation
	r.w.After(d, func() {
		if r.generation == generation && !r.Over {
			r.start()
		}
	})
}

func (r *Run) start() {
	r.starting = false
	pod, found := r.Pod()
	if !found || pod.DeletionTimestamp != nil || HasFinished(pod) || !r.Node.Hears() || r.Process != nil {
		return
	}
	dir := r.EmptyDir
	if dir == nil {
		dir = r.w.PVCDir(PVCName(pod))
	}
	if dir == nil || r.w.Etcd.IsInUse(dir) {
		r.startIn(r.w.Dice.Between(time.Second, 2*time.Second)) // the volume is not there yet, or still elsewhere
		return
	}
	if r.mounts == nil && !r.mount() {
		r.startIn(r.w.Dice.Between(time.Second, 2*time.Second)) // a secret is not there yet
		return
	}
	if r.ip == "" {
		r.w.ips++
		r.ip = "10.1." + strconv.Itoa(r.w.ips/250) + "." + strconv.Itoa(1+r.w.ips%250)
	}
	r.image, r.seen = simetcd.Image(pod), pod.Generation
	r.containers++
	if resources.IsPrepared(pod.Annotations) {
		r.launching = true
		r.running()
		return
	}
	r.startEtcd(pod, dir)
}

// startEtcd runs etcd in the container.
func (r *Run) startEtcd(pod *corev1.Pod, dir *simetcd.DataDir) {
	r.launching = false
	r.w.Observer.Starting(r, dir)
	process, err := r.w.Etcd.Start(r, dir, pod)
	r.running()
	r.Process, r.ready = process, false
	if err != nil {
		r.w.Trace("pod %s: etcd does not start: %v", r.name, err)
		generation := r.generation
		r.w.After(r.w.Dice.Between(50*time.Millisecond, 500*time.Millisecond), func() {
			if r.generation == generation {
				r.Exited()
			}
		})
		return
	}
	r.w.Trace("pod %s: etcd %s started as %x", r.name, process.Version, dir.Id)
	r.w.Tick()
}

// admit lets the launcher become etcd when the kubelet has written the annotation to the
// file that it reads.
func (r *Run) admit() {
	generation := r.generation
	r.w.After(r.w.Dice.Between(20*time.Millisecond, 1500*time.Millisecond), func() {
		pod, found := r.Pod()
		dir := r.EmptyDir
		if dir == nil && found {
			dir = r.w.PVCDir(PVCName(pod))
		}
		if found && r.launching && r.generation == generation && !r.Over && r.Node.Hears() && dir != nil && pod.DeletionTimestamp == nil {
			r.startEtcd(pod, dir)
		}
	})
}

// running writes into the status that the container runs; a late kubelet does so when
// etcd may have served for a while.
func (r *Run) running() {
	started := corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: metav1.NewTime(r.w.Now())}}
	post := func() {
		Edit(r.w.Store, KindPod, r.name, func(pod *corev1.Pod) {
			pod.Status.Phase = corev1.PodRunning
			pod.Status.PodIP = r.ip
			r.post(pod, started)
		})
	}
	if !r.late {
		post()
		return
	}
	generation := r.generation
	r.probing = true
	r.w.After(r.w.Dice.Between(100*time.Millisecond, 4*time.Second), func() {
		r.probing = false
		if r.generation == generation && !r.Over && r.Node.Hears() {
			r.late, r.ready = false, false
			post()
		}
	})
}

// Exited is called when the container has ended by itself.
func (r *Run) Exited() {
	r.Halt()
	if _, found := r.Pod(); !found || r.Over || !r.Node.Hears() {
		return
	}
	Edit(r.w.Store, KindPod, r.name, func(pod *corev1.Pod) { r.waiting(pod, "CrashLoopBackOff") })
	delay := backoffMax
	if r.restarts < 5 {
		delay = backoffBase << r.restarts
	}
	r.restarts++
	if r.restarts == 1 {
		delay = r.w.Dice.Between(100*time.Millisecond, time.Second) // the first restart is at once
	}
	r.startIn(delay)
}

// Halt stops the process. What is in its data directory stays.
func (r *Run) Halt() {
	r.generation++
	r.starting, r.launching = false, false
	if r.Process != nil {
		r.w.Etcd.Stop(r.Process)
		r.Process = nil
	}
}

// upgrade restarts the container with the image that the pod has now.
func (r *Run) upgrade() {
	was, containers := r.image, r.containers
	r.image, r.Rolling = "", true
	r.w.Etcd.Restarting(r)
	r.w.After(r.w.Dice.Between(50*time.Millisecond, 4*time.Second), func() {
		pod, found := r.Pod()
		if r.containers != containers {
			return // it had ended, and was started with the image of that moment; a later change has a restart of its own
		}
		if found && !r.Over && r.Process != nil && !r.Node.Hears() {
			r.image = was // the kubelet compares images again when it has caught up
		}
		if !found || r.Over || !r.Node.Hears() {
			return
		}
		if r.seen = pod.Generation; simetcd.Image(pod) == was && r.Process != nil {
			r.unchanged(was)
			return
		}
		r.Halt()
		if r.late = r.w.Dice.Chance(50); !r.late {
			Edit(r.w.Store, KindPod, r.name, func(pod *corev1.Pod) { r.waiting(pod, "ContainerCreating") })
		}
		r.startIn(r.w.startDelay())
	})
}

// owe notes whether the container restarts with another image as soon as its kubelet hears of it. From then on no quorum
// counts on it, whichever change of the pod comes next.
func (r *Run) owe(pod *corev1.Pod) {
	switch {
	case r.image == "": // it restarts already
	case simetcd.Image(pod) != r.image:
		r.w.Etcd.Restarting(r)
	default:
		delete(r.w.Etcd.Upgrading, r.uid)
	}
}

// unchanged is for an image that was taken back before the kubelet has noticed.
func (r *Run) unchanged(image string) {
	r.image, r.Rolling = image, false
	delete(r.w.Etcd.Upgrading, r.uid)
	Edit(r.w.Store, KindPod, r.name, func(pod *corev1.Pod) {
		if pod.Status.ObservedGeneration != 0 {
			pod.Status.ObservedGeneration = r.seen
		}
	})
}

// probe compares what the readiness probe would say with the pod, and lets the
// kubelet notice a difference after a while.
func (r *Run) probe() {
	serves := r.Process != nil && r.w.Etcd.IsReady(r.Process)
	if serves == r.ready || r.probing || r.Process == nil || !r.Node.Hears() {
		return
	}
	delay := r.w.Dice.Between(10*time.Millisecond, 2*time.Second)
	if !serves {
		delay = r.w.Dice.Between(4*time.Second, 6*time.Second)
	}
	r.probing = true
	r.w.After(delay, func() {
		r.probing = false
		if r.Process == nil || r.Over || !r.Node.Hears() || r.w.Etcd.IsReady(r.Process) != serves {
			return
		}
		r.ready, r.Rolling = serves, r.Rolling && !serves
		r.w.SetReady(r.name, r.uid, serves, r.now())
	})
}
