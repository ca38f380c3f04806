// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package v1beta2_test

import (
	"testing"
	"time"

	"sigs.k8s.io/yaml"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
)

func TestMemberLossTimeout(t *testing.T) {
	t.Parallel()
	for spec, want := range map[string]time.Duration{
		`{}`:                                  5 * time.Minute,
		`{recovery: {quorumLoss: Automatic}}`: 5 * time.Minute,
		`{recovery: {memberLossTimeoutSeconds: 90}}`: 90 * time.Second,
		`{pod: {tolerations: [{operator: Exists}]}}`: 5 * time.Minute,
		`{pod: {tolerations: [{key: node.kubernetes.io/unreachable, operator: Exists, effect: NoExecute, tolerationSeconds: 5}]}}`:                             time.Minute,
		`{pod: {tolerations: [{key: node.kubernetes.io/not-ready, effect: NoExecute, tolerationSeconds: 3600}]}}`:                                              time.Hour,
		`{pod: {tolerations: [{operator: Exists, effect: NoExecute, tolerationSeconds: 120}]}}`:                                                                2 * time.Minute,
		`{pod: {tolerations: [{operator: Exists, effect: NoExecute, tolerationSeconds: -1}]}}`:                                                                 time.Minute,
		`{pod: {tolerations: [{operator: Exists, effect: NoExecute, tolerationSeconds: 9223372036854775807}]}}`:                                                (1 << 31) * time.Second,
		`{pod: {tolerations: [{key: dedicated, operator: Exists, effect: NoExecute, tolerationSeconds: 120}]}}`:                                                5 * time.Minute,
		`{recovery: {memberLossTimeoutSeconds: 600}, pod: {tolerations: [{operator: Exists, effect: NoExecute, tolerationSeconds: 120}]}}`:                     10 * time.Minute,
		`{recovery: {quorumLoss: Automatic}, pod: {tolerations: [{operator: Exists, effect: NoExecute, tolerationSeconds: 120}]}}`:                             2 * time.Minute,
		`{pod: {tolerations: [{operator: Exists, effect: NoExecute, tolerationSeconds: 400}, {operator: Exists, effect: NoExecute, tolerationSeconds: 100}]}}`: 100 * time.Second,
	} {
		c := &v1beta2.EtcdCluster{}
		if err := yaml.UnmarshalStrict([]byte(spec), &c.Spec); err != nil {
			t.Fatalf("%s: %v", spec, err)
		}
		newScheme(t).Default(c)
		if got := c.Spec.MemberLossTimeout(); got != want {
			t.Errorf("%s: %v, want %v", spec, got, want)
		}
	}
}
