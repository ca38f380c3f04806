// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package faults

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/etcd-operator/etcd-operator/test/harness"
)

const (
	// cellTimeout bounds a cell, createTimeout the start of its cluster, settleTimeout the time
	// after the fault, and checkTimeout the reads at the end.
	cellTimeout   = 15 * time.Minute
	createTimeout = 3 * time.Minute
	settleTimeout = 6 * time.Minute
	checkTimeout  = time.Minute
	// undoTimeout bounds the end of a fault, and removeTimeout the removal of the namespace.
	undoTimeout   = 3 * time.Minute
	removeTimeout = 3 * time.Minute
	// afterwards is how long the clients go on when the cluster is healthy.
	afterwards = 3 * time.Second

	filledKeys, filledBytes = 200, 256
)

// Runner runs cells, one at a time.
type Runner struct {
	Env  *harness.Environment
	Seed uint64
	// Hold is how long each fault lasts.
	Hold time.Duration
	// Dumps is the directory for objects, events and logs of the cells that failed.
	Dumps string
	// Logf reports progress.
	Logf func(format string, args ...any)
}

// Run runs one cell. Errors are problems of the result.
func (r *Runner) Run(ctx context.Context, c Cell) Result {
	ctx, cancel := context.WithTimeoutCause(ctx, cellTimeout, fmt.Errorf("the cell took longer than %v", cellTimeout))
	defer cancel()
	result := Result{Cell: c}
	s := &stage{env: r.Env, cell: c, hold: r.Hold, dice: c.Dice(r.Seed), logf: func(format string, args ...any) {
		r.Logf("%s: %s", c, fmt.Sprintf(format, args...))
	}}
	fail := func(err error) {
		if err != nil {
			result.Problems = append(result.Problems, err.Error())
		}
	}
	err := s.makeNamespace(ctx)
	fail(err)
	if err != nil {
		return result
	}
	fail(s.play(ctx, &result))
	if len(result.Problems) > 0 {
		fail(r.dump(ctx, s))
	}
	fail(s.removeNamespace(ctx))
	return result
}

func (s *stage) makeNamespace(ctx context.Context) error {
	made, err := s.env.Kube.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
		GenerateName: "faults-", Labels: map[string]string{"pod-security.kubernetes.io/enforce": "restricted"},
	}}, metav1.CreateOptions{})
	if err != nil {
		return fmt.Errorf("make a namespace: %w", err)
	}
	s.namespace = made.Name
	return nil
}

// removeNamespace deletes the namespace, also when the run was interrupted, and waits until
// nothing of it exists: a cluster that cannot be removed is a failure, too.
func (s *stage) removeNamespace(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), removeTimeout)
	defer cancel()
	_, err := s.env.Kubectl(ctx, harness.Command{Args: []string{"delete", "namespace", s.namespace, "--timeout=" + removeTimeout.String()}})
	if err != nil {
		return fmt.Errorf("remove the namespace: %w", err)
	}
	return nil
}

// dump writes what explains a failure to a file.
func (r *Runner) dump(ctx context.Context, s *stage) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Minute)
	defer cancel()
	file := filepath.Join(r.Dumps, strings.ReplaceAll(s.cell.String(), "/", "-")+".txt")
	s.logf("objects, events and logs are in %s", file)
	_, err := r.Env.Dump(ctx, s.namespace, file)
	return err
}

// play makes the cluster, lets the fault and the operation happen under clients, and fills in
// the result.
func (s *stage) play(ctx context.Context, result *Result) error {
	end, err := s.makeCluster(ctx)
	if err != nil {
		return err
	}
	defer end()
	l, err := startLoad(ctx, s)
	if err != nil {
		return err
	}
	endureErr := s.endure(ctx, result)
	m, err := l.stop()
	if err = errors.Join(endureErr, err); m == nil {
		return err
	}
	if !operations[s.cell.Operation].takesQuorum {
		m.gapLimit = faults[s.cell.Fault].gapLimit
	}
	result.Operations, result.Failed = m.operations, m.failed
	result.LongestGap, _ = m.longestGap()
	result.Problems = append(result.Problems, m.problems()...)
	if endureErr == nil {
		s.logf("checking %d operations", m.operations)
		result.Problems = append(result.Problems, m.check(ctx, s)...)
	}
	return err
}

// makeCluster makes the cluster with some data, and returns what ends the connections to it.
func (s *stage) makeCluster(ctx context.Context) (end func(), err error) {
	ctx, cancel := context.WithTimeoutCause(ctx, createTimeout, fmt.Errorf("not within %v", createTimeout))
	defer cancel()
	// The views live as long as the cell.
	following, stop := context.WithCancel(context.WithoutCancel(ctx))
	if s.members, err = s.env.Members(following, s.namespace, clusterName); err != nil {
		stop()
		return nil, fmt.Errorf("follow the members: %w", err)
	}
	end = func() {
		stop()
		if err := s.members.Close(); err != nil {
			s.logf("close the connections to the members: %v", err)
		}
	}
	defer func() {
		if err != nil {
			end()
		}
	}()
	if operations[s.cell.Operation].secured {
		secret, err := s.env.Secret(following, s.namespace, clusterName+"-client-tls")
		if err != nil {
			return nil, fmt.Errorf("follow the certificate of clients: %w", err)
		}
		identity := &harness.Identity{Secret: secret, Cert: "tls.crt", Key: "tls.key", CA: "ca.crt", Server: clusterName + "-client." + s.namespace + ".svc"}
		s.members.TLS = identity.Config()
	}
	s.logf("making a cluster of %d", s.cell.Size)
	if err := s.kubectl(ctx, manifest(s.cell), "apply", "-f", "-"); err != nil {
		return nil, err
	}
	if err := s.settle(ctx, s.cell.Size); err != nil {
		return nil, err
	}
	s.data, err = s.members.Fill(ctx, filledKeys, filledBytes)
	return end, err
}

// endure begins the fault, makes the request, ends the fault, and waits until the operation is
// done and the cluster is as requested.
func (s *stage) endure(ctx context.Context, result *Result) (err error) {
	f, o := faults[s.cell.Fault], operations[s.cell.Operation]
	if o.prepare != nil {
		if err := o.prepare(ctx, s); err != nil {
			return fmt.Errorf("prepare %s: %w", s.cell.Operation, err)
		}
	}
	if err := s.aim(ctx, f.reach); err != nil {
		return err
	}
	result.Target = s.describeTarget(ctx)
	if s.target == nil {
		s.logf("the fault begins")
	} else {
		s.logf("the fault begins: member %s on node %s, %s", s.target.Name, s.target.Spec.NodeName, result.Target)
	}
	begun := time.Now()
	undo, err := f.begin(ctx, s)
	if err != nil {
		return fmt.Errorf("begin %s: %w", s.cell.Fault, err)
	}
	undone := false
	defer func() {
		if !undone {
			err = errors.Join(err, undoNow(ctx, undo))
		}
	}()
	requested, cancel := s.requestBeside(ctx, o)
	defer cancel()
	select {
	case <-time.After(max(0, s.hold-time.Since(begun))):
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	undone = true
	if err := undoNow(ctx, undo); err != nil {
		return fmt.Errorf("end %s: %w", s.cell.Fault, err)
	}
	s.logf("the fault has ended after %v", time.Since(begun).Round(time.Second))
	if err := s.heal(ctx, o, requested, result); err != nil {
		return err
	}
	select {
	case <-time.After(afterwards):
	case <-ctx.Done():
	}
	return nil
}

// requestBeside makes the request of the operation while the fault lasts. The channel delivers
// its outcome; the cancellation waits for its end.
func (s *stage) requestBeside(ctx context.Context, o operation) (outcome <-chan error, cancel func()) {
	ctx, stop := context.WithCancel(ctx)
	requested, ended := make(chan error, 1), make(chan struct{})
	go func() {
		defer close(ended)
		var err error
		if o.request != nil {
			err = o.request(ctx, s)
		}
		requested <- err
	}()
	return requested, func() {
		stop()
		<-ended
	}
}

// heal waits until the request was accepted, the operation is done and the cluster is as
// requested.
func (s *stage) heal(ctx context.Context, o operation, requested <-chan error, result *Result) error {
	from := time.Now()
	ctx, cancel := context.WithTimeoutCause(ctx, settleTimeout, fmt.Errorf("not within %v after the end of the fault", settleTimeout))
	defer cancel()
	select {
	case err := <-requested:
		if err != nil {
			return err
		}
	case <-ctx.Done():
		return fmt.Errorf("request %s: %w", s.cell.Operation, context.Cause(ctx))
	}
	if o.done != nil {
		if err := o.done(ctx, s); err != nil {
			return err
		}
	}
	if err := s.settle(ctx, s.cell.finalSize()); err != nil {
		return err
	}
	result.Healthy = time.Since(from)
	s.logf("the cluster is healthy %v after the end of the fault", result.Healthy.Round(100*time.Millisecond))
	return nil
}
