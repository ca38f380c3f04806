// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package faults

import (
	"context"
	"errors"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/test/harness"
)

// operation is what a user does while the fault lasts. Nil functions do nothing.
type operation struct {
	// version of the cluster before the operation; "" for etcdVersion.
	version string
	// spec continues the manifest of the cluster.
	spec string
	// secured is true if clients must prove themselves.
	secured bool
	// takesQuorum is true if the operation is about a cluster without a quorum.
	takesQuorum bool
	// prepare runs before the fault, under the clients.
	prepare func(context.Context, *stage) error
	// request makes the request. It is repeated until the API accepts it.
	request func(context.Context, *stage) error
	// done waits until the operation has ended as it must.
	done func(context.Context, *stage) error
}

// operations says how each operation goes.
var operations = map[Operation]operation{
	Steady:    {},
	ScaleUp:   {request: scale},
	ScaleDown: {request: scale},
	Upgrade: {
		version: versionBefore,
		request: func(ctx context.Context, s *stage) error {
			return s.kubectl(ctx, "", "patch", "etcd", clusterName, "--type=merge", "-p", `{"spec":{"version":"`+etcdVersion+`"}}`)
		},
		done: func(ctx context.Context, s *stage) error {
			return s.await(ctx, clusterName, "version "+etcdVersion, func(object *v1beta2.EtcdCluster) bool {
				return object.Status.CurrentVersion == etcdVersion && harness.IsSettled(object, s.cell.finalSize())
			})
		},
	},
	CARotation: {spec: "\n  TLS:\n    auto: {}", secured: true, prepare: noteCertificates, request: rotate, done: rotated},
	Backup:     {prepare: makeVolume, request: backUp, done: backedUp},
	Restore:    {prepare: prepareRestore, request: restore, done: restored},
	Recovery:   {takesQuorum: true, prepare: loseQuorum, request: requestRecovery, done: recovered},
}

// withVolumes gives every member a volume of the default storage class.
const withVolumes = `
  pod:
    persistentVolumeClaimSpec:
      accessModes: [ReadWriteOnce]
      resources: {requests: {storage: 64Mi}}`

// manifest returns the cluster of a cell.
func manifest(c Cell) string {
	o := operations[c.Operation]
	version := o.version
	if version == "" {
		version = etcdVersion
	}
	return fmt.Sprintf(`apiVersion: etcd.database.coreos.com/v1beta2
kind: EtcdCluster
metadata:
  name: %s
spec:
  size: %d
  version: %q%s%s
`, clusterName, c.Size, version, withVolumes, o.spec)
}

func scale(ctx context.Context, s *stage) error {
	return s.kubectl(ctx, "", "scale", "etcdcluster/"+clusterName, fmt.Sprintf("--replicas=%d", s.cell.finalSize()))
}

// serialOfCA returns the serial number of the cluster's CA.
func serialOfCA(object *v1beta2.EtcdCluster) string {
	for i := range object.Status.Certificates {
		if c := &object.Status.Certificates[i]; c.Use == v1beta2.CertificateUseCA {
			return c.SerialNumber
		}
	}
	return ""
}

func noteCertificates(ctx context.Context, s *stage) error {
	s.pods = map[types.UID]bool{}
	for _, p := range s.members.Live() {
		s.pods[p.UID] = true
	}
	return s.await(ctx, clusterName, "certificates", func(object *v1beta2.EtcdCluster) bool {
		s.caSerial = serialOfCA(object)
		return s.caSerial != ""
	})
}

func rotate(ctx context.Context, s *stage) error {
	return s.kubectl(ctx, "", "annotate", "--overwrite", "etcd/"+clusterName,
		"etcd.database.coreos.com/rotate-ca=1", "etcd.database.coreos.com/drop-old-ca=1")
}

// rotated waits until no member trusts the old CA any more: each has a new pod.
func rotated(ctx context.Context, s *stage) error {
	return s.await(ctx, clusterName, "every member to trust only the new CA", func(object *v1beta2.EtcdCluster) bool {
		valid := harness.Condition(object, v1beta2.ClusterConditionCertificatesValid)
		serial := serialOfCA(object)
		return serial != "" && serial != s.caSerial && harness.IsSettled(object, s.cell.finalSize()) &&
			valid.Status == corev1.ConditionTrue && valid.Reason == "AllUsable" &&
			!slices.ContainsFunc(s.members.Live(), func(p *corev1.Pod) bool { return s.pods[p.UID] })
	})
}

// loseQuorum makes a member on a node without the installed programs the leader, and destroys all
// others with their data. The leader has applied every acknowledged write, so a recovery from it
// loses none.
func loseQuorum(ctx context.Context, s *stage) error {
	occupied, err := s.programNodes(ctx)
	if err != nil {
		return err
	}
	live := s.members.Live()
	i := slices.IndexFunc(live, func(p *corev1.Pod) bool { return !slices.Contains(occupied, p.Spec.NodeName) })
	if i < 0 {
		return fmt.Errorf("every member is on a node of the programs %v; bring up three nodes: make down, then make up NODES=3", occupied)
	}
	survivor := live[i]
	if err := s.lead(ctx, survivor); err != nil {
		return err
	}
	if err := destroyOthers(ctx, s, survivor); err != nil {
		return err
	}
	return s.await(ctx, clusterName, "the status to report the loss of the quorum", func(object *v1beta2.EtcdCluster) bool {
		return harness.HasCondition(object, v1beta2.ClusterConditionQuorumLost, corev1.ConditionTrue) &&
			slices.ContainsFunc(object.Status.MemberStatuses, func(m v1beta2.MemberStatus) bool { return m.Name == survivor.Name && m.RaftIndex > 0 })
	})
}

// destroyOthers stops all members but one at the same moment, and deletes their pods and PVCs. A
// member that is deleted a moment before the others would be replaced.
func destroyOthers(ctx context.Context, s *stage, survivor *corev1.Pod) error {
	var names []string
	var errs []error
	for _, p := range s.members.Live() {
		if p.UID != survivor.UID {
			names = append(names, p.Name)
			errs = append(errs, signalStop(p))
		}
	}
	if err := errors.Join(errs...); err != nil {
		return err
	}
	if err := s.kubectl(ctx, "", append([]string{"delete", "pvc", "--wait=false", "--ignore-not-found"}, names...)...); err != nil {
		return err
	}
	return s.kubectl(ctx, "", append([]string{"delete", "pods", "--force", "--grace-period=0", "--ignore-not-found"}, names...)...)
}

// requestRecovery requests a recovery, unless an earlier try was accepted and its response lost.
func requestRecovery(ctx context.Context, s *stage) error {
	clusters := s.env.Etcd.EtcdV1beta2().EtcdClusters(s.namespace)
	return s.eventually(ctx, "request a recovery", func(ctx context.Context) error {
		object, err := clusters.Get(ctx, clusterName, metav1.GetOptions{})
		if err != nil || object.Status.Recovery != nil {
			return err
		}
		_, err = clusters.Recover(ctx, clusterName, &v1beta2.EtcdClusterRecovery{}, metav1.CreateOptions{})
		return err
	})
}

func recovered(ctx context.Context, s *stage) error {
	return s.await(ctx, clusterName, "the end of the recovery", func(object *v1beta2.EtcdCluster) bool {
		return object.Status.Recovery != nil && object.Status.Recovery.Phase == v1beta2.RecoveryPhaseSucceeded &&
			harness.HasCondition(object, v1beta2.ClusterConditionAvailable, corev1.ConditionTrue)
	})
}
