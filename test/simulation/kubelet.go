// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/etcd-operator/etcd-operator/pkg/resources"
)

// run is a pod as the kubelet of its node sees it.
type run struct {
	w        *World
	name     string
	uid      string
	node     *node
	ip       string
	emptyDir *dataDir
	process  *process
	restarts int
	// starting is true while a start of the container is on its way, and generation
	// tells such starts apart from those of before.
	starting   bool
	generation int
	// launching is true while the launcher waits in the container for a member.
	launching bool
	image     string
	// containers counts the containers that were made; seen is the generation of the
	// pod that the kubelet knows, and late is true while it has not said that it has
	// restarted a container for another image.
	containers int
	seen       int64
	late       bool
	// rolling is true from a change of the image until the container made from it is ready.
	rolling bool
	// mounts is what the volumes hold, by the name of the secret.
	mounts map[string]*corev1.Secret
	// told is which certificates the pod says that it shall have.
	told string
	// ready is what the last probe said, and probeAt when the opposite is noticed.
	ready   bool
	probing bool
	over    bool
}

const (
	backoffBase = 10 * time.Second
	backoffMax  = 5 * time.Minute
)

// podChanged is what the scheduler and the kubelets make of a change of a pod.
func (w *World) podChanged(pod *corev1.Pod, deleted bool) {
	r := w.runOf(string(pod.UID))
	switch {
	case deleted:
		if r != nil {
			r.forget()
		}
		w.finalizeClaims()
	case r == nil:
		r = &run{w: w, name: pod.Name, uid: string(pod.UID)}
		if claimName(pod) == "" {
			r.emptyDir = w.etcd.newDir()
		}
		w.runs = append(w.runs, r)
		w.after(w.dice.between(5*time.Millisecond, 100*time.Millisecond), r.schedule)
	case pod.DeletionTimestamp != nil:
		r.terminate()
	case r.severed(): // it hears of it later
	case finished(pod):
		r.halt()
		w.etcd.doom(r.emptyDir)
		w.finalizeClaims()
	case r.image != "" && image(pod) != r.image:
		r.upgrade()
	case r.launching && !resources.IsPrepared(pod.Annotations):
		r.admit()
	case r.mounts != nil && pod.Annotations[resources.AnnotationCertificates] != r.told:
		r.told = pod.Annotations[resources.AnnotationCertificates]
		r.remount(true)
	}
}

func (w *World) runOf(uid string) *run {
	for _, r := range w.runs {
		if r.uid == uid {
			return r
		}
	}
	return nil
}

// finalizeClaims removes claims that were deleted and that no pod uses any more.
func (w *World) finalizeClaims() {
	for _, object := range w.store.list(kindClaim) {
		if object.GetDeletionTimestamp() != nil && !w.store.claimInUse(object.GetName()) {
			w.store.remove(kindClaim, object.GetName())
		}
	}
}

// pod returns the pod of r as it is now.
func (r *run) pod() (*corev1.Pod, bool) {
	pod, found := lookup[*corev1.Pod](r.w.store, kindPod, r.name)
	return pod, found && string(pod.UID) == r.uid
}

// schedule binds the pod to a node, when there is one and its volume exists.
func (r *run) schedule() {
	pod, found := r.pod()
	if !found || pod.DeletionTimestamp != nil || finished(pod) {
		return
	}
	n := r.w.place()
	if n == nil || !r.volumeExists(pod) {
		r.w.after(r.w.dice.between(time.Second, 2*time.Second), r.schedule)
		return
	}
	r.node, r.seen = n, pod.Generation
	edit(r.w.store, kindPod, r.name, func(pod *corev1.Pod) {
		pod.Spec.NodeName = n.name
		pod.Status.Phase = corev1.PodPending
		setCondition(pod, corev1.PodScheduled, corev1.ConditionTrue)
		r.waiting(pod, "ContainerCreating")
	})
	r.startIn(r.w.startDelay())
}

func (r *run) volumeExists(pod *corev1.Pod) bool {
	name := claimName(pod)
	if name == "" {
		return true
	}
	claim, found := lookup[claimObject](r.w.store, kindClaim, name)
	return found && claim.DeletionTimestamp == nil
}

// waiting says in the status that the container does not run.
func (r *run) waiting(pod *corev1.Pod, reason string) {
	r.post(pod, corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason}})
	r.ready = false
}

// post writes the state of the container into the status. Some kubelets do not say
// which generation of the pod they know.
func (r *run) post(pod *corev1.Pod, state corev1.ContainerState) {
	status := corev1.ContainerStatus{Name: resources.ContainerName, RestartCount: int32(r.restarts), State: state}
	if r.containers > 0 {
		status.ContainerID = "containerd://" + r.uid + "-" + strconv.Itoa(r.containers)
	}
	pod.Status.ContainerStatuses = []corev1.ContainerStatus{status}
	if r.w.plan.Seed%2 == 0 {
		pod.Status.ObservedGeneration = r.seen
	}
	setCondition(pod, corev1.PodReady, corev1.ConditionFalse)
}

// startIn starts the container in d.
func (r *run) startIn(d time.Duration) {
	r.generation++
	r.starting = true
	generation := r.generation
	r.w.after(d, func() {
		if r.generation == generation && !r.over {
			r.start()
		}
	})
}

func (r *run) start() {
	r.starting = false
	pod, found := r.pod()
	if !found || pod.DeletionTimestamp != nil || finished(pod) || !r.node.hears() || r.process != nil {
		return
	}
	dir := r.emptyDir
	if dir == nil {
		dir = r.w.etcd.claimDir(claimName(pod))
	}
	if dir == nil || r.w.etcd.inUse(dir) {
		r.startIn(r.w.dice.between(time.Second, 2*time.Second)) // the volume is not there yet, or still elsewhere
		return
	}
	if r.mounts == nil && !r.mount() {
		r.startIn(r.w.dice.between(time.Second, 2*time.Second)) // a secret is not there yet
		return
	}
	if r.ip == "" {
		r.w.ips++
		r.ip = "10.1." + strconv.Itoa(r.w.ips/250) + "." + strconv.Itoa(1+r.w.ips%250)
	}
	r.image, r.seen = image(pod), pod.Generation
	r.containers++
	if resources.IsPrepared(pod.Annotations) {
		r.launching = true
		r.running()
		return
	}
	r.startEtcd(pod, dir)
}

// startEtcd runs etcd in the container.
func (r *run) startEtcd(pod *corev1.Pod, dir *dataDir) {
	r.launching = false
	r.w.checks.starting(r, dir)
	process, err := r.w.etcd.start(r, dir, pod)
	r.running()
	r.process, r.ready = process, false
	if err != nil {
		r.w.trace("pod %s: etcd does not start: %v", r.name, err)
		generation := r.generation
		r.w.after(r.w.dice.between(50*time.Millisecond, 500*time.Millisecond), func() {
			if r.generation == generation {
				r.exited()
			}
		})
		return
	}
	r.w.trace("pod %s: etcd %s started as %x", r.name, process.version, dir.id)
	r.w.etcd.tick()
}

// admit lets the launcher become etcd when the kubelet has written the annotation to the
// file that it reads.
func (r *run) admit() {
	generation := r.generation
	r.w.after(r.w.dice.between(20*time.Millisecond, 1500*time.Millisecond), func() {
		pod, found := r.pod()
		dir := r.emptyDir
		if dir == nil && found {
			dir = r.w.etcd.claimDir(claimName(pod))
		}
		if found && r.launching && r.generation == generation && !r.over && r.node.hears() && dir != nil && pod.DeletionTimestamp == nil {
			r.startEtcd(pod, dir)
		}
	})
}

// running says in the status that the container runs; a late kubelet says so when
// etcd may have answered for a while.
func (r *run) running() {
	post := func() {
		edit(r.w.store, kindPod, r.name, func(pod *corev1.Pod) {
			pod.Status.Phase = corev1.PodRunning
			pod.Status.PodIP = r.ip
			r.post(pod, corev1.ContainerState{Running: &corev1.ContainerStateRunning{}})
		})
	}
	if !r.late {
		post()
		return
	}
	generation := r.generation
	r.probing = true
	r.w.after(r.w.dice.between(100*time.Millisecond, 4*time.Second), func() {
		r.probing = false
		if r.generation == generation && !r.over && r.node.hears() {
			r.late, r.ready = false, false
			post()
		}
	})
}

// exited is called when the container has ended by itself.
func (r *run) exited() {
	r.halt()
	if _, found := r.pod(); !found || r.over || !r.node.hears() {
		return
	}
	edit(r.w.store, kindPod, r.name, func(pod *corev1.Pod) { r.waiting(pod, "CrashLoopBackOff") })
	delay := backoffMax
	if r.restarts < 5 {
		delay = backoffBase << r.restarts
	}
	r.restarts++
	if r.restarts == 1 {
		delay = r.w.dice.between(100*time.Millisecond, time.Second) // the first restart is at once
	}
	r.startIn(delay)
}

// halt stops the process. What is in its data directory stays.
func (r *run) halt() {
	r.generation++
	r.starting, r.launching = false, false
	if r.process != nil {
		r.w.etcd.stop(r.process)
		r.process = nil
	}
}

// upgrade restarts the container with the image that the pod has now.
func (r *run) upgrade() {
	was := r.image
	r.image, r.rolling = "", true
	r.w.etcd.restarting(r)
	r.w.after(r.w.dice.between(50*time.Millisecond, 4*time.Second), func() {
		pod, found := r.pod()
		if !found || r.over || !r.node.hears() {
			return
		}
		if r.seen = pod.Generation; image(pod) == was && r.process != nil {
			r.unchanged(was)
			return
		}
		r.halt()
		if r.late = r.w.dice.chance(50); !r.late {
			edit(r.w.store, kindPod, r.name, func(pod *corev1.Pod) { r.waiting(pod, "ContainerCreating") })
		}
		r.startIn(r.w.startDelay())
	})
}

// unchanged is for an image that was taken back before the kubelet has noticed.
func (r *run) unchanged(image string) {
	r.image, r.rolling = image, false
	delete(r.w.etcd.upgrading, r.uid)
	edit(r.w.store, kindPod, r.name, func(pod *corev1.Pod) {
		if pod.Status.ObservedGeneration != 0 {
			pod.Status.ObservedGeneration = r.seen
		}
	})
}

// terminate lets the container end and then forgets the pod. On a machine that is
// down nobody does.
func (r *run) terminate() {
	r.w.etcd.doom(r.emptyDir)
	r.w.doomWithClaim(r.name)
	if r.over {
		return
	}
	r.w.after(r.w.dice.between(50*time.Millisecond, 3*time.Second), func() {
		if r.node != nil && !r.node.hears() {
			return
		}
		r.halt()
		r.w.after(r.w.dice.between(10*time.Millisecond, 500*time.Millisecond), r.finish)
	})
}

// doomWithClaim marks the data of a pod that goes together with its volume.
func (w *World) doomWithClaim(name string) {
	pod, found := lookup[*corev1.Pod](w.store, kindPod, name)
	claim, bound := lookup[claimObject](w.store, kindClaim, name)
	if found && bound && pod.DeletionTimestamp != nil && claim.DeletionTimestamp != nil {
		w.etcd.doom(w.etcd.claimDir(name))
	}
}

// finish removes the pod from the API after its container has ended.
func (r *run) finish() {
	if pod, found := r.pod(); found && pod.DeletionTimestamp != nil && (r.node == nil || r.node.hears()) {
		r.w.store.remove(kindPod, r.name)
	}
}

// forget is for a pod that is gone from the API: if its node is up, the container
// ends in a moment.
func (r *run) forget() {
	if r.over {
		return
	}
	if r.severed() {
		r.halt() // removing such a pod states that its machine is off
	}
	r.over = true
	r.w.etcd.doom(r.emptyDir)
	r.w.after(r.w.dice.between(10*time.Millisecond, 2*time.Second), func() {
		r.halt()
		r.w.etcd.destroy(r.emptyDir)
		r.w.dropRun(r)
	})
}

func (w *World) dropRun(r *run) {
	for i := range w.runs {
		if w.runs[i] == r {
			w.runs = append(w.runs[:i:i], w.runs[i+1:]...)
			return
		}
	}
}

// probe compares what the readiness probe would say with the pod, and lets the
// kubelet notice a difference after a while.
func (r *run) probe() {
	serves := r.process != nil && r.w.etcd.ready(r.process)
	if serves == r.ready || r.probing || r.process == nil || !r.node.hears() {
		return
	}
	delay := r.w.dice.between(10*time.Millisecond, 2*time.Second)
	if !serves {
		delay = r.w.dice.between(4*time.Second, 6*time.Second)
	}
	r.probing = true
	r.w.after(delay, func() {
		r.probing = false
		if r.process == nil || r.over || !r.node.hears() || r.w.etcd.ready(r.process) != serves {
			return
		}
		r.ready, r.rolling = serves, r.rolling && !serves
		r.w.setReady(r.name, r.uid, serves)
	})
}

func image(pod *corev1.Pod) string {
	for i := range pod.Spec.Containers {
		if c := &pod.Spec.Containers[i]; c.Name == resources.ContainerName {
			return c.Image
		}
	}
	return ""
}

// versionOf returns the version in the tag of an image.
func versionOf(image string) string {
	_, tag, _ := strings.Cut(image, ":v")
	return tag
}
