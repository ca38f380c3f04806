// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/etcd-operator/etcd-operator/pkg/share"
)

// task is the last task of a controller.
type task struct {
	id   string
	done bool
	err  error
}

// Start implements cluster.Background.
func (c *Manager) Start(_ types.NamespacedName, id string, do func(context.Context) error) {
	if c.task.id != "" && !c.task.done {
		return
	}
	c.task = task{id: id}
	c.W.After(c.W.Dice.Between(10*time.Millisecond, 8*time.Second), func() {
		if c.dead || c.task.id != id {
			return
		}
		c.task.err, c.task.done = do(context.Background()), true
		c.enqueue()
	})
}

// Lack implements cluster.Background.
func (c *Manager) Lack(types.NamespacedName) share.Lack { return share.Nothing }

// Last implements cluster.Background.
func (c *Manager) Last(types.NamespacedName) (id string, done bool, err error) {
	return c.task.id, c.task.done, c.task.err
}

// Forget implements cluster.Background.
func (c *Manager) Forget(types.NamespacedName) { c.task = task{} }
