// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"context"
	"fmt"
	"strconv"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/etcd"
	"github.com/etcd-operator/etcd-operator/pkg/resources"
)

// task is the last task of a controller.
type task struct {
	id   string
	done bool
	err  error
}

// Start implements cluster.Background.
func (c *manager) Start(_ types.NamespacedName, id string, do func(context.Context) error) {
	if c.task.id != "" && !c.task.done {
		return
	}
	c.task = task{id: id}
	c.w.after(c.w.dice.between(10*time.Millisecond, 8*time.Second), func() {
		if c.dead || c.task.id != id {
			return
		}
		c.task.err, c.task.done = do(context.Background()), true
		c.enqueue()
	})
}

// Last implements cluster.Background.
func (c *manager) Last(types.NamespacedName) (id string, done bool, err error) {
	return c.task.id, c.task.done, c.task.err
}

// Forget implements cluster.Background.
func (c *manager) Forget(types.NamespacedName) { c.task = task{} }

// Defragment implements cluster.Etcd. It is the end of a task and no call of a
// reconcile, so no fault of those strikes it.
func (p etcdPort) Defragment(_ context.Context, _ etcd.Target, endpoint etcd.Endpoint) error {
	at := p.at(endpoint)
	if at == nil {
		return &etcd.Error{Op: "defragment", Member: endpoint.Name, Kind: etcd.ErrUnavailable}
	}
	p.c.w.trace("%s defragmented %s", p.c.name, at.run.name)
	p.c.w.stats.Defragmented++
	return nil
}

// DisarmNoSpace implements cluster.Etcd.
func (p etcdPort) DisarmNoSpace(ctx context.Context, target etcd.Target, _ uint64) error {
	return p.change(ctx, "disarm NOSPACE", target, func(*process) error { return nil })
}

// askForOperations has people ask for operations in some schedules of the controller
// as it is. Their dice are their own, so that all else is drawn as it is without them.
func (w *World) askForOperations() {
	if w.variant.wrap != nil || w.variant.admitsAll || w.variant.story != nil {
		return
	}
	dice := newDice(w.plan.Seed, 3)
	if !dice.chance(30) {
		return
	}
	for range 1 + dice.IntN(3) {
		w.after(dice.between(5*time.Second, 90*time.Second), w.askForDefrag)
	}
	if dice.chance(30) {
		w.after(dice.between(5*time.Second, 2*time.Minute), w.cancelOperation)
	}
}

// cancelOperation is a person who does not want to wait any more.
func (w *World) cancelOperation() {
	edit(w.store, kindCluster, clusterName, func(c *v1beta2.EtcdCluster) {
		if op := c.Status.Operation; !op.Over() {
			w.trace("a person cancels %s", op.ID)
			metav1.SetMetaDataAnnotation(&c.ObjectMeta, resources.AnnotationCancelOperation, op.ID)
		}
	})
}

// askForDefrag is what POST defrag does. People stop asking when the faults end, or
// the cluster would be judged at rest while it does what they asked for.
func (w *World) askForDefrag() {
	if w.quiet {
		return
	}
	w.operations++
	edit(w.store, kindCluster, clusterName, func(c *v1beta2.EtcdCluster) {
		if c.Status.Operation.Over() {
			w.trace("a person asks for operation-%d", w.operations)
			c.Status.Operation = &v1beta2.ClusterOperation{
				Type: v1beta2.OperationDefrag, ID: fmt.Sprint("operation-", w.operations), Phase: v1beta2.OperationPending,
			}
		}
	})
}

// askForRestart sets the annotation as a user does, or does what POST restart does.
func (w *World) askForRestart(e Event) {
	edit(w.store, kindCluster, clusterName, func(c *v1beta2.EtcdCluster) {
		request := strconv.Itoa(e.A)
		if e.B%2 == 0 {
			if !c.Status.Operation.Over() {
				return
			}
			c.Status.Operation = &v1beta2.ClusterOperation{Type: v1beta2.OperationRestart, ID: request, Phase: v1beta2.OperationPending}
		}
		metav1.SetMetaDataAnnotation(&c.ObjectMeta, resources.AnnotationRestart, request)
	})
}

// goalOperation: what was asked for comes to an end, whatever happened meanwhile, and
// says for each member what it came to.
func (w *World) goalOperation(cluster *v1beta2.EtcdCluster, _ *lineage) string {
	op := cluster.Status.Operation
	if !op.Over() {
		return fmt.Sprintf("operation %s is %s: %+v", op.ID, op.Phase, op.Results)
	}
	if op == nil {
		return ""
	}
	for _, r := range op.Results {
		if r.State != v1beta2.OperationSucceeded && r.State != v1beta2.OperationFailed {
			return fmt.Sprintf("operation %s is over and member %s is %s", op.ID, r.Member, r.State)
		}
	}
	if (len(op.Results) == 0 && op.Message == "") || op.CompletionTime == nil {
		return fmt.Sprintf("operation %s is over and says nothing", op.ID)
	}
	return ""
}
