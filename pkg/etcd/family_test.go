// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package etcd_test

import (
	"net"
	"net/url"
	"testing"

	"github.com/etcd-operator/etcd-operator/pkg/etcd"
	"github.com/etcd-operator/etcd-operator/pkg/etcd/etcdtest"
)

// TestBothFamilies reaches a member that listens as the ones in pods do, at addresses of
// both families. Its URL is a name that does not resolve, so only the address counts.
func TestBothFamilies(t *testing.T) {
	t.Parallel()
	probe, err := net.Listen("tcp6", "[::1]:0")
	if err != nil {
		t.Skipf("there is no IPv6 here: %v", err)
	}
	_ = probe.Close()
	c := etcdtest.NewEverywhere(t)
	u, err := url.Parse(c.Member("m0").ClientURL)
	if err != nil {
		t.Fatal(err)
	}
	pool := etcd.NewPool(etcd.PoolConfig{})
	defer pool.Close()
	for _, ip := range []string{"127.0.0.1", "::1"} {
		e := etcd.Endpoint{Name: "m0", URL: "http://m0.c.ns.svc.invalid:2379", Address: net.JoinHostPort(ip, u.Port())}
		if err := pool.WaitServing(within(t, limit), etcd.Target{}, e); err != nil {
			t.Errorf("at %s: %v", ip, err)
		}
		client := pool.Client(etcd.Target{Endpoints: []etcd.Endpoint{e}})
		if m, err := client.Members(within(t, limit)); err != nil || len(m.Members) != 1 {
			t.Errorf("the members at %s: %+v, %v", ip, m, err)
		}
		if err := client.ProveWrite(within(t, limit)); err != nil {
			t.Errorf("a write at %s: %v", ip, err)
		}
	}
}
