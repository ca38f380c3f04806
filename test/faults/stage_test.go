// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package faults

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// membersOn returns a pod on each of the nodes.
func membersOn(nodes ...string) []*corev1.Pod {
	var pods []*corev1.Pod
	for i, node := range nodes {
		pods = append(pods, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: string(rune('a' + i))}, Spec: corev1.PodSpec{NodeName: node}})
	}
	return pods
}

func TestCandidates(t *testing.T) {
	for name, test := range map[string]struct {
		live     []*corev1.Pod
		reach    reach
		programs []string
		names    []string
	}{
		"a member of any node":                    {membersOn("n1", "n2", "n3"), reachesMember, []string{"n1", "n2"}, []string{"a", "b", "c"}},
		"a node without programs":                 {membersOn("n1", "n2", "n3"), reachesNode, []string{"n1", "n2"}, []string{"c"}},
		"not a node with two of three members":    {membersOn("n1", "n3", "n3"), reachesNode, []string{"n2"}, []string{"a"}},
		"a node with two of five members":         {membersOn("n1", "n3", "n3", "n2", "n2"), reachesNode, []string{"n1", "n2"}, []string{"b", "c"}},
		"not a node with three of five members":   {membersOn("n1", "n3", "n3", "n3", "n2"), reachesNode, []string{"n1", "n2"}, nil},
		"the node of a member that is alone":      {membersOn("n3"), reachesNode, []string{"n1", "n2"}, []string{"a"}},
		"not the node of programs, even if alone": {membersOn("n1"), reachesNode, []string{"n1"}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			var names []string
			for _, p := range candidates(test.live, test.reach, test.programs) {
				names = append(names, p.Name)
			}
			if !slices.Equal(names, test.names) {
				t.Errorf("the candidates are %v, not %v", names, test.names)
			}
		})
	}
}

func TestEventually(t *testing.T) {
	s := &stage{}
	if err := s.eventually(t.Context(), "try", func(context.Context) error { return nil }); err != nil {
		t.Errorf("a request that succeeds: %v", err)
	}
	tries := 0
	err := s.eventually(t.Context(), "try", func(context.Context) error { tries++; return errFinal })
	if !errors.Is(err, errFinal) || tries != 1 {
		t.Errorf("an error that is final: %d tries, %v", tries, err)
	}
	late, lost := errors.New("too late"), errors.New("no connection")
	ctx, cancel := context.WithTimeoutCause(t.Context(), 10*time.Millisecond, late)
	defer cancel()
	if err := s.eventually(ctx, "try", func(context.Context) error { return lost }); !errors.Is(err, late) || !errors.Is(err, lost) {
		t.Errorf("a request that never succeeds: %v", err)
	}
}
