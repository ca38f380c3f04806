// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"regexp"

	"golang.org/x/sync/errgroup"
)

var unsafeInName = regexp.MustCompile(`[^A-Za-z0-9]+`)

// profileAll takes a CPU profile of each server for each line. It runs after the measurements,
// because a profile costs CPU time itself.
func (st *stage) profileAll(ctx context.Context, lines []line) error {
	if st.profiles == "" {
		return nil
	}
	if err := os.MkdirAll(st.profiles, 0o750); err != nil {
		return err
	}
	for _, l := range lines {
		for _, s := range st.stores() {
			if err := st.profileLine(ctx, s, l); err != nil {
				return fmt.Errorf("profile of %s, %s: %w", l.name, s.name, err)
			}
		}
	}
	return nil
}

// profileLine runs the line again and again while the server takes a profile of itself.
func (st *stage) profileLine(ctx context.Context, s *serving, l line) error {
	if err := st.newUser(ctx, s); err != nil {
		return err
	}
	const seconds = 2
	var taken []byte
	group, ctx := errgroup.WithContext(ctx)
	done := make(chan struct{})
	group.Go(func() (err error) {
		defer close(done)
		taken, err = send(ctx, s.clients.admin, call{method: http.MethodGet, url: fmt.Sprintf("%s/debug/pprof/profile?seconds=%d", s.base, seconds)})
		return err
	})
	group.Go(func() error {
		for {
			select {
			case <-done:
				return nil
			default:
			}
			if _, err := l.run(ctx, st, s, l); err != nil {
				return err
			}
		}
	})
	if err := group.Wait(); err != nil {
		return err
	}
	name := unsafeInName.ReplaceAllString(fmt.Sprintf("%s %d %s %s %s", st.shape.name, st.objects, l.name, l.format, s.name), "-")
	return os.WriteFile(filepath.Join(st.profiles, name+".pprof"), taken, 0o600)
}
