// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package task

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"strings"

	"filippo.io/age"

	"github.com/etcd-operator/etcd-operator/pkg/agent"
	"github.com/etcd-operator/etcd-operator/pkg/etcd"
	"github.com/etcd-operator/etcd-operator/pkg/objectstore"
)

// The entries of secrets.
const (
	recipientsFile = "recipients"
	identitiesFile = "identities"
)

// tlsFiles are the names of certificate, key and CA; the first that are
// complete count.
var tlsFiles = [][3]string{
	{"etcd-client.crt", "etcd-client.key", "etcd-client-ca.crt"},
	{"tls.crt", "tls.key", "ca.crt"},
}

// target returns how to reach the members.
func target(e *agent.Etcd) (etcd.Target, error) {
	var t etcd.Target
	for _, endpoint := range e.Endpoints {
		name := endpoint.Name
		if name == "" {
			name = endpoint.URL
		}
		t.Endpoints = append(t.Endpoints, etcd.Endpoint{Name: name, URL: endpoint.URL, Address: endpoint.Address, MemberID: endpoint.MemberID})
	}
	if e.TLSDir == "" {
		return t, nil
	}
	config, err := clientTLS(e.TLSDir)
	t.TLS = config
	return t, err
}

func clientTLS(dir string) (*tls.Config, error) {
	for _, names := range tlsFiles {
		files, err := objectstore.ReadSecret(dir, nil, names[0], names[1], names[2])
		if err != nil {
			return nil, fmt.Errorf("%w of etcd's client certificate: %w", errSecret, err)
		}
		if len(files) < len(names) {
			continue
		}
		certificate, err := tls.X509KeyPair([]byte(files[names[0]]), []byte(files[names[1]]))
		if err != nil {
			return nil, fmt.Errorf("%w of etcd's client certificate: %s and %s: %w", errSecret, names[0], names[1], err)
		}
		roots := x509.NewCertPool()
		if !roots.AppendCertsFromPEM([]byte(files[names[2]])) {
			return nil, fmt.Errorf("%w of etcd's client certificate: %s holds no certificate in PEM form", errSecret, names[2])
		}
		return &tls.Config{MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{certificate}, RootCAs: roots}, nil
	}
	return nil, fmt.Errorf("%w of etcd's client certificate: it must have the entries %s, or %s",
		errSecret, strings.Join(tlsFiles[0][:], ", "), strings.Join(tlsFiles[1][:], ", "))
}

// recipients reads the keys that a backup is encrypted for; none if there is no directory.
func recipients(dir string) ([]age.Recipient, error) {
	if dir == "" {
		return nil, nil
	}
	secret, err := objectstore.ReadSecret(dir, []string{recipientsFile})
	if err != nil {
		return nil, fmt.Errorf("%w of the age recipients: %w", errSecret, err)
	}
	parsed, err := age.ParseRecipients(strings.NewReader(secret[recipientsFile]))
	if err != nil {
		return nil, fmt.Errorf("%w of the age recipients: entry %s must hold one recipient a line, each beginning with age1", errSecret, recipientsFile)
	}
	return parsed, nil
}

// identities reads with what a backup is decrypted; nothing if there is no directory.
func identities(dir string) ([]age.Identity, error) {
	if dir == "" {
		return nil, nil
	}
	secret, err := objectstore.ReadSecret(dir, []string{identitiesFile})
	if err != nil {
		return nil, fmt.Errorf("%w of the age identities: %w", errSecret, err)
	}
	parsed, err := age.ParseIdentities(strings.NewReader(secret[identitiesFile]))
	if err != nil {
		// The cause may quote a line.
		return nil, fmt.Errorf("%w of the age identities: entry %s must hold one identity a line, each beginning with AGE-SECRET-KEY-1", errSecret, identitiesFile)
	}
	return parsed, nil
}
