// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package clientcert

import (
	"bytes"
	"crypto/sha256"
	"crypto/x509"
	"encoding/hex"
	"net/http"
	"slices"

	"k8s.io/apiserver/pkg/authentication/authenticator"
	"k8s.io/apiserver/pkg/authentication/request/headerrequest"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/utils/clock"
)

// identified is the user that a certificate identifies under a bundle of CAs.
type identified struct {
	response *authenticator.Response
	bundle   []byte
}

type rememberingAuthenticator struct {
	next   authenticator.Request
	bundle func() []byte
	// nameHeaders are the headers in which a front proxy names the user of a request.
	nameHeaders headerrequest.StringSliceProvider
	users       remembered[identified]
}

// NewAuthenticator returns an authenticator that remembers which users next has identified by
// their client certificates. It remembers nothing else: no tokens, no users that a front proxy
// names, no failures. A change of the bundle of CAs takes effect at once.
func NewAuthenticator(
	next authenticator.Request, bundle func() []byte, nameHeaders headerrequest.StringSliceProvider, c clock.PassiveClock,
) authenticator.Request {
	return &rememberingAuthenticator{next: next, bundle: bundle, nameHeaders: nameHeaders, users: newRemembered[identified](c)}
}

// AuthenticateRequest implements authenticator.Request.
func (a *rememberingAuthenticator) AuthenticateRequest(req *http.Request) (*authenticator.Response, bool, error) {
	if req.TLS == nil || len(req.TLS.PeerCertificates) == 0 || a.hasNameHeader(req) {
		return a.next.AuthenticateRequest(req)
	}
	presented := req.TLS.PeerCertificates
	key, bundle := digestOf(presented), a.bundle()
	if known, ok := a.users.get(key); ok && bytes.Equal(known.bundle, bundle) {
		return known.response, true, nil
	}
	response, ok, err := a.next.AuthenticateRequest(req)
	if ok && err == nil && isIdentifiedBy(response.User, presented[0]) {
		a.users.put(key, identified{response: response, bundle: bundle}, presented)
	}
	return response, ok, err
}

func (a *rememberingAuthenticator) hasNameHeader(req *http.Request) bool {
	return slices.ContainsFunc(a.nameHeaders.Value(), func(name string) bool { return req.Header.Get(name) != "" })
}

// isIdentifiedBy is true if the user carries the fingerprint of the certificate, which only the
// authenticator of client certificates sets.
func isIdentifiedBy(info user.Info, certificate *x509.Certificate) bool {
	fingerprint := sha256.Sum256(certificate.Raw)
	return slices.Equal(info.GetExtra()[user.CredentialIDKey], []string{"X509SHA256=" + hex.EncodeToString(fingerprint[:])})
}
