// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"errors"

	"k8s.io/apimachinery/pkg/types"

	"github.com/etcd-operator/etcd-operator/pkg/controller"
	"github.com/etcd-operator/etcd-operator/pkg/etcd"
	"github.com/etcd-operator/etcd-operator/pkg/resources"
)

// EtcdPool is the Etcd that real members answer, over a pool of connections. A member that
// does not respond is waited for aside, so that it holds up no other cluster.
type EtcdPool struct{ Pool *etcd.Pool }

// aside makes a call to the members of target.
func (p EtcdPool) aside(ctx context.Context, target etcd.Target, f func(*etcd.Client) error) error {
	var err error
	controller.Aside(ctx, func() { err = f(p.Pool.Client(target)) })
	return err
}

// Keep ends the connections of a cluster to members that are not in targets.
func (p EtcdPool) Keep(key types.NamespacedName, targets ...etcd.Target) {
	p.Pool.Keep(key.String(), targets...)
}

// Members implements Etcd.
func (p EtcdPool) Members(ctx context.Context, target etcd.Target) (list etcd.Membership, err error) {
	err = p.aside(ctx, target, func(c *etcd.Client) error {
		list, err = c.Members(ctx)
		return err
	})
	return list, err
}

// OwnMembers implements Etcd.
func (p EtcdPool) OwnMembers(ctx context.Context, target etcd.Target, endpoint etcd.Endpoint) (list etcd.Membership, err error) {
	err = p.aside(ctx, target, func(c *etcd.Client) error {
		list, err = c.OwnMembers(ctx, endpoint)
		return err
	})
	return list, err
}

// Statuses implements Etcd.
func (p EtcdPool) Statuses(ctx context.Context, target etcd.Target) (results map[string]etcd.StatusResult) {
	controller.Aside(ctx, func() { results = p.Pool.Client(target).Statuses(ctx) })
	return results
}

// Shown implements Etcd.
func (p EtcdPool) Shown(ctx context.Context, target etcd.Target) (shown map[string]etcd.Shown) {
	controller.Aside(ctx, func() { shown = p.Pool.Client(target).Shown(ctx, resources.PeerPort) })
	return shown
}

// AddLearner implements Etcd.
func (p EtcdPool) AddLearner(ctx context.Context, target etcd.Target, peerURL string) error {
	return p.aside(ctx, target, func(c *etcd.Client) error {
		_, err := c.AddLearner(ctx, peerURL)
		return err
	})
}

// AddVoter implements Etcd.
func (p EtcdPool) AddVoter(ctx context.Context, target etcd.Target, peerURL string) error {
	return p.aside(ctx, target, func(c *etcd.Client) error {
		_, err := c.AddVoter(ctx, peerURL)
		return err
	})
}

// Promote implements Etcd. That the member votes already is success: the reply to an
// earlier attempt was lost.
func (p EtcdPool) Promote(ctx context.Context, target etcd.Target, id uint64) error {
	err := p.aside(ctx, target, func(c *etcd.Client) error { return c.Promote(ctx, id) })
	if errors.Is(err, etcd.ErrNotLearner) {
		return nil
	}
	return err
}

// Remove implements Etcd.
func (p EtcdPool) Remove(ctx context.Context, target etcd.Target, id uint64) error {
	return p.aside(ctx, target, func(c *etcd.Client) error { return c.Remove(ctx, id) })
}

// ProveWrite implements Etcd.
func (p EtcdPool) ProveWrite(ctx context.Context, target etcd.Target) error {
	return p.aside(ctx, target, func(c *etcd.Client) error { return c.ProveWrite(ctx) })
}

// Pad implements Etcd.
func (p EtcdPool) Pad(ctx context.Context, target etcd.Target, n int) error {
	return p.aside(ctx, target, func(c *etcd.Client) error { return c.Pad(ctx, n) })
}

// Defragment implements Etcd.
func (p EtcdPool) Defragment(ctx context.Context, target etcd.Target, endpoint etcd.Endpoint) error {
	return p.aside(ctx, target, func(c *etcd.Client) error { return c.Defragment(ctx, endpoint) })
}

// DisarmNoSpace implements Etcd.
func (p EtcdPool) DisarmNoSpace(ctx context.Context, target etcd.Target, id uint64) error {
	return p.aside(ctx, target, func(c *etcd.Client) error {
		return c.Disarm(ctx, etcd.Alarm{MemberID: id, Type: etcd.AlarmNoSpace})
	})
}

// MoveLeader implements Etcd.
func (p EtcdPool) MoveLeader(ctx context.Context, leader etcd.Target, to uint64) error {
	return p.aside(ctx, leader, func(c *etcd.Client) error { return c.MoveLeader(ctx, to) })
}
