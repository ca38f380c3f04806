// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package report

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/plugin/connect"
	"github.com/etcd-operator/etcd-operator/pkg/plugin/failure"
)

// APIVersion of the reports that -o json and -o yaml print.
const APIVersion = "kubectl-etcd/v1"

// atOnce is how many clusters are read at the same time.
const atOnce = 8

// VerdictUnknown is the verdict while neither the members nor the status say anything.
const VerdictUnknown v1beta2.ClusterVerdict = "Unknown"

// Status is what is known of one cluster now.
type Status struct {
	metav1.TypeMeta `json:",inline"`

	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	// Verdict is that of the members. If they could not be reached it is that of the status
	// of the cluster, and Live is false.
	Verdict v1beta2.ClusterVerdict `json:"verdict"`
	Message string                 `json:"message,omitempty"`
	// Live is true if the members were probed for this report.
	Live bool `json:"live"`
	// Cluster as the API server stores it.
	Cluster *v1beta2.EtcdCluster `json:"cluster"`
	// Health is what the members say now; absent if it could not be read.
	Health *v1beta2.EtcdClusterHealth `json:"health,omitempty"`
	// Problems say what could not be read, and why.
	Problems []string `json:"problems,omitempty"`
}

// StatusList is what is known of several clusters.
type StatusList struct {
	metav1.TypeMeta `json:",inline"`

	Items []*Status `json:"items"`
}

// NewStatusList returns the list of reports.
func NewStatusList(items []*Status) *StatusList {
	return &StatusList{TypeMeta: metav1.TypeMeta{APIVersion: APIVersion, Kind: "StatusReportList"}, Items: items}
}

// ReadStatus reads one cluster.
func ReadStatus(ctx context.Context, clients *connect.Clients, namespace, name string) (*Status, error) {
	cluster, err := ReadCluster(ctx, clients, namespace, name)
	if err != nil {
		return nil, err
	}
	return complete(ctx, clients, cluster)
}

// ReadCluster reads the object of a cluster.
func ReadCluster(ctx context.Context, clients *connect.Clients, namespace, name string) (*v1beta2.EtcdCluster, error) {
	cluster, err := clients.Etcd.EtcdV1beta2().EtcdClusters(namespace).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return nil, failure.With(err, failure.Right{Verb: "get", Resource: "etcdclusters", Namespace: namespace})
	}
	return cluster, nil
}

// ReadAll reads the clusters of a namespace, or of all namespaces if it is empty.
func ReadAll(ctx context.Context, clients *connect.Clients, namespace string) ([]*Status, error) {
	list, err := clients.Etcd.EtcdV1beta2().EtcdClusters(namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, failure.With(err, failure.Right{Verb: "list", Resource: "etcdclusters", Namespace: namespace})
	}
	slices.SortFunc(list.Items, func(a, b v1beta2.EtcdCluster) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	result := make([]*Status, len(list.Items))
	group, groupCtx := errgroup.WithContext(ctx)
	group.SetLimit(atOnce)
	for i := range list.Items {
		group.Go(func() error {
			status, err := complete(groupCtx, clients, &list.Items[i])
			if apierrors.IsNotFound(err) {
				return nil // it was deleted after the list was read
			}
			result[i] = status
			return err
		})
	}
	err = group.Wait()
	return slices.DeleteFunc(result, func(s *Status) bool { return s == nil }), err
}

// complete adds what the members say. That they cannot be probed is part of the report; only
// the end of the context is an error.
func complete(ctx context.Context, clients *connect.Clients, cluster *v1beta2.EtcdCluster) (*Status, error) {
	cluster.TypeMeta = metav1.TypeMeta{APIVersion: v1beta2.SchemeGroupVersion.String(), Kind: "EtcdCluster"}
	cluster.ManagedFields = nil
	s := &Status{
		TypeMeta:  metav1.TypeMeta{APIVersion: APIVersion, Kind: "StatusReport"},
		Namespace: cluster.Namespace, Name: cluster.Name, Cluster: cluster,
	}
	health, err := ReadHealth(ctx, clients, cluster.Namespace, cluster.Name)
	switch {
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case apierrors.IsNotFound(err):
		return nil, err
	case err != nil:
		s.Verdict, s.Message = byStatus(cluster)
		s.Problems = append(s.Problems, "the members were not probed: "+err.Error())
	default:
		s.Live, s.Health, s.Verdict, s.Message = true, health, health.Verdict, health.Message
		s.Problems = append(s.Problems, health.Problems...)
	}
	if cluster.Generation > cluster.Status.ObservedGeneration {
		s.Problems = append(s.Problems, fmt.Sprintf("the controller has not acted on the last change yet: the status is about generation %d, the spec is generation %d",
			cluster.Status.ObservedGeneration, cluster.Generation))
	}
	return s, nil
}

// ReadHealth asks for what the members of a cluster say now.
func ReadHealth(ctx context.Context, clients *connect.Clients, namespace, name string) (*v1beta2.EtcdClusterHealth, error) {
	health, err := clients.Etcd.EtcdV1beta2().EtcdClusters(namespace).GetHealth(ctx, name, metav1.GetOptions{})
	if err != nil {
		return nil, failure.With(err, failure.Right{Verb: "get", Resource: "etcdclusters/health", Namespace: namespace})
	}
	health.TypeMeta = metav1.TypeMeta{APIVersion: v1beta2.SchemeGroupVersion.String(), Kind: "EtcdClusterHealth"}
	return health, nil
}

// byStatus returns the verdict of the status, which the controller wrote some time ago.
func byStatus(cluster *v1beta2.EtcdCluster) (v1beta2.ClusterVerdict, string) {
	for _, c := range []struct {
		kind    v1beta2.ClusterConditionType
		status  corev1.ConditionStatus
		verdict v1beta2.ClusterVerdict
	}{
		{v1beta2.ClusterConditionQuorumLost, corev1.ConditionTrue, v1beta2.VerdictQuorumLost},
		{v1beta2.ClusterConditionDegraded, corev1.ConditionTrue, v1beta2.VerdictDegraded},
		{v1beta2.ClusterConditionAvailable, corev1.ConditionTrue, v1beta2.VerdictHealthy},
	} {
		if condition := ConditionOf(cluster, c.kind); condition.Status == c.status {
			return c.verdict, condition.Message
		}
	}
	switch cluster.Status.Phase {
	case v1beta2.ClusterPhaseHibernated:
		return v1beta2.VerdictHibernated, ""
	case v1beta2.ClusterPhaseCreating, v1beta2.ClusterPhaseNone:
		return v1beta2.VerdictCreating, ""
	default:
		return VerdictUnknown, ConditionOf(cluster, v1beta2.ClusterConditionAvailable).Message
	}
}

// ConditionOf returns a condition of a cluster; the zero value if there is none.
func ConditionOf(cluster *v1beta2.EtcdCluster, kind v1beta2.ClusterConditionType) v1beta2.ClusterCondition {
	for _, c := range cluster.Status.Conditions {
		if c.Type == kind {
			return c
		}
	}
	return v1beta2.ClusterCondition{}
}
