// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package embeddedetcd

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync/atomic"

	"k8s.io/klog/v2"
)

var errNoCAs = errors.New("it has no certificate in PEM form")

// certFiles are the certificate, its key and the CAs of clients in a directory.
type certFiles struct {
	dir    string
	logger klog.Logger
	// failed is true while the files cannot be used, which is logged once.
	failed *atomic.Bool
}

// config returns the TLS configuration for one connection.
func (f certFiles) config(*tls.ClientHelloInfo) (*tls.Config, error) {
	config, err := f.read()
	if err != nil {
		if !f.failed.Swap(true) {
			f.logger.Error(err, "Backups of the embedded etcd fail until its certificate can be read. "+
				"The controller issues it (--storage-service); Kubernetes then needs about a minute to show it to this pod")
		}
		return nil, err
	}
	f.failed.Store(false)
	return config, nil
}

// read reads the files. A renewal between two reads makes a key that does not fit its certificate;
// the client then connects again.
func (f certFiles) read() (*tls.Config, error) {
	certificate, err := tls.LoadX509KeyPair(filepath.Join(f.dir, "tls.crt"), filepath.Join(f.dir, "tls.key"))
	if err != nil {
		return nil, fmt.Errorf("certificate for backups: %w", err)
	}
	file := filepath.Join(f.dir, "ca.crt")
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("CAs of clients for backups: %w", err)
	}
	cas := x509.NewCertPool()
	if !cas.AppendCertsFromPEM(text) {
		return nil, fmt.Errorf("CAs of clients for backups in %s: %w", file, errNoCAs)
	}
	return &tls.Config{
		MinVersion:   tls.VersionTLS13,
		NextProtos:   []string{"h2"},
		Certificates: []tls.Certificate{certificate},
		ClientAuth:   tls.RequireAndVerifyClientCert,
		ClientCAs:    cas,
		// A resumed session would keep the trust in a CA that was removed.
		SessionTicketsDisabled: true,
	}, nil
}
