// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/etcd-operator/etcd-operator/pkg/agent"
	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/test/harness"
)

// checkStored runs the agent of the installed image against a backup on the volume and
// returns what it says. A backup that is not there, or not whole, is an error.
func (s *scenario) checkStored(uri string) error {
	s.Helper()
	d, err := env.Program(s.ctx(), harness.Controller)
	s.must(err, "read the controller's deployment")
	store := &agent.Store{Type: v1beta2.BackupStorageTypePersistentVolumeClaim, Bucket: "backups", VolumeDir: agent.VolumeDir}
	at, err := store.KeyOf(uri)
	s.must(err, "read URI %s", uri)
	request := &agent.Request{ID: "check", Store: store, Verify: &agent.Verify{Expected: agent.Expected{Key: at}}}
	args, err := request.Args(agent.CommandVerify)
	s.must(err, "make a request")
	pod := &corev1.Pod{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"},
		ObjectMeta: metav1.ObjectMeta{GenerateName: "check-", Namespace: s.namespace},
		Spec: corev1.PodSpec{
			RestartPolicy: corev1.RestartPolicyNever, AutomountServiceAccountToken: new(bool),
			SecurityContext: restrictedPod(),
			Containers: []corev1.Container{{
				Name: "verify", Image: d.Spec.Template.Spec.Containers[0].Image, ImagePullPolicy: corev1.PullIfNotPresent,
				Command: []string{agent.Program}, Args: args, SecurityContext: restrictedContainer(),
				VolumeMounts: []corev1.VolumeMount{{Name: "backups", MountPath: agent.VolumeDir}},
			}},
			Volumes: []corev1.Volume{{Name: "backups", VolumeSource: corev1.VolumeSource{
				PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "backups"},
			}}},
		},
	}
	made, err := env.Kube.CoreV1().Pods(s.namespace).Create(s.ctx(), pod, metav1.CreateOptions{})
	s.must(err, "make a pod")
	view, err := env.Pod(s.ctx(), s.namespace, made.Name)
	s.must(err, "watch the pod")
	defer view.Close()
	var ended *corev1.Pod
	err = view.Await(s.ctx(), func(pods []*corev1.Pod) bool {
		for _, p := range pods {
			ended = p
			return p.Status.Phase == corev1.PodSucceeded || p.Status.Phase == corev1.PodFailed
		}
		return false
	})
	s.must(err, "the agent to look at %s", uri)
	end := ended.Status.ContainerStatuses[0].State.Terminated
	result, err := agent.DecodeResult(end.Message)
	s.must(err, "read what the agent said: %q", end.Message)
	if result.Error != nil {
		return result.Error
	}
	if !result.Verified || end.ExitCode != 0 {
		return fmt.Errorf("not verified: %s", end.Message)
	}
	return nil
}

func restrictedPod() *corev1.PodSecurityContext {
	yes, user := true, int64(65532)
	return &corev1.PodSecurityContext{
		RunAsNonRoot: &yes, RunAsUser: &user, FSGroup: &user,
		SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
	}
}

func restrictedContainer() *corev1.SecurityContext {
	no := false
	return &corev1.SecurityContext{AllowPrivilegeEscalation: &no, Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}}}
}
