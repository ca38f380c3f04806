// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package faults

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/etcd-operator/etcd-operator/test/simulation/checks"
	"github.com/etcd-operator/etcd-operator/test/simulation/clients"
	simetcd "github.com/etcd-operator/etcd-operator/test/simulation/etcd"
	"github.com/etcd-operator/etcd-operator/test/simulation/kubernetes"
	"github.com/etcd-operator/etcd-operator/test/simulation/manager"
	"github.com/etcd-operator/etcd-operator/test/simulation/schedules"
	"github.com/etcd-operator/etcd-operator/test/simulation/timeline"
)

// World is the whole of it, with what goes wrong and what people do.
type World struct {
	*manager.World
	Checks *checks.Checks
	// AdmitsAll is true if users may declare what validation rejects.
	AdmitsAll bool
	// operations counts the requested operations.
	operations int
	// savedSecrets are the Secrets that a user has backed up, by name.
	savedSecrets map[string]*corev1.Secret
	// savedCA is the Secret of the CA that a tool has saved.
	savedCA *corev1.Secret
	// unlabelled has the label of the cluster that a person has taken from a PVC.
	unlabelled map[types.UID]string
}

// New makes a world in which nothing is declared yet.
func New(plan *schedules.Schedule, stats *timeline.Stats, tracing bool) *World {
	t := timeline.New(plan.Seed, stats, tracing)
	k := kubernetes.New(t, plan)
	m := manager.New(clients.New(k))
	c := checks.New(m)
	k.Observer, k.Etcd.Observer, m.Observer = c, c, c
	return &World{World: m, Checks: c, unlabelled: map[types.UID]string{}}
}

// Goal returns what is not yet as it must be at the end.
func (w *World) Goal() string { return w.Checks.Goal() }

// Beat is what goes on all the time.
func (w *World) Beat() {
	w.After(simetcd.TickEvery, w.Beat)
	w.Tick()
	w.Served()
	w.Checks.Tick()
}
