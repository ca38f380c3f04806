// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"context"
	"errors"
	"fmt"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/kubernetes"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"

	"github.com/etcd-operator/etcd-operator/pkg/controller/metrics"
)

// ErrScopesOverlap is returned by Run if another controller looks after clusters that this
// one would look after, too: two controllers must not act on one cluster.
var ErrScopesOverlap = errors.New("the scopes of two controllers overlap")

// rivalCheck is how often a controller that acts looks for rivals. Each controller looks
// after it took its own lease, so at least one of two that start together sees the other.
// The repetition is for a controller that was stopped for longer than its lease, such as by
// a debugger.
const rivalCheck = time.Minute

// settle is how long a controller of one namespace waits before it acts beside a controller with a larger scope. That
// one looks at the leases every rivalCheck, leaves the namespace, and ends what it has begun.
const settle = 2 * rivalCheck

// rivals finds controllers with other leases whose scope overlaps with that of o.
//
// A tenant that may write Leases may write one that looks like a controller's. So only leases in namespaces of
// administrators end a controller. A lease elsewhere can take the clusters of its own namespace and no more,
// whatever its labels say: it decides about no clusters of other tenants.
type rivals struct {
	o     *Options
	kube  kubernetes.Interface
	clock clock.Clock
	// seen is when each lease was first seen as it is now. Clocks of other machines do
	// not matter: a lease is alive if it changes.
	seen map[types.NamespacedName]sighting
	// beyond are leases for more than their own namespace that may be alive.
	beyond []*coordinationv1.Lease
}

type sighting struct {
	renewed time.Time
	since   time.Time
}

func newRivals(o *Options, kube kubernetes.Interface, c clock.Clock) *rivals {
	return &rivals{o: o, kube: kube, clock: c, seen: map[types.NamespacedName]sighting{}}
}

// await returns nil when no controller with an overlapping scope is alive. A lease that is
// held may be that of a process that was killed, so it is waited for until it expires; one
// that is renewed meanwhile is an error.
func (r *rivals) await(ctx context.Context) error {
	for {
		held, err := r.check(ctx)
		if err != nil || held == nil {
			return err
		}
		klog.FromContext(ctx).Info("Another controller holds a lease for the same clusters; waiting whether the lease expires",
			"lease", klog.KObj(held), "holder", ptr.Deref(held.Spec.HolderIdentity, ""), "scope", scopeOf(held).String())
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-r.clock.After(r.o.RetryPeriod):
		}
	}
}

// confirmNone returns an error if there is a rival whose lease is not known to have expired.
func (r *rivals) confirmNone(ctx context.Context) error {
	held, err := r.check(ctx)
	if err == nil && held != nil {
		err = r.overlap(held)
	}
	return err
}

// check returns a rival's lease that may be alive, and an error if one certainly is. It notes which
// clusters leases elsewhere take.
func (r *rivals) check(ctx context.Context) (*coordinationv1.Lease, error) {
	leases, all, err := r.list(ctx)
	if err != nil {
		return nil, err
	}
	var held *coordinationv1.Lease
	var beyond []*coordinationv1.Lease
	taken, seen := sets.New[string](), map[types.NamespacedName]sighting{}
	for i := range leases {
		lease := &leases[i]
		if !r.isRival(lease) {
			continue
		}
		may, renewed := r.isAlive(lease, seen)
		switch {
		case !may:
		case !r.isTrusted(lease.Namespace) && scopeOf(lease) == (scope{scopeNamespace, lease.Namespace}):
			taken.Insert(lease.Namespace)
		case !r.isTrusted(lease.Namespace):
			beyond = append(beyond, lease)
		case renewed:
			return nil, r.overlap(lease)
		default:
			held = lease
		}
	}
	r.seen, r.beyond = seen, beyond
	metrics.SetLeasesNotObeyed(len(beyond))
	if all && r.o.taken.set(taken) { // what was taken stays so while the leases elsewhere cannot be read
		klog.FromContext(ctx).Info("Other controllers look after the clusters of these namespaces, by the leases there", "namespaces", sets.List(taken))
	}
	for _, lease := range beyond {
		klog.FromContext(ctx).Error(nil, "A lease is for clusters outside of its namespace, and is not obeyed. If it is that of a controller, stop one of the two, or keep both leases in one namespace with --leader-elect-resource-namespace",
			"lease", klog.KObj(lease), "scope", scopeOf(lease).String(), "namespace", r.o.LeaseNamespace)
	}
	return held, nil
}

// isTrusted is true for the namespace whose leases administrators write. No other name is: a tenant may create a namespace
// of any name that does not exist.
func (r *rivals) isTrusted(namespace string) bool { return namespace == r.o.LeaseNamespace }

// isAlive says whether a lease may be held, and whether it was certainly renewed since the last look.
func (r *rivals) isAlive(lease *coordinationv1.Lease, seen map[types.NamespacedName]sighting) (may, renewed bool) {
	key := types.NamespacedName{Namespace: lease.Namespace, Name: lease.Name}
	now, at := r.clock.Now(), ptr.Deref(lease.Spec.RenewTime, metav1.MicroTime{}).Time
	before, known := r.seen[key]
	renewed = known && !before.renewed.Equal(at)
	if !known || renewed {
		seen[key] = sighting{at, now}
		return true, renewed
	}
	seen[key] = before
	return now.Sub(before.since) <= time.Duration(ptr.Deref(lease.Spec.LeaseDurationSeconds, 0))*time.Second, false
}

// isRival is true for a lease that is held for clusters of this controller. The lease of
// this shard is no rival: the controller waits for its holder.
func (r *rivals) isRival(lease *coordinationv1.Lease) bool {
	holder, theirs := ptr.Deref(lease.Spec.HolderIdentity, ""), scopeOf(lease)
	if holder == "" || holder == r.o.Identity || theirs.kind == "" {
		return false
	}
	if lease.Namespace == r.o.LeaseNamespace && lease.Name == r.o.LeaseName {
		return theirs != r.o.scope()
	}
	return theirs.overlaps(r.o.scope())
}

func (r *rivals) overlap(lease *coordinationv1.Lease) error {
	if lease.Namespace == r.o.LeaseNamespace && lease.Name == r.o.LeaseName {
		return fmt.Errorf("%w: lease %s/%s is held by %s for %s, and this controller is for %s; name another lease with --leader-elect-resource-name",
			ErrScopesOverlap, lease.Namespace, lease.Name, ptr.Deref(lease.Spec.HolderIdentity, ""), scopeOf(lease), r.o.scope())
	}
	return fmt.Errorf("%w: %s looks after %s (lease %s/%s), and this controller would look after %s; stop one of the two, or divide the clusters with --namespace and --cluster-wide",
		ErrScopesOverlap, ptr.Deref(lease.Spec.HolderIdentity, ""), scopeOf(lease), lease.Namespace, lease.Name, r.o.scope())
}

// list returns the leases of controllers in all namespaces. Without the right to list
// those, it returns the leases in the namespace of this controller's lease, and all is false.
func (r *rivals) list(ctx context.Context) (leases []coordinationv1.Lease, all bool, err error) {
	var forbidden error
	for _, namespace := range []string{metav1.NamespaceAll, r.o.LeaseNamespace} {
		list, err := r.kube.CoordinationV1().Leases(namespace).List(ctx, metav1.ListOptions{LabelSelector: labelScope})
		switch {
		case err == nil:
			if forbidden != nil && r.o.Namespace == "" {
				klog.FromContext(ctx).Error(forbidden, "Controllers of single namespaces cannot be noticed; allow this controller to list leases in all namespaces")
			}
			return list.Items, namespace == metav1.NamespaceAll, nil
		case !apierrors.IsForbidden(err):
			return nil, false, fmt.Errorf("list the leases of other controllers: %w", err)
		}
		forbidden = err
	}
	klog.FromContext(ctx).Error(forbidden, "Controllers with an overlapping scope cannot be noticed; allow this controller to list leases")
	return nil, false, nil
}

// guard runs work and ends it if a rival appears.
func (r *rivals) guard(ctx context.Context, work func(context.Context) error) error {
	for {
		err := r.confirmNone(ctx)
		if err == nil {
			break
		}
		if errors.Is(err, ErrScopesOverlap) {
			return err
		}
		if ctx.Err() != nil {
			return nil // the process ends, or has lost the lease, before it has begun
		}
		klog.FromContext(ctx).Error(err, "Nothing is done before the leases of other controllers are known")
		select {
		case <-ctx.Done():
		case <-r.clock.After(r.o.RetryPeriod):
		}
	}
	if len(r.beyond) > 0 && r.o.Namespace != "" && r.o.Namespace == r.o.LeaseNamespace {
		select {
		case <-ctx.Done():
			return nil
		case <-r.clock.After(settle):
		}
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	watched := make(chan struct{})
	go func() {
		defer close(watched)
		for {
			select {
			case <-ctx.Done():
				return
			case <-r.clock.After(rivalCheck):
			}
			if err := r.confirmNone(ctx); errors.Is(err, ErrScopesOverlap) {
				cancel(err)
			}
		}
	}()
	err := work(ctx)
	if cause := context.Cause(ctx); errors.Is(cause, ErrScopesOverlap) {
		err = cause
	}
	cancel(nil)
	<-watched
	return err
}
