// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/resources"
)

// create measures a new cluster of three, and in turns with it the floor: the same
// three pods without any controller, all started at once with a list of each other.
func (b *bench) create(ctx context.Context) error {
	for i := range b.repetitions {
		for _, kind := range []struct {
			name, more string
			floor      bool
		}{
			{name: "floor: 3 bare pods", floor: true},
			{name: "create 3 members"},
			{name: "floor: 3 bare pods with volumes", more: volumes, floor: true},
			{name: "create 3 members with volumes", more: volumes},
		} {
			err := b.within(ctx, func(ctx context.Context, namespace string) error {
				return b.withSubject(ctx, namespace, "main", func(ctx context.Context, s *subject) error {
					text := manifest(s.name, 3, etcdVersion, kind.more)
					if kind.floor {
						policy, err := podPolicy(text)
						if err != nil {
							return err
						}
						if text, err = floor(s.namespace, s.name, 3, policy); err != nil {
							return err
						}
					}
					voters, ready, err := s.timed(ctx, 3, nil, func(ctx context.Context) error {
						return s.kubectl(ctx, text, "apply", "-f", "-")
					})
					if err != nil {
						return err
					}
					b.say("%s %d: voters %.2f s, ready %.2f s", kind.name, i+1, voters.Seconds(), ready.Seconds())
					b.table.addTime(kind.name+": voters", voters)
					b.table.addTime(kind.name+": ready", ready)
					return nil
				})
			})
			if err != nil {
				return fmt.Errorf("%s: %w", kind.name, err)
			}
		}
	}
	return nil
}

// podPolicy returns what a manifest of an EtcdCluster says about pods, nil if nothing.
func podPolicy(manifest string) (*v1beta2.PodPolicy, error) {
	cluster := &v1beta2.EtcdCluster{}
	if err := yaml.UnmarshalStrict([]byte(manifest), cluster); err != nil {
		return nil, fmt.Errorf("read the manifest of the cluster: %w", err)
	}
	return cluster.Spec.Pod, nil
}

// floor returns the manifests of so many pods, equal to those of the controller but
// for the list of members with which each of them starts, and of their service. If the
// policy asks for volumes, each pod has one.
func floor(namespace, name string, size int32, policy *v1beta2.PodPolicy) (string, error) {
	cluster := &v1beta2.EtcdCluster{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: namespace},
		Spec:       v1beta2.ClusterSpec{Replicas: &size, Repository: v1beta2.DefaultRepository, Version: etcdVersion, Pod: policy},
	}
	var peers []resources.Peer
	for i := range size {
		name := fmt.Sprintf("%s-%d", name, i)
		peers = append(peers, resources.Peer{Name: name, URL: resources.PeerURL(cluster, name)})
	}
	service := resources.PeerService(cluster)
	service.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "Service"}
	service.OwnerReferences = nil
	objects := []any{service}
	for _, peer := range peers {
		if pvc := resources.PVC(cluster, peer.Name); pvc != nil {
			pvc.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "PersistentVolumeClaim"}
			pvc.OwnerReferences = nil
			objects = append(objects, pvc)
		}
		pod := resources.Pod(cluster, resources.MemberPod{Name: peer.Name, Bootstrap: true, Token: "floor", InitialCluster: peers})
		pod.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"}
		pod.OwnerReferences = nil
		pod.Status = corev1.PodStatus{}
		objects = append(objects, pod)
	}
	var text strings.Builder
	for _, object := range objects {
		one, err := yaml.Marshal(object)
		if err != nil {
			return "", fmt.Errorf("write the floor's manifests: %w", err)
		}
		text.Write(one)
		text.WriteString("---\n")
	}
	return text.String(), nil
}
