// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package job

import (
	"slices"
	"strings"

	"github.com/etcd-operator/etcd-operator/pkg/agent"
	"github.com/etcd-operator/etcd-operator/pkg/snapshot/manifest"
)

// Pruner is a Job, or the pod that a Job has left, whose agent deletes backups by a retention. What the agent keeps was
// written into the Job when the Job was created. So an EtcdRestore that was created later is not in it.
type Pruner struct {
	// Job is its name.
	Job string
	// Overdue is the pod that Kubernetes deletes, and whose node has not reported its end in time; empty if there is none. It
	// may delete backups until it is known to have ended. Node is where it is.
	Overdue, Node string
	// Request of the agent, with a section prune. Its store is nil if the request cannot be read.
	Request *agent.Request
}

// Endangers is true if the agent may delete what a URI names: a backup, or a place with backups below it. Restores and
// backups both decide by it: no restore reads what a Job that runs endangers.
func (p *Pruner) Endangers(uri string) bool {
	store := p.Request.Store
	if store == nil {
		return true
	}
	own := strings.TrimRight(store.URI(store.Key), "/")
	below := own
	if p.Request.Prune.Layout == manifest.LayoutDirectory {
		below += "/"
	}
	place := strings.TrimRight(uri, "/") + "/"
	if !strings.HasPrefix(place, below) && !strings.HasPrefix(own+"/", place) {
		return false
	}
	return !p.keeps(uri)
}

func (p *Pruner) keeps(uri string) bool {
	if slices.Contains(p.Request.Prune.Keep, uri) {
		return true
	}
	key, err := p.Request.Store.KeyOf(uri)
	return err == nil && slices.ContainsFunc(manifest.Candidates(key), p.Request.Keeps)
}
