// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package resources

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"

	corev1 "k8s.io/api/core/v1"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
)

// templateInputs is what a user decides about the pods of members, except their
// image. It holds what was declared and not what is built from it: another default in
// a later release of the controller must not restart the members of every cluster.
// A field that is added here must be absent from the JSON while it is not set.
type templateInputs struct {
	Pod          v1beta2.PodPolicy   `json:"pod"`
	Etcd         v1beta2.EtcdOptions `json:"etcd"`
	PeerSecret   string              `json:"peerSecret,omitempty"`
	ServerSecret string              `json:"serverSecret,omitempty"`
}

// templateHashBytes are enough that two declarations of one cluster never collide.
const templateHashBytes = 10

// TemplateHash returns a hash of everything that c declares about the pods of its
// members and that cannot change in a living pod; the image, which can, is not in it.
// It is empty if the declaration cannot be encoded, and then nothing is compared.
func TemplateHash(c *v1beta2.EtcdCluster) string {
	in := templateInputs{Pod: *podPolicy(c).DeepCopy()}
	if c.Spec.Etcd != nil {
		in.Etcd = *c.Spec.Etcd
		// However they are written, they mean the same to a pod.
		in.Etcd.HeartbeatInterval, in.Etcd.ElectionTimeout = in.Etcd.HeartbeatInterval.WithoutText(), in.Etcd.ElectionTimeout.WithoutText()
	}
	secrets := Secrets(c)
	in.PeerSecret, in.ServerSecret = secrets.Peer, secrets.Server
	// Tolerations that pods do not get are no part of the hash, so that pods which have them are made again.
	in.Pod.Tolerations = unlimited(in.Pod.Tolerations)
	// These are about volumes, or have no effect, or may not change.
	in.Pod.PersistentVolumeClaimSpec = nil
	in.Pod.PersistentVolumeClaimRetentionPolicy = nil
	in.Pod.BusyboxImage, in.Pod.DNSTimeoutInSecond, in.Pod.ClusterDomain = "", 0, ""
	encoded, err := json.Marshal(in)
	if err != nil {
		return ""
	}
	sum := sha256.Sum256(encoded)
	return hex.EncodeToString(sum[:templateHashBytes])
}

// RestartRequest returns what names the last request to restart every member of c; it
// is empty if there was none, or if it was cancelled.
func RestartRequest(c *v1beta2.EtcdCluster) string {
	request := c.Annotations[AnnotationRestart]
	if request == c.Annotations[AnnotationCancelOperation] {
		return ""
	}
	return request
}

// markTemplate notes on a new pod what it is made from.
func markTemplate(c *v1beta2.EtcdCluster, pod *corev1.Pod) {
	if hash := TemplateHash(c); hash != "" {
		pod.Annotations[AnnotationTemplate] = hash
	}
	if request := RestartRequest(c); request != "" {
		pod.Annotations[AnnotationRestart] = request
	}
}

// Adopted returns live with the note of its template if it has none, and whether that
// is a change. It is taken to be what is declared now: nothing is known against that.
func Adopted(c *v1beta2.EtcdCluster, live *corev1.Pod) (*corev1.Pod, bool) {
	hash := TemplateHash(c)
	if live.Annotations[AnnotationTemplate] != "" || hash == "" {
		return live, false
	}
	pod := live.DeepCopy()
	pod.Annotations = merged(pod.Annotations, map[string]string{AnnotationTemplate: hash})
	return pod, true
}
