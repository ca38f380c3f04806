// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package etcd_test

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/etcd-operator/etcd-operator/pkg/etcd"
	"github.com/etcd-operator/etcd-operator/pkg/etcd/etcdtest"
)

func TestClusterVersionOfARealMember(t *testing.T) {
	t.Parallel()
	c := etcdtest.New(t)
	m := c.Member("m0")
	etcdtest.Eventually(t, "the cluster version", func() error {
		version, err := c.Client().ClusterVersion(within(t, limit), m.Endpoint())
		if err == nil && version == "" {
			return errors.New("the version is empty")
		}
		return err
	})
	m.Stop()
	if version, err := c.Client().ClusterVersion(within(t, limit), m.Endpoint()); err == nil || errors.Is(err, etcd.ErrVersionUndecided) {
		t.Errorf("a stopped member says %q, %v", version, err)
	}
}

func TestClusterVersionThatMembersSay(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name, body, want string
		undecided        bool
	}{
		{"decided", `{"etcdserver":"3.3.27","etcdcluster":"3.3.0"}`, "3.3.0", false},
		{"not decided", `{"etcdserver":"3.3.27","etcdcluster":"not_decided"}`, "", true},
		{"no cluster version", `{}`, "", true},
		{"no versions", `404 page not found`, "", false},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.URL.Path != "/version" || r.Host != "c-a.c.default.svc:2379" {
					t.Errorf("request for %s at %s", r.URL.Path, r.Host)
				}
				_, _ = io.WriteString(w, test.body)
			}))
			t.Cleanup(server.Close)
			e := etcd.Endpoint{Name: "c-a", URL: "http://c-a.c.default.svc:2379", Address: server.Listener.Addr().String()}
			pool := etcd.NewPool(etcd.PoolConfig{})
			t.Cleanup(pool.Close)
			got, err := pool.Client(etcd.Target{Endpoints: []etcd.Endpoint{e}}).ClusterVersion(within(t, limit), e)
			if got != test.want || (err == nil) != (test.want != "") || errors.Is(err, etcd.ErrVersionUndecided) != test.undecided {
				t.Errorf("%s: %q, %v", test.body, got, err)
			}
		})
	}
}
