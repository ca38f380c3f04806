// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package servingcert

import (
	"bytes"
	"sync"

	"k8s.io/apiserver/pkg/server/dynamiccertificates"
)

// provider gives the present leaf to the TLS listener and notifies it of changes, so that a
// renewal needs no restart.
type provider struct {
	mu          sync.Mutex
	certificate []byte
	key         []byte
	listeners   []dynamiccertificates.Listener
}

var _ dynamiccertificates.CertKeyContentProvider = &provider{}

// Name implements dynamiccertificates.CertKeyContentProvider.
func (p *provider) Name() string { return "serving-cert" }

// CurrentCertKeyContent implements dynamiccertificates.CertKeyContentProvider.
func (p *provider) CurrentCertKeyContent() (certificate, key []byte) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.certificate, p.key
}

// AddListener implements dynamiccertificates.Notifier.
func (p *provider) AddListener(listener dynamiccertificates.Listener) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.listeners = append(p.listeners, listener)
}

// set replaces the leaf and returns whether it changed.
func (p *provider) set(certificate, key []byte) bool {
	p.mu.Lock()
	if bytes.Equal(p.certificate, certificate) && bytes.Equal(p.key, key) {
		p.mu.Unlock()
		return false
	}
	p.certificate, p.key = certificate, key
	listeners := p.listeners
	p.mu.Unlock()
	for _, listener := range listeners {
		listener.Enqueue()
	}
	return true
}

func (p *provider) isEmpty() bool {
	certificate, _ := p.CurrentCertKeyContent()
	return len(certificate) == 0
}
