// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
)

// Namespaces of a stage.
const (
	loadNamespace    = "bench-load"
	appliedNamespace = "bench-applied"
	watchedNamespace = "bench-watched"
	madeNamespace    = "bench-made"
)

// manyClients is how many clients are many.
const manyClients = 16

// applied is a manifest without a status.
type applied struct {
	APIVersion        string `json:"apiVersion"`
	Kind              string `json:"kind"`
	metav1.ObjectMeta `json:"metadata"`
	Spec              v1beta2.ClusterSpec `json:"spec"`
}

// stage measures one shape and one number of objects on fresh processes.
type stage struct {
	*environment
	profile  profile
	shape    shape
	objects  int
	servings []*serving
	report   *report
	// until is when the stage ends after the start of the run; zero means no end.
	until time.Duration
	// profiles is the directory for CPU profiles; empty for none.
	profiles string
}

// firstTurn is in the first status of every object, which is the same at both servers.
const firstTurn = 0

func loadedName(i int) string { return fmt.Sprintf("loaded-%06d", i) }

// run runs the whole stage.
func (st *stage) run(ctx context.Context, lines []line) error {
	var err error
	if st.servings, err = st.environment.servings(ctx); err != nil {
		return err
	}
	for _, namespace := range []string{loadNamespace, appliedNamespace, watchedNamespace, madeNamespace} {
		if _, err := st.kubectl(ctx, nil, "create", "namespace", namespace); err != nil {
			return err
		}
	}
	say("warming up, and loading %d objects into each server", st.objects)
	for _, step := range []func(context.Context) error{st.warmUp, st.calibrate, st.load, st.compare, st.measureRest} {
		if err := step(ctx); err != nil {
			return err
		}
	}
	for round := range st.profile.rounds {
		say("round %d of %d, %d lines", round+1, st.profile.rounds, len(lines))
		for i, l := range lines {
			if round > 0 && st.until > 0 && time.Since(st.report.Begun) > st.until {
				say("the time is over: later rounds have fewer lines")
				return st.profileAll(ctx, lines)
			}
			if err := st.runLine(ctx, l, round, i); err != nil {
				return err
			}
		}
	}
	return st.profileAll(ctx, lines)
}

// runLine lets each serving run the line once. The order rotates with each round and
// each line, so that no serving always runs after the same serving.
func (st *stage) runLine(ctx context.Context, l line, round, number int) error {
	for turn := range st.servings {
		s := st.servings[(turn+round+number)%len(st.servings)]
		if err := st.newUser(ctx, s); err != nil {
			return err
		}
		r, err := l.run(ctx, st, s, l)
		if err != nil {
			return fmt.Errorf("%s, %s, %s, %s: %w", l.name, l.format, l.user, s.name, err)
		}
		st.report.add(st, l, s, round, r)
	}
	return nil
}

// stores returns one serving for each server that stores objects: the CRD, and the API server
// directly.
func (st *stage) stores() []*serving {
	return slices.DeleteFunc(slices.Clone(st.servings), func(s *serving) bool { return s.name == servingAggregated })
}

// warmUp makes and removes objects, so that no measurement meets empty caches and cold code.
func (st *stage) warmUp(ctx context.Context) error {
	for _, s := range st.servings {
		if _, err := create(ctx, st, s, line{user: userOrdinary, format: formatJSON, clients: manyClients}); err != nil {
			return fmt.Errorf("warm up %s: %w", s.name, err)
		}
	}
	return nil
}

// calibrate finds how many variables bring an object of the CRD to the goal. The object of the
// CRD is the measure; the objects of both servers have the same content.
func (st *stage) calibrate(ctx context.Context) error {
	if st.shape.goal < smallGoal {
		return nil
	}
	crd := st.servings[0]
	var sizes []int
	const step = 8
	for _, variables := range []int{0, step} {
		st.shape.variables = variables
		size, err := st.sizeOfOne(ctx, crd)
		if err != nil {
			return err
		}
		sizes = append(sizes, size)
	}
	each := max((sizes[1]-sizes[0])/step, 1)
	st.shape.variables = max((st.shape.goal-sizes[0])/each, 0)
	return nil
}

// sizeOfOne returns the size of one object as JSON, with a status.
func (st *stage) sizeOfOne(ctx context.Context, s *serving) (int, error) {
	if err := st.put(ctx, s, madeNamespace, 1); err != nil {
		return 0, err
	}
	content, err := send(ctx, s.clients.admin, call{method: http.MethodGet, url: s.url(madeNamespace, "/"+loadedName(0))})
	return len(content), errors.Join(err, st.empty(ctx, s))
}

// put makes objects with a status.
func (st *stage) put(ctx context.Context, s *serving, namespace string, number int) error {
	if err := st.putSpecs(ctx, s, namespace, number); err != nil {
		return err
	}
	return st.putStatuses(ctx, s, namespace)
}

func (st *stage) putSpecs(ctx context.Context, s *serving, namespace string, number int) error {
	_, err := st.repeat(ctx, manyClients, box{requests: number, limit: loadPatience}, func(ctx context.Context, i int) (int64, error) {
		body, err := s.body(st.shape.newCluster(namespace, loadedName(i)), formatJSON)
		if err != nil {
			return 0, err
		}
		return count(ctx, s.clients.admin, call{method: http.MethodPost, url: s.url(namespace, ""), contentType: accepts[formatJSON], body: body})
	})
	return err
}

func (st *stage) putStatuses(ctx context.Context, s *serving, namespace string) error {
	calls, err := st.statusCalls(ctx, s, line{format: formatJSON}, namespace, firstTurn)
	if err != nil {
		return err
	}
	_, err = st.repeat(ctx, manyClients, box{requests: len(calls), limit: loadPatience}, func(ctx context.Context, i int) (int64, error) {
		return count(ctx, s.clients.admin, calls[i])
	})
	return err
}
