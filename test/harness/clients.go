// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package harness

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"slices"
	"sync"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/utils/ptr"
)

const (
	// sharedKeys is how many keys clients fight over.
	sharedKeys   = 5
	sharedPrefix = "shared/"
)

// Clients read and write a few keys at the same time, at the addresses that a service
// leads to, and keep a history of it.
type Clients struct {
	History *History

	slices *View[*discoveryv1.EndpointSlice]
	config *tls.Config
	dial   []grpc.DialOption
	stop   context.CancelFunc
	group  sync.WaitGroup

	mu   sync.Mutex
	errs []error
}

// Clients starts n clients of a service. Each sends a request every interval, unless it waits
// for a response or no member is ready. With a configuration they speak TLS.
func (e *Environment) Clients(ctx context.Context, namespace, service string, n int, interval time.Duration, config *tls.Config) (*Clients, error) {
	view, err := follow(ctx, selected(e.Kube.DiscoveryV1().EndpointSlices(namespace), discoveryv1.LabelServiceName+"="+service, ""), &discoveryv1.EndpointSlice{})
	if err != nil {
		return nil, err
	}
	ctx, stop := context.WithCancel(ctx)
	c := &Clients{History: NewHistory(), slices: view, config: config, dial: e.DialOptions(), stop: stop}
	for i := range n {
		c.group.Go(func() {
			if err := c.run(ctx, i, interval); err != nil {
				c.mu.Lock()
				defer c.mu.Unlock()
				c.errs = append(c.errs, fmt.Errorf("client %d: %w", i, err))
			}
		})
	}
	return c, nil
}

// Stop ends the clients.
func (c *Clients) Stop() error {
	c.stop()
	c.group.Wait()
	c.slices.Close()
	return errors.Join(c.errs...)
}

// addresses are those that the service leads to.
func (c *Clients) addresses() []string {
	scheme := "http://"
	if c.config != nil {
		scheme = "https://"
	}
	var list []string
	for _, s := range c.slices.List() {
		for i := range s.Endpoints {
			if e := &s.Endpoints[i]; ptr.Deref(e.Conditions.Ready, true) {
				for _, address := range e.Addresses {
					list = append(list, scheme+net.JoinHostPort(address, clientPort))
				}
			}
		}
	}
	slices.Sort(list)
	return slices.Compact(list)
}

// run is one client. It remembers what it has seen of each key, for its swaps.
func (c *Clients) run(ctx context.Context, number int, interval time.Duration) (err error) {
	var client *clientv3.Client
	defer func() {
		if client != nil {
			err = errors.Join(err, client.Close())
		}
	}()
	var known []string
	seen := map[string]string{}
	dice := rand.New(rand.NewPCG(uint64(number), 1))
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	for n := 0; ; n++ {
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
		now := c.addresses()
		switch {
		case len(now) == 0:
			continue
		case client == nil:
			if client, err = newClient(c.dial, c.config, now...); err != nil {
				return err
			}
		case !slices.Equal(now, known):
			client.SetEndpoints(now...)
		}
		known = now
		o := Operation{Client: number, Kind: Put, Key: fmt.Sprintf("%s%d", sharedPrefix, dice.IntN(sharedKeys)), Value: fmt.Sprintf("%d-%d", number, n)}
		switch dice.IntN(4) {
		case 0, 1:
			o.Kind, o.Value = Get, ""
		case 2:
			o.Kind, o.Old = Swap, seen[o.Key]
		}
		// Stopping must not cut off what is on its way.
		o = c.History.record(context.WithoutCancel(ctx), client, o)
		if value, certain := o.leaves(); certain {
			seen[o.Key] = value
		}
	}
}

// leaves returns what the key held after an operation, if that is known.
func (o *Operation) leaves() (string, bool) {
	switch {
	case o.Err != nil:
		return "", false
	case o.Kind == Put, o.Swapped:
		return o.Value, true
	default:
		return o.Found, true
	}
}

// String says how many operations there are of each kind and how they ended.
func (h *History) String() string {
	counts := map[Kind]int{}
	withoutResponse, swapped, longest := 0, 0, time.Duration(0)
	operations := h.Operations()
	var returned []time.Duration
	for i := range operations {
		o := &operations[i]
		counts[o.Kind]++
		if o.Err != nil {
			withoutResponse++
			continue
		}
		returned = append(returned, o.Return)
		if o.Swapped {
			swapped++
		}
	}
	slices.Sort(returned)
	for i := 1; i < len(returned); i++ {
		longest = max(longest, returned[i]-returned[i-1])
	}
	return fmt.Sprintf("%d operations: %d gets, %d puts, %d swaps, %d of them carried out; %d requests without a response; longest time without a response %v",
		len(operations), counts[Get], counts[Put], counts[Swap], swapped, withoutResponse, longest.Round(time.Millisecond))
}
