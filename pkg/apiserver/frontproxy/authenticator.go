// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package frontproxy

import (
	"net/http"

	"k8s.io/apiserver/pkg/authentication/authenticator"
	"k8s.io/apiserver/pkg/authentication/authenticatorfactory"
	"k8s.io/apiserver/pkg/authentication/group"
	"k8s.io/apiserver/pkg/authentication/request/headerrequest"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/utils/clock"

	"github.com/etcd-operator/etcd-operator/pkg/apiserver/clientcert"
)

// frontProxyUser is a user that the front proxy has named. Impersonation replaces the user of a
// request by another one of another type: the kube-apiserver has not authorized that user.
type frontProxyUser struct {
	user.Info
}

type proxyAuthenticator struct {
	certificates *clientcert.Verifier
	// headers reads the user from the headers of a request that a verified proxy has sent.
	headers authenticator.Request
	next    authenticator.Request
	// names are the allowed common names of a proxy certificate.
	names headerrequest.StringSliceProvider
}

// NewAuthenticator returns an authenticator that marks the users that the front proxy has named,
// and delegates every other request to next. It checks the certificate of each request against
// the CAs and names that config has at that time, so that a change takes effect at once.
//
// It marks users only while config allows exactly one common name, which is that of the
// kube-apiserver. Without a name, or with several, the same CA may have issued the certificate
// of another proxy, which authenticates users but does not authorize requests.
func NewAuthenticator(config *authenticatorfactory.RequestHeaderConfig, next authenticator.Request, c clock.PassiveClock) authenticator.Request {
	headers := headerrequest.NewDynamic(config.UsernameHeaders, config.UIDHeaders, config.GroupHeaders, config.ExtraHeaderPrefixes)
	return &proxyAuthenticator{
		certificates: clientcert.NewVerifier(config.CAContentProvider.VerifyOptions, c),
		headers:      group.NewAuthenticatedGroupAdder(headers),
		next:         next,
		names:        config.AllowedClientNames,
	}
}

// AuthenticateRequest implements authenticator.Request. Another certificate than that of the
// front proxy is no error: it may be the certificate of a user.
func (a *proxyAuthenticator) AuthenticateRequest(req *http.Request) (*authenticator.Response, bool, error) {
	if !a.isFromProxy(req) {
		return a.next.AuthenticateRequest(req)
	}
	response, ok, err := a.headers.AuthenticateRequest(req)
	if err != nil || !ok {
		return a.next.AuthenticateRequest(req)
	}
	marked := *response
	marked.User = &frontProxyUser{Info: response.User}
	return &marked, true, nil
}

// isFromProxy is true if the client presented the certificate of the front proxy.
func (a *proxyAuthenticator) isFromProxy(req *http.Request) bool {
	names := a.names.Value()
	if len(names) != 1 || req.TLS == nil || len(req.TLS.PeerCertificates) == 0 {
		return false
	}
	presented := req.TLS.PeerCertificates
	return presented[0].Subject.CommonName == names[0] && a.certificates.IsVerified(presented)
}
