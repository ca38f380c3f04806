// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"context"
	"errors"
	"net"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/etcd-operator/etcd-operator/pkg/etcd"
	simetcd "github.com/etcd-operator/etcd-operator/test/simulation/etcd"
	"github.com/etcd-operator/etcd-operator/test/simulation/kubernetes"
	"github.com/etcd-operator/etcd-operator/test/simulation/schedules"
)

// etcdPort is etcd for one controller.
type etcdPort struct{ c *Manager }

// addressOf returns the address that is dialed for an endpoint. A Service of the namespace leads to the old member of its name.
func addressOf(endpoint etcd.Endpoint) string {
	if u, err := url.Parse(endpoint.URL); err == nil && endpoint.Address == "" {
		return u.Hostname()
	}
	host, _, err := net.SplitHostPort(endpoint.Address)
	if err != nil {
		return ""
	}
	return strings.TrimSuffix(host, "."+schedules.Namespace+".svc")
}

// at returns the process behind an endpoint, if the controller reaches it and each takes the
// certificate of the other.
func (p etcdPort) at(target etcd.Target, endpoint etcd.Endpoint) *simetcd.Process {
	address := addressOf(endpoint)
	if other, leads := p.c.W.Etcd.Elsewhere[address]; leads {
		address = other
	}
	found := p.c.W.Etcd.Serving(address)
	if found == nil || p.c.W.Etcd.IsHidden(found.Run) || !p.c.W.AcceptsClient(found, target.TLS, target.TLSIdentity) {
		return nil
	}
	return found
}

// of returns the process behind an endpoint, as at does, or the error if it is of another cluster than the
// target.
func (p etcdPort) of(target etcd.Target, endpoint etcd.Endpoint, op string) (*simetcd.Process, error) {
	found := p.at(target, endpoint)
	if found != nil && len(target.ClusterIDs) > 0 && !slices.Contains(target.ClusterIDs, found.Dir.Lineage.ClusterID) {
		return found, &etcd.Error{Op: op, Member: endpoint.Name, Kind: etcd.ErrOtherCluster}
	}
	return found, nil
}

// silenceTakes is how long the controller waits for an unresponsive member.
const silenceTakes = time.Second

// Statuses implements cluster.Etcd.
func (p etcdPort) Statuses(ctx context.Context, target etcd.Target) map[string]etcd.StatusResult {
	results, err := call(ctx, p.c, "ask the members", false, true, func() (map[string]etcd.StatusResult, error) {
		return p.statuses(target), nil
	})
	if err == nil {
		return results
	}
	results = map[string]etcd.StatusResult{}
	for _, e := range target.Endpoints {
		results[e.Name] = etcd.StatusResult{Err: err}
	}
	return results
}

func (p etcdPort) statuses(target etcd.Target) map[string]etcd.StatusResult {
	results := map[string]etcd.StatusResult{}
	unresponsive := false
	for _, e := range target.Endpoints {
		if found, err := p.of(target, e, "status"); found != nil {
			p.c.W.noteFull(found, err)
			results[e.Name] = etcd.StatusResult{Health: p.c.W.Etcd.Health(found), Err: err}
			continue
		}
		kind := etcd.ErrTimeout
		if p.c.W.RefusesConnections(addressOf(e)) {
			kind = etcd.ErrUnavailable
		}
		unresponsive = unresponsive || errors.Is(kind, etcd.ErrTimeout)
		results[e.Name] = etcd.StatusResult{Err: &etcd.Error{Op: "status", Member: e.Name, Kind: kind}}
	}
	p.c.Observed.asked(p.c.W, results)
	if unresponsive {
		p.c.W.Advance(silenceTakes)
	}
	return results
}

// Members implements cluster.Etcd.
func (p etcdPort) Members(ctx context.Context, target etcd.Target) (etcd.Membership, error) {
	return call(ctx, p.c, "list members", false, true, func() (etcd.Membership, error) {
		var failed error = &etcd.Error{Op: "list members", Kind: etcd.ErrUnavailable}
		for _, e := range target.Endpoints {
			found, err := p.of(target, e, "list members")
			if found == nil || err != nil {
				continue
			}
			list, err := p.c.W.Etcd.List(found)
			if err == nil {
				p.c.Observed.listed(p.c.W, found.Dir.Lineage)
				return list, nil
			}
			failed = err
		}
		return etcd.Membership{}, failed
	})
}

// FailedReads implements cluster.Etcd.
func (p etcdPort) FailedReads(ctx context.Context, target etcd.Target) map[string]error {
	failed, err := call(ctx, p.c, "read at each voter", false, true, func() (map[string]error, error) {
		failed := map[string]error{}
		for _, e := range target.Endpoints {
			if found, err := p.of(target, e, "linearizable read"); found == nil || err != nil {
				failed[e.Name] = &etcd.Error{Op: "linearizable read", Member: e.Name, Kind: etcd.ErrTimeout}
			} else if err := p.c.W.Etcd.Read(found); err != nil {
				failed[e.Name] = err
			}
		}
		if len(failed) > 0 {
			p.c.W.Advance(silenceTakes)
		}
		return failed, nil
	})
	if err == nil {
		return failed
	}
	failed = map[string]error{}
	for _, e := range target.Endpoints {
		failed[e.Name] = err
	}
	return failed
}

// OwnMembers implements cluster.Etcd.
func (p etcdPort) OwnMembers(ctx context.Context, target etcd.Target, endpoint etcd.Endpoint) (etcd.Membership, error) {
	return call(ctx, p.c, "list own members", false, true, func() (etcd.Membership, error) {
		found, err := p.of(target, endpoint, "list own members")
		if found == nil || err != nil {
			return etcd.Membership{}, &etcd.Error{Op: "list own members", Member: endpoint.Name, Kind: etcd.ErrUnavailable}
		}
		return p.c.W.Etcd.OwnList(found)
	})
}

// change sends a change to the first member of the cluster that responds. Among members of several clusters
// it is a leader: which of them responds first is chance, and here it is the last one.
func (p etcdPort) change(ctx context.Context, name string, target etcd.Target, do func(*simetcd.Process) error) error {
	_, err := call(ctx, p.c, name, true, true, func() (struct{}, error) {
		var at *simetcd.Process
		for _, e := range target.Endpoints {
			found, err := p.of(target, e, name)
			if found != nil && err == nil && (at == nil || found.Leads() && found.Dir.Lineage != at.Dir.Lineage) {
				at = found
			}
		}
		if at != nil {
			return struct{}{}, do(at)
		}
		return struct{}{}, &etcd.Error{Op: name, Kind: etcd.ErrUnavailable}
	})
	return err
}

// Shown implements cluster.Etcd.
func (p etcdPort) Shown(ctx context.Context, target etcd.Target) map[string]etcd.Shown {
	results, err := call(ctx, p.c, "look at certificates", false, true, func() (map[string]etcd.Shown, error) {
		results := map[string]etcd.Shown{}
		for _, e := range target.Endpoints {
			found := p.at(target, e)
			if found == nil {
				results[e.Name] = etcd.Shown{Err: &etcd.Error{Op: "handshake", Member: e.Name, Kind: etcd.ErrUnavailable}}
				continue
			}
			results[e.Name] = etcd.Shown{Client: kubernetes.LeafOf(found.Run.Mounts()[schedules.ServerSecret]), Peer: kubernetes.LeafOf(found.Run.Mounts()[schedules.PeerSecret])}
		}
		return results, nil
	})
	if err == nil {
		return results
	}
	results = map[string]etcd.Shown{}
	for _, e := range target.Endpoints {
		results[e.Name] = etcd.Shown{Err: err}
	}
	return results
}
