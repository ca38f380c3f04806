// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/apiserver/rebuild"
)

// TestSettle: a snapshot that lacks an EtcdCluster lets Kubernetes delete its pods, so none is made unless a flag says so.
func TestSettle(t *testing.T) {
	t.Parallel()
	named := func(name string) *v1beta2.EtcdCluster {
		return &v1beta2.EtcdCluster{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: name}}
	}
	invalid := []rebuild.Invalid{{Cluster: named("invalid"), Err: errors.New("spec.size is wrong")}}
	incomplete := []error{errors.New("a/incomplete-record: no declaration")}
	for name, test := range map[string]struct {
		found            rebuild.Found
		include, exclude bool
		clusters         int
		says             []string
	}{
		"all valid":            {clusters: 1},
		"invalid":              {found: rebuild.Found{Invalid: invalid}, exclude: true, says: []string{"EtcdCluster a/invalid is not valid: spec.size is wrong", "--include-invalid"}},
		"invalid, included":    {found: rebuild.Found{Invalid: invalid}, include: true, clusters: 2},
		"incomplete":           {found: rebuild.Found{Incomplete: incomplete}, include: true, says: []string{"a/incomplete-record: no declaration", "--exclude-incomplete", "Kubernetes then deletes their pods"}},
		"incomplete, excluded": {found: rebuild.Found{Incomplete: incomplete}, exclude: true, clusters: 1},
		"both":                 {found: rebuild.Found{Invalid: invalid, Incomplete: incomplete}, says: []string{"a/invalid", "--include-invalid", "a/incomplete-record", "--exclude-incomplete"}},
		"both, settled":        {found: rebuild.Found{Invalid: invalid, Incomplete: incomplete}, include: true, exclude: true, clusters: 2},
	} {
		test.found.Clusters = []*v1beta2.EtcdCluster{named("valid")}
		err := settle(&test.found, test.include, test.exclude)
		if (err != nil) != (len(test.says) > 0) {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if err == nil && len(test.found.Clusters) != test.clusters {
			t.Errorf("%s: %d EtcdClusters, want %d", name, len(test.found.Clusters), test.clusters)
		}
		for _, part := range test.says {
			if !strings.Contains(err.Error(), part) {
				t.Errorf("%s: %q is not said: %v", name, part, err)
			}
		}
	}
}
