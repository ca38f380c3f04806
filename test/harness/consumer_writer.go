// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package harness

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
)

const (
	// consumerTimeout outlasts the time after which etcd itself ends a write.
	consumerTimeout = 30 * time.Second
	// consumerGap is the shortest time without an acknowledgement that the report lists.
	consumerGap   = 250 * time.Millisecond
	consumerEntry = "n"
)

// ConsumerWriter writes ConfigMaps through a Consumer at a fixed rate, without waiting for
// the responses to earlier writes. It creates one, and updates it with the next write. No
// write is repeated, not even where Kubernetes asks for that.
type ConsumerWriter struct {
	consumer *Consumer
	stop     context.CancelFunc
	done     chan struct{}

	mu      sync.Mutex
	report  ConsumerReport
	lastOK  time.Time
	stopped time.Time
}

// ConsumerReport is what a ConsumerWriter has seen.
type ConsumerReport struct {
	Sent int
	// Failures are the writes that were not acknowledged.
	Failures []ConsumerFailure
	// Gaps are the times without an acknowledgement, the longest first, above consumerGap.
	Gaps []ConsumerStall
	// LongestGap is the longest time without an acknowledgement.
	LongestGap time.Duration
	// Latencies of the acknowledged writes, sorted.
	Latencies []time.Duration

	// acknowledged holds by the names of ConfigMaps what was acknowledged of them last.
	acknowledged map[string]string
}

// ConsumerFailure is a write that was not acknowledged.
type ConsumerFailure struct {
	Sent, Ended time.Time
	Err         error
}

// ConsumerStall is a time without an acknowledgement.
type ConsumerStall struct {
	From time.Time
	Took time.Duration
}

func (r *ConsumerReport) String() string {
	var b strings.Builder
	p99 := time.Duration(0)
	if n := len(r.Latencies); n > 0 {
		p99 = r.Latencies[min(n-1, n*99/100)]
	}
	fmt.Fprintf(&b, "%d sent, %d failed, longest gap %v, p99 %v", r.Sent, len(r.Failures), r.LongestGap.Round(time.Millisecond), p99.Round(time.Millisecond))
	for _, g := range r.Gaps {
		fmt.Fprintf(&b, "; gap of %v at %s", g.Took.Round(time.Millisecond), g.From.Format("15:04:05.000"))
	}
	for _, f := range r.Failures {
		fmt.Fprintf(&b, "; failed at %s after %v: %v", f.Sent.Format("15:04:05.000"), f.Ended.Sub(f.Sent).Round(time.Millisecond), f.Err)
	}
	return b.String()
}

// Write starts a writer that sends a write each interval. It returns after the first
// acknowledgement: a kube-apiserver that starts makes its namespaces by itself.
func (c *Consumer) Write(ctx context.Context, run string, interval time.Duration) (*ConsumerWriter, error) {
	var last error
	err := wait.PollUntilContextCancel(ctx, PollInterval, true, func(ctx context.Context) (bool, error) {
		last = c.put(ctx, run+"-first", "1")
		if apierrors.IsInvalid(last) {
			return false, last
		}
		return last == nil, nil
	})
	if err != nil {
		return nil, fmt.Errorf("first write through the kube-apiserver: %w", errors.Join(err, last))
	}
	ctx, stop := context.WithCancel(ctx)
	w := &ConsumerWriter{
		consumer: c, stop: stop, done: make(chan struct{}), lastOK: time.Now(),
		report: ConsumerReport{acknowledged: map[string]string{}},
	}
	go func() {
		defer close(w.done)
		w.run(ctx, run, interval)
	}()
	return w, nil
}

// put creates a ConfigMap with the value 1 and updates it with any other.
func (c *Consumer) put(ctx context.Context, name, value string) error {
	ctx, cancel := context.WithTimeout(ctx, consumerTimeout)
	defer cancel()
	object := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: c.Namespace}, Data: map[string]string{consumerEntry: value}}
	client := c.Kube.CoreV1().RESTClient()
	request := client.Post()
	if value != "1" {
		request = client.Put().Name(name)
	}
	return request.MaxRetries(0).Namespace(c.Namespace).Resource("configmaps").Body(object).Do(ctx).Error()
}

func (w *ConsumerWriter) run(ctx context.Context, run string, interval time.Duration) {
	var group sync.WaitGroup
	defer group.Wait()
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	created := ""
	for i := 0; ; i++ {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		name, value := fmt.Sprintf("%s-%07d", run, i), "1"
		if i%2 == 1 {
			if name, value = created, "2"; !w.has(name) {
				continue // it was not acknowledged yet, and may not be there
			}
		}
		created = name
		// Stopping must not cut off writes that are on their way.
		group.Go(func() { w.write(context.WithoutCancel(ctx), name, value) })
	}
}

func (w *ConsumerWriter) has(name string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.report.acknowledged[name] != ""
}

func (w *ConsumerWriter) write(ctx context.Context, name, value string) {
	start := time.Now()
	err := w.consumer.put(ctx, name, value)
	end := time.Now()

	w.mu.Lock()
	defer w.mu.Unlock()
	w.report.Sent++
	if err != nil {
		w.report.Failures = append(w.report.Failures, ConsumerFailure{Sent: start, Ended: end, Err: err})
		return
	}
	w.report.acknowledged[name] = value
	w.report.Latencies = append(w.report.Latencies, end.Sub(start))
	w.acknowledge(end)
}

// acknowledge notes when something was acknowledged, as long as there are writes.
func (w *ConsumerWriter) acknowledge(at time.Time) {
	if !w.stopped.IsZero() && at.After(w.stopped) {
		at = w.stopped
	}
	took := at.Sub(w.lastOK)
	if took > consumerGap {
		w.report.Gaps = append(w.report.Gaps, ConsumerStall{From: w.lastOK, Took: took})
	}
	w.report.LongestGap = max(w.report.LongestGap, took)
	w.lastOK = at
}

// Stop ends the writer and returns what it has seen.
func (w *ConsumerWriter) Stop() *ConsumerReport {
	w.mu.Lock()
	w.stopped = time.Now()
	w.mu.Unlock()
	w.stop()
	<-w.done
	w.acknowledge(w.stopped)
	slices.Sort(w.report.Latencies)
	slices.SortFunc(w.report.Gaps, func(a, b ConsumerStall) int { return int(b.Took - a.Took) })
	return &w.report
}

// Kept returns an error unless each write of the report that was acknowledged is there.
func (c *Consumer) Kept(ctx context.Context, r *ConsumerReport) error {
	found := map[string]string{}
	options := metav1.ListOptions{Limit: 500} // a list with a limit is read from etcd
	for {
		list, err := c.Kube.CoreV1().ConfigMaps(c.Namespace).List(ctx, options)
		if err != nil {
			return fmt.Errorf("list what was written: %w", err)
		}
		for i := range list.Items {
			found[list.Items[i].Name] = list.Items[i].Data[consumerEntry]
		}
		if options.Continue = list.Continue; options.Continue == "" {
			break
		}
	}
	var lost []string
	for name, value := range r.acknowledged {
		if found[name] == "" || found[name] < value {
			lost = append(lost, fmt.Sprintf("%s is %q, not %q", name, found[name], value))
		}
	}
	if len(lost) > 0 {
		slices.Sort(lost)
		return fmt.Errorf("%d of %d acknowledged writes are lost: %s", len(lost), len(r.acknowledged), strings.Join(lost[:min(len(lost), 10)], ", "))
	}
	return nil
}
