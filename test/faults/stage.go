// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package faults

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/utils/ptr"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/test/harness"
)

const (
	// clusterName is the EtcdCluster of each cell, in a namespace of its own.
	clusterName = "matrix"
	// etcdVersion is what the clusters run, and versionBefore what they are upgraded from.
	etcdVersion   = "3.6.16"
	versionBefore = "3.5.35"
	// memberContainer is the container of a member's pod that runs etcd.
	memberContainer = "etcd"

	// retryInterval is the time between two tries of a request that a fault may prevent.
	retryInterval = time.Second
	// requestTimeout bounds one try.
	requestTimeout = 10 * time.Second
)

// stage is where one cell happens.
type stage struct {
	env       *harness.Environment
	cell      Cell
	hold      time.Duration
	namespace string
	members   *harness.Members
	dice      *rand.Rand
	logf      func(format string, args ...any)

	// data was written before the fault.
	data harness.Data
	// caSerial is the serial number of the CA before the operation, and pods are the pods.
	caSerial string
	pods     map[types.UID]bool
	// target is the member that the fault befalls; nil if it befalls a program or all nodes.
	target *corev1.Pod
}

// errFinal is the error of a request that cannot succeed later.
var errFinal = errors.New("this does not change any more")

// eventually repeats a request until it succeeds: the fault may prevent it for a while. The
// error says what prevented it last.
func (s *stage) eventually(ctx context.Context, doing string, request func(context.Context) error) error {
	var last error
	err := wait.PollUntilContextCancel(ctx, retryInterval, true, func(ctx context.Context) (bool, error) {
		ctx, cancel := context.WithTimeout(ctx, requestTimeout)
		defer cancel()
		last = request(ctx)
		if errors.Is(last, errFinal) {
			return false, last
		}
		return last == nil, nil
	})
	if errors.Is(err, errFinal) {
		return fmt.Errorf("%s: %w", doing, err)
	}
	if err != nil {
		return fmt.Errorf("%s: %w; at last: %w", doing, context.Cause(ctx), last)
	}
	return nil
}

// kubectl runs kubectl in the namespace of the cell until it succeeds.
func (s *stage) kubectl(ctx context.Context, stdin string, args ...string) error {
	return s.eventually(ctx, "kubectl "+args[0], func(ctx context.Context) error {
		_, err := s.env.Kubectl(ctx, harness.Command{Args: append([]string{"-n", s.namespace}, args...), Stdin: stdin})
		return err
	})
}

// await waits until done is true of an EtcdCluster. It reads the object again and again: a
// watch may end with the fault.
func (s *stage) await(ctx context.Context, name, what string, done func(*v1beta2.EtcdCluster) bool) error {
	return s.eventually(ctx, fmt.Sprintf("cluster %s, waiting for %s", name, what), func(ctx context.Context) error {
		object, err := s.env.Etcd.EtcdV1beta2().EtcdClusters(s.namespace).Get(ctx, name, metav1.GetOptions{})
		if err == nil && !done(object) {
			err = fmt.Errorf("phase %s, %d of %d members ready: %s", object.Status.Phase, len(object.Status.Members.Ready), ptr.Deref(object.Spec.Replicas, 0), object.Status.Reason)
		}
		return err
	})
}

// settle waits until the status says that the cluster has n members and nothing is left to do,
// and until etcd says the same.
func (s *stage) settle(ctx context.Context, n int) error {
	err := s.await(ctx, clusterName, fmt.Sprintf("%d members", n), func(object *v1beta2.EtcdCluster) bool { return harness.IsSettled(object, n) })
	if err != nil {
		return err
	}
	return s.members.AwaitVoters(ctx, n)
}

// responses returns the responses of the members that respond, by the names of their pods.
func (s *stage) responses(ctx context.Context) map[string]harness.Response {
	responses := map[string]harness.Response{}
	for _, pod := range s.members.Live() {
		r, err := s.members.AskOne(ctx, pod)
		if err != nil {
			continue // the others know which member leads
		}
		responses[pod.Name] = r
	}
	return responses
}

// errNoLeader means that no member leads now.
var errNoLeader = errors.New("no member leads; wait for an election")

// lead makes the member of a pod the leader.
func (s *stage) lead(ctx context.Context, pod *corev1.Pod) error {
	return s.eventually(ctx, "move the leader to "+pod.Name, func(ctx context.Context) error {
		responses := s.responses(ctx)
		next, found := responses[pod.Name]
		if !found {
			return fmt.Errorf("member %s does not respond", pod.Name)
		}
		if next.ID == next.Leader {
			return nil
		}
		for _, r := range responses {
			if r.ID != next.Leader {
				continue
			}
			client, err := s.members.Client(r.Pod)
			if err != nil {
				return err
			}
			_, err = client.MoveLeader(ctx, next.ID)
			return err
		}
		return errNoLeader
	})
}

// programNodes returns the nodes that the installed programs run on.
func (s *stage) programNodes(ctx context.Context) ([]string, error) {
	var nodes []string
	for _, program := range []string{harness.Controller, harness.APIServer} {
		pods, err := s.env.ProgramPods(ctx, program)
		if err != nil {
			return nil, err
		}
		for _, p := range pods.List() {
			nodes = append(nodes, p.Spec.NodeName)
		}
		pods.Close()
	}
	return nodes, nil
}

// candidates returns the members that a fault may befall. A fault of a node takes one without the
// installed programs, which the operation needs, and with so few members that the others are a
// quorum. A member that is alone has no quorum to lose.
func candidates(live []*corev1.Pod, reach reach, programNodes []string) []*corev1.Pod {
	if reach != reachesNode {
		return live
	}
	members := map[string]int{}
	for _, p := range live {
		members[p.Spec.NodeName]++
	}
	return slices.DeleteFunc(slices.Clone(live), func(p *corev1.Pod) bool {
		node := p.Spec.NodeName
		return slices.Contains(programNodes, node) || len(live) > 1 && !tolerates(len(live), members[node])
	})
}

// aim chooses the member that the fault befalls. In half of the cells the member leads.
func (s *stage) aim(ctx context.Context, reach reach) error {
	if reach == reachesProgram {
		return nil
	}
	nodes, err := s.programNodes(ctx)
	if err != nil {
		return err
	}
	live := s.members.Live()
	eligible := candidates(live, reach, nodes)
	if len(eligible) == 0 {
		return fmt.Errorf("no node without the programs of the operator, which are on %v, has few enough of the %d members; "+
			"bring up three nodes: make down, then make up NODES=3", nodes, len(live))
	}
	s.target = eligible[s.dice.IntN(len(eligible))]
	if s.dice.IntN(2) == 0 && len(live) > 1 {
		return s.lead(ctx, s.target)
	}
	return nil
}

// describeTarget returns the role of the member that the fault befalls, "" if there is none.
func (s *stage) describeTarget(ctx context.Context) string {
	switch {
	case s.target == nil:
		return ""
	case operations[s.cell.Operation].takesQuorum:
		return "survivor"
	}
	if r, found := s.responses(ctx)[s.target.Name]; found && r.ID == r.Leader {
		return "leader"
	}
	return "follower"
}

// fresh returns the target's pod as it is now, nil if it does not exist. A pod that was recreated
// has the same name and the same PVC.
func (s *stage) fresh() *corev1.Pod {
	for _, p := range s.members.Pods.List() {
		if p.Name == s.target.Name {
			return p
		}
	}
	return nil
}
