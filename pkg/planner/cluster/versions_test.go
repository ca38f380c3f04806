// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
)

// TestTagsWithASuffix: etcd reports the number only if the tag of its image has a suffix. A pre-release of etcd is
// another version than the release.
func TestTagsWithASuffix(t *testing.T) {
	t.Parallel()
	each := func(m string) string { return "a:" + m + " b:" + m + " c:" + m }
	for name, tt := range map[string]struct {
		members, spec, current, target, plan string
		ready, upgrading                     bool
	}{
		"the members run it":                      {each("v=3.5.35,podv=3.5.35-arm64"), "3.5.35-arm64", "3.5.35-arm64", "", "steady", true, false},
		"they report the suffix":                  {each("v=3.5.35-k3s1,podv=3.5.35-k3s1"), "3.5.35-k3s1", "3.5.35-k3s1", "", "steady", true, false},
		"only etcd has the suffix":                {each("v=3.5.35-k3s1,podv=3.5.35"), "3.5.35", "3.5.35", "", "steady", true, false},
		"another build is declared":               {each("v=3.5.35,podv=3.5.35-k3s1"), "3.5.35-k3s2", "3.5.35-k3s1", "3.5.35-k3s2", "rollout: UpgradePod b 3.5.35-k3s2", false, true},
		"the pod that does not exist is created":  {"a:v=3.5.35,podv=3.5.35-k3s1,claim b:v=3.5.35,podv=3.5.35-k3s1,claim c:claimv=3.5.35-k3s1,nopod", "3.5.35-k3s1", "3.5.35-k3s1", "", "recreate-pods: CreatePod c", false, false},
		"the next minor version from a safe one":  {each("v=3.5.26,podv=3.5.26-arm64"), "3.6.11", "3.5.26-arm64", "3.6.11", "rollout: UpgradePod b 3.6.11", false, true},
		"a pre-release":                           {each("v=3.7.0-rc.1,podv=3.7.0-rc.1"), "3.7.0-rc.1", "3.7.0-rc.1", "", "steady", true, false},
		"a build of a pre-release":                {each("v=3.7.0-rc.1,podv=3.7.0-rc.1-arm64"), "3.7.0-rc.1-arm64", "3.7.0-rc.1-arm64", "", "steady", true, false},
		"a pre-release in the image of a release": {each("v=3.7.0-rc.1,podv=3.7.0"), "3.7.0", "3.7.0-rc.1", "3.7.0", "rollout: wait ImageVersion", false, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := observed(t, 3, tt.members, wants(tt.spec), ranFor(settledAfter), func(o *Observed) {
				o.Record.Log.ClusterID, o.Record.Log.Minor, o.Record.Log.Readable = hexID(o.Etcd.ClusterID), 6, true
			})
			if got := describe(Decide(o)); !strings.HasPrefix(got, tt.plan) {
				t.Errorf("plan %q, want %q", got, tt.plan)
			}
			s := statusOf(o)
			if s.CurrentVersion != tt.current || s.TargetVersion != tt.target {
				t.Errorf("current %q, target %q; want %q, %q", s.CurrentVersion, s.TargetVersion, tt.current, tt.target)
			}
			if c := find(s, v1beta2.ClusterConditionReady); (c.Status == corev1.ConditionTrue) != tt.ready {
				t.Errorf("Ready is %s: %s", c.Status, c.Message)
			}
			if c := find(s, v1beta2.ClusterConditionUpgrading); (c.Status == corev1.ConditionTrue) != tt.upgrading {
				t.Errorf("Upgrading is %s: %s", c.Status, c.Message)
			}
		})
	}
}

// TestRecoveryKeepsTheTag: a recovery runs the image that the member ran, which may be known by its tag only.
func TestRecoveryKeepsTheTag(t *testing.T) {
	t.Parallel()
	for members, want := range map[string]string{
		"a:v=3.5.35,podv=3.5.35-arm64":        "3.5.35-arm64",
		"a:claimv=3.5.35-k3s1,nopod,v=3.5.35": "3.5.35-k3s1",
		"a:nopod,v=3.5.35":                    "3.5.35-k3s2",
		"a:v=3.5.35,podv=3.6.11":              "3.5.35-k3s2",
		"a:v=3.5.21,podv=3.5.35-arm64":        "3.5.21",
	} {
		o := observed(t, 1, members, wants("3.5.35-k3s2"))
		if got := upgradePathOf(&o).recoveryVersion(&o.Etcd.Members[0]); got != want {
			t.Errorf("%s: %s, want %s", members, got, want)
		}
	}
}
