// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"errors"
	"testing"

	"github.com/etcd-operator/etcd-operator/pkg/etcd"
	planner "github.com/etcd-operator/etcd-operator/pkg/planner/cluster"
	"github.com/etcd-operator/etcd-operator/pkg/resources"
)

// TestTakenCertificateIsEvidence: a member that takes a certificate which no CA but the present one verifies trusts that CA,
// although its pod was created before it.
func TestTakenCertificateIsEvidence(t *testing.T) {
	for name, test := range map[string]struct {
		pods   int
		err    error
		before func(*certWorld)
		since  bool
		trusts bool
	}{
		"the only member":                      {pods: 1, trusts: true},
		"one that does not respond":            {pods: 1, err: errors.New("no route to host")},
		"one of two":                           {pods: 2},
		"beside one that was started since":    {pods: 2, since: true, trusts: true},
		"the CA before it has signed it, too":  {pods: 1, before: (*certWorld).beginRotation},
		"the certificate of an earlier CA yet": {pods: 1, before: (*certWorld).loseCA},
	} {
		t.Run(name, func(t *testing.T) {
			w, _ := issuedWorld(t)
			if test.before != nil {
				test.before(w)
			}
			s := w.step()
			statuses := map[string]etcd.StatusResult{}
			s.Pods = nil
			for _, pod := range []string{"c-a", "c-b"}[:test.pods] {
				s.Pods = append(s.Pods, planner.Pod{Name: pod, Owned: true, Running: true, Trust: "earlier", PeerCAs: "earlier"})
				statuses[pod] = etcd.StatusResult{Err: test.err}
			}
			s.Pods[test.pods-1].TrustsCA = test.since
			s.observeTaken(statuses)
			if got := s.Pods[0].TrustsCA; got != test.trusts {
				t.Errorf("trusts the present CA: %t, want %t", got, test.trusts)
			}
		})
	}
}

// beginRotation replaces the CA by one that the CA before it has signed.
func (w *certWorld) beginRotation() {
	w.cluster.Annotations = map[string]string{resources.AnnotationRotateCA: "1"}
	w.update()
	w.step()
}

// loseCA replaces the CA by one that no other has signed, while the other certificates are still those of before.
func (w *certWorld) loseCA() {
	w.startPods()
	w.lose("c-ca-tls")
	w.r.secrets.forget(certKey)
	w.step()
	w.step()
}
