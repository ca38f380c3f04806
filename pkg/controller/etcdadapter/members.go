// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package etcdadapter

import (
	"context"
	"errors"

	"k8s.io/apimachinery/pkg/types"

	"github.com/etcd-operator/etcd-operator/pkg/controller/loop"
	"github.com/etcd-operator/etcd-operator/pkg/etcd"
	"github.com/etcd-operator/etcd-operator/pkg/resources"
)

// Members is the Etcd of real members, over a pool of connections. A wait for an
// unresponsive member holds up no other cluster.
type Members struct{ Pool *etcd.Pool }

// aside makes a call to the members of target.
func (p Members) aside(ctx context.Context, target etcd.Target, f func(*etcd.Client) error) error {
	var err error
	loop.Aside(ctx, func() { err = f(p.Pool.Client(target)) })
	return err
}

// Keep ends the connections of a cluster to members that are not in targets.
func (p Members) Keep(key types.NamespacedName, targets ...etcd.Target) {
	p.Pool.Keep(key.String(), targets...)
}

// Members implements cluster.Etcd.
func (p Members) Members(ctx context.Context, target etcd.Target) (list etcd.Membership, err error) {
	err = p.aside(ctx, target, func(c *etcd.Client) error {
		list, err = c.Members(ctx)
		return err
	})
	return list, err
}

// OwnMembers implements cluster.Etcd.
func (p Members) OwnMembers(ctx context.Context, target etcd.Target, endpoint etcd.Endpoint) (list etcd.Membership, err error) {
	err = p.aside(ctx, target, func(c *etcd.Client) error {
		list, err = c.OwnMembers(ctx, endpoint)
		return err
	})
	return list, err
}

// Statuses implements cluster.Etcd.
func (p Members) Statuses(ctx context.Context, target etcd.Target) (results map[string]etcd.StatusResult) {
	loop.Aside(ctx, func() { results = p.Pool.Client(target).Statuses(ctx) })
	return results
}

// FailedReads implements cluster.Etcd.
func (p Members) FailedReads(ctx context.Context, target etcd.Target) (failed map[string]error) {
	loop.Aside(ctx, func() { failed = p.Pool.Client(target).FailedReads(ctx) })
	return failed
}

// ClusterVersion implements cluster.Etcd.
func (p Members) ClusterVersion(ctx context.Context, target etcd.Target, endpoint etcd.Endpoint) (version string, err error) {
	err = p.aside(ctx, target, func(c *etcd.Client) error {
		version, err = c.ClusterVersion(ctx, endpoint)
		return err
	})
	return version, err
}

// Shown implements cluster.Etcd.
func (p Members) Shown(ctx context.Context, target etcd.Target) (shown map[string]etcd.Shown) {
	loop.Aside(ctx, func() { shown = p.Pool.Client(target).Shown(ctx, resources.PeerPort) })
	return shown
}

// AddLearner implements cluster.Etcd.
func (p Members) AddLearner(ctx context.Context, target etcd.Target, peerURL string) error {
	return p.aside(ctx, target, func(c *etcd.Client) error {
		_, err := c.AddLearner(ctx, peerURL)
		return err
	})
}

// AddVoter implements cluster.Etcd.
func (p Members) AddVoter(ctx context.Context, target etcd.Target, peerURL string) error {
	return p.aside(ctx, target, func(c *etcd.Client) error {
		_, err := c.AddVoter(ctx, peerURL)
		return err
	})
}

// Promote implements cluster.Etcd. That the member votes already is success: the reply to an
// earlier attempt was lost.
func (p Members) Promote(ctx context.Context, target etcd.Target, id uint64) error {
	err := p.aside(ctx, target, func(c *etcd.Client) error { return c.Promote(ctx, id) })
	if errors.Is(err, etcd.ErrNotLearner) {
		return nil
	}
	return err
}

// Remove implements cluster.Etcd.
func (p Members) Remove(ctx context.Context, target etcd.Target, id uint64) error {
	return p.aside(ctx, target, func(c *etcd.Client) error { return c.Remove(ctx, id) })
}

// ProveWrite implements cluster.Etcd.
func (p Members) ProveWrite(ctx context.Context, target etcd.Target) error {
	return p.aside(ctx, target, func(c *etcd.Client) error { return c.ProveWrite(ctx) })
}

// ProveFirstWrite implements cluster.Etcd.
func (p Members) ProveFirstWrite(ctx context.Context, target etcd.Target) error {
	return p.aside(ctx, target, func(c *etcd.Client) error { return c.ProveFirstWrite(ctx) })
}

// Pad implements cluster.Etcd.
func (p Members) Pad(ctx context.Context, target etcd.Target, n int) error {
	return p.aside(ctx, target, func(c *etcd.Client) error { return c.Pad(ctx, n) })
}

// Defragment implements cluster.Etcd.
func (p Members) Defragment(ctx context.Context, target etcd.Target, endpoint etcd.Endpoint) error {
	return p.aside(ctx, target, func(c *etcd.Client) error { return c.Defragment(ctx, endpoint) })
}

// DisarmNoSpace implements cluster.Etcd.
func (p Members) DisarmNoSpace(ctx context.Context, target etcd.Target, id uint64) (disarmed bool, err error) {
	err = p.aside(ctx, target, func(c *etcd.Client) (err error) {
		disarmed, err = c.Disarm(ctx, etcd.Alarm{MemberID: id, Type: etcd.AlarmNoSpace})
		return err
	})
	return disarmed, err
}

// MoveLeader implements cluster.Etcd.
func (p Members) MoveLeader(ctx context.Context, leader etcd.Target, to uint64) error {
	return p.aside(ctx, leader, func(c *etcd.Client) error { return c.MoveLeader(ctx, to) })
}
