// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package harness

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"sync"
	"time"

	"github.com/anishathalye/porcupine"
	clientv3 "go.etcd.io/etcd/client/v3"
)

// Kind is what an operation does.
type Kind string

// Values of Kind.
const (
	Get  Kind = "get"
	Put  Kind = "put"
	Swap Kind = "swap"
)

// Operation is one request of a client, and what is known of its outcome.
type Operation struct {
	Client int
	Kind   Kind
	Key    string
	// Value is what a Put or a Swap writes; no two operations write the same. Old is
	// what the key must hold for a Swap to be carried out, "" for a key that is not there.
	Value, Old string
	// Found is what a Get, or a Swap that was not carried out, found.
	Found   string
	Swapped bool
	// Cluster is the ID of the cluster that responded, 0 if none did.
	Cluster uint64
	// Err says why there is no response. The operation may have been carried out all the same.
	Err error
	// Call and Return are times since the history began.
	Call, Return time.Duration
}

// History is what clients did at the same time, and the responses that they got.
type History struct {
	begun time.Time

	mu         sync.Mutex
	operations []Operation
}

// NewHistory begins a history.
func NewHistory() *History { return &History{begun: time.Now()} }

func (h *History) add(o Operation) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.operations = append(h.operations, o)
}

// Operations returns what was recorded.
func (h *History) Operations() []Operation {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.operations)
}

// Responses counts the requests that got a response. A history without any proves nothing.
func (h *History) Responses() int {
	n := 0
	for _, o := range h.Operations() {
		if o.Err == nil {
			n++
		}
	}
	return n
}

// Acknowledged returns when each write was acknowledged, in no order.
func (h *History) Acknowledged() []time.Time {
	var times []time.Time
	for _, o := range h.Operations() {
		if o.Err == nil && (o.Kind == Put || o.Swapped) {
			times = append(times, h.begun.Add(o.Return))
		}
	}
	return times
}

// record carries out one operation.
func (h *History) record(ctx context.Context, c *clientv3.Client, o Operation) Operation {
	ctx, cancel := context.WithTimeout(ctx, writeTimeout)
	defer cancel()
	o.Call = time.Since(h.begun)
	o.Err = o.carryOut(ctx, c)
	o.Return = time.Since(h.begun)
	h.add(o)
	return o
}

func (o *Operation) carryOut(ctx context.Context, c *clientv3.Client) error {
	switch o.Kind {
	case Put:
		r, err := c.Put(ctx, o.Key, o.Value)
		if err == nil {
			o.Cluster = r.Header.ClusterId
		}
		return err
	case Swap:
		holds := clientv3.Compare(clientv3.Value(o.Key), "=", o.Old)
		if o.Old == "" {
			holds = clientv3.Compare(clientv3.CreateRevision(o.Key), "=", 0)
		}
		r, err := c.Txn(ctx).If(holds).Then(clientv3.OpPut(o.Key, o.Value)).Else(clientv3.OpGet(o.Key)).Commit()
		if err != nil {
			return err
		}
		o.Cluster = r.Header.ClusterId
		if o.Swapped = r.Succeeded; !o.Swapped {
			o.Found = valueOf((*clientv3.GetResponse)(r.Responses[0].GetResponseRange()))
		}
		return nil
	default:
		r, err := c.Get(ctx, o.Key)
		if err == nil {
			o.Cluster, o.Found = r.Header.ClusterId, valueOf(r)
		}
		return err
	}
}

func valueOf(r *clientv3.GetResponse) string {
	if len(r.Kvs) == 0 {
		return ""
	}
	return string(r.Kvs[0].Value)
}

// Of returns the requests to which one cluster responded, with the requests that got no
// response: the cluster may have carried them out.
func (h *History) Of(cluster uint64) *History {
	part := &History{begun: h.begun}
	for _, o := range h.Operations() {
		if o.Err != nil || o.Cluster == cluster {
			part.operations = append(part.operations, o)
		}
	}
	return part
}

// Succeeds returns an error unless there are two clusters, each has responded, and no third
// cluster has. The old one must not have responded to a request that was sent after the first
// response of the young one.
func (h *History) Succeeds(old, young uint64) error {
	if old == young {
		return fmt.Errorf("there is no other cluster than %x", old)
	}
	for _, id := range []uint64{old, young} {
		if !slices.ContainsFunc(h.Operations(), func(o Operation) bool { return o.Err == nil && o.Cluster == id }) {
			return fmt.Errorf("cluster %x has not responded to any request", id)
		}
	}
	operations := h.Operations()
	born := time.Duration(math.MaxInt64)
	for i := range operations {
		if o := &operations[i]; o.Err == nil && o.Cluster == young {
			born = min(born, o.Return)
		}
	}
	for i := range operations {
		switch o := &operations[i]; {
		case o.Err != nil, o.Cluster == young:
		case o.Cluster != old:
			return fmt.Errorf("cluster %x is neither the old nor the new one, and responded: %+v", o.Cluster, *o)
		case o.Call > born:
			return fmt.Errorf("cluster %x responded to a request that was sent after its successor's first response, %v after the beginning: %+v", old, born, *o)
		}
	}
	return nil
}

// certain returns the operations that prove something. A write without a response whose value
// was never found is left out: if it was carried out, another write replaced its value before
// the next read. A write whose value was found was carried out before that response.
func certain(operations []Operation) []Operation {
	found := map[string]time.Duration{} // when a value was first known to be there
	see := func(value string, at time.Duration) {
		if before, known := found[value]; !known || at < before {
			found[value] = at
		}
	}
	for i := range operations {
		o := &operations[i]
		switch {
		case o.Err != nil:
		case o.Kind == Swap && o.Swapped:
			see(o.Old, o.Return)
		case o.Kind != Put:
			see(o.Found, o.Return)
		}
	}
	var list []Operation
	for _, o := range operations {
		if o.Err == nil {
			list = append(list, o)
			continue
		}
		if at, known := found[o.Value]; known && o.Kind != Get {
			// A client's next request comes after a request without a response, whatever the
			// outcome.
			o.Return, o.Swapped = max(at, o.Call), true
			list = append(list, o)
		}
	}
	return list
}

// Check returns an error unless there is one order of the operations in which each was
// carried out between its request and its response, and every response is right.
func (h *History) Check(limit time.Duration) error { return check(h.Operations(), limit) }

func check(operations []Operation, limit time.Duration) error {
	byKey := map[string][]porcupine.Operation{}
	for i, o := range certain(operations) {
		byKey[o.Key] = append(byKey[o.Key], porcupine.Operation{
			// A request without a response may end after the next request of its client began.
			ClientId: i, Input: o, Call: o.Call.Nanoseconds(), Return: o.Return.Nanoseconds(),
		})
	}
	deadline := time.Now().Add(limit)
	for key, list := range byKey {
		switch porcupine.CheckOperationsTimeout(register, list, max(time.Until(deadline), time.Millisecond)) {
		case porcupine.Ok:
		case porcupine.Unknown:
			return fmt.Errorf("key %s: not decided within %v whether its %d operations fit together", key, limit, len(list))
		case porcupine.Illegal:
			return fmt.Errorf("key %s: no order of its %d operations explains the responses; %s", key, len(list), firstMisfit(list))
		}
	}
	return nil
}

// firstMisfit returns the first operation after which no order explains the responses any
// more.
func firstMisfit(list []porcupine.Operation) string {
	slices.SortFunc(list, func(a, b porcupine.Operation) int { return cmp.Compare(a.Return, b.Return) })
	good, bad := 0, len(list)
	for bad-good > 1 {
		middle := (good + bad) / 2
		if porcupine.CheckOperationsTimeout(register, upTo(list, middle), time.Second) == porcupine.Illegal {
			bad = middle
		} else {
			good = middle
		}
	}
	return fmt.Sprintf("it breaks with %+v", list[bad-1].Input)
}

// upTo returns the first n operations by their return, and of the others the writes
// that had begun by then: they may have been carried out.
func upTo(list []porcupine.Operation, n int) []porcupine.Operation {
	part := slices.Clone(list[:n])
	end := list[n-1].Return
	for _, later := range list[n:] {
		if o, ok := later.Input.(Operation); ok && later.Call <= end && (o.Kind == Put || o.Swapped) {
			later.Return = math.MaxInt64
			part = append(part, later)
		}
	}
	return part
}

// register is one key: it holds the value that was written last.
var register = porcupine.Model{
	Init: func() any { return "" },
	Step: func(state, input, _ any) (bool, any) {
		o, ok := input.(Operation)
		if !ok {
			return false, state
		}
		switch {
		case o.Kind == Put:
			return true, o.Value
		case o.Kind == Swap && o.Swapped:
			return state == o.Old, o.Value
		case o.Kind == Swap:
			return state == o.Found && state != o.Old, state
		default:
			return state == o.Found, state
		}
	},
	Equal: func(a, b any) bool { return a == b },
}
