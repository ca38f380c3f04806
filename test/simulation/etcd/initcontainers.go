// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package etcd

import (
	"errors"

	corev1 "k8s.io/api/core/v1"

	"github.com/etcd-operator/etcd-operator/pkg/agent"
	"github.com/etcd-operator/etcd-operator/pkg/resources"
)

var (
	errOtherData = errors.New("the data directory holds data that this recovery has not made")
	errPublished = errors.New("clients have written to the member whose data directory is empty")
)

// runInitContainers does what the init containers of a recovery member do, once in each sandbox of a pod. They
// run again with a new sandbox, on the data that is there.
func (e *World) runInitContainers(r Container, dir *DataDir, pod *corev1.Pod) error {
	if !resources.Fills(pod) || e.initialized[r.UID()] {
		return nil
	}
	restore, err := initRequest(pod, resources.InitRestore, agent.CommandRestore)
	if err != nil {
		return err
	}
	if !dir.IsEmpty() && dir.filler != restore.ID {
		return errOtherData
	}
	if dir.IsEmpty() && pod.Labels[resources.LabelCluster] != "" {
		return errPublished
	}
	if err := e.fillOnce(r, dir, pod, restore); err != nil {
		return err
	}
	e.initialized[r.UID()] = true
	return nil
}

// fillOnce fills a directory that is empty. It needs the source also if the directory is filled and the first
// init container does not look at it.
func (e *World) fillOnce(r Container, dir *DataDir, pod *corev1.Pod, restore *agent.Request) error {
	salvage, err := initRequest(pod, resources.InitFetch, agent.CommandSalvage)
	fetch, fetchErr := initRequest(pod, resources.InitFetch, agent.CommandFetch)
	if err != nil && fetchErr != nil {
		return errors.Join(err, fetchErr)
	}
	looks := salvage != nil && salvage.FilledDir != "" || fetch != nil && fetch.FilledDir != ""
	if looks && !dir.IsEmpty() {
		return nil
	}
	if err := mayRestore(pod, restore.Restore); err != nil {
		return err
	}
	var source *Snapshot
	if salvage != nil {
		if source, err = e.salvage(pod); err != nil {
			return err
		}
	} else if source = e.fetch(fetch); source == nil {
		return errNoSource
	}
	if dir.IsEmpty() {
		e.fill(r, dir, pod, restore, source)
	}
	return nil
}

// NewSandbox has the init containers of a pod run again.
func (e *World) NewSandbox(uid string) { delete(e.initialized, uid) }
