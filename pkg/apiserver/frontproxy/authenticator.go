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
)

// frontProxyUser is a user that the front proxy has named. Impersonation replaces the user of a
// request by another one of another type: the kube-apiserver has not authorized that user.
type frontProxyUser struct {
	user.Info
}

type proxyAuthenticator struct {
	proxy authenticator.Request
	next  authenticator.Request
	// names are the allowed common names of a proxy certificate.
	names headerrequest.StringSliceProvider
}

// NewAuthenticator returns an authenticator that marks the users that the front proxy has named,
// and delegates every other request to next. It verifies the certificate of each request with
// the CAs and names that config has at that time, so that a change takes effect at once.
//
// It marks users only while config allows exactly one common name, which is that of the
// kube-apiserver. Without a name, or with several, the same CA may have issued the certificate
// of another proxy, which authenticates users but does not authorize requests.
func NewAuthenticator(config *authenticatorfactory.RequestHeaderConfig, next authenticator.Request) authenticator.Request {
	verified := headerrequest.NewDynamicVerifyOptionsSecure(
		config.CAContentProvider.VerifyOptions,
		config.AllowedClientNames,
		config.UsernameHeaders,
		config.UIDHeaders,
		config.GroupHeaders,
		config.ExtraHeaderPrefixes,
	)
	return &proxyAuthenticator{proxy: group.NewAuthenticatedGroupAdder(verified), next: next, names: config.AllowedClientNames}
}

// AuthenticateRequest implements authenticator.Request. Another certificate than that of the
// front proxy is no error: it may be the certificate of a user.
func (a *proxyAuthenticator) AuthenticateRequest(req *http.Request) (*authenticator.Response, bool, error) {
	if len(a.names.Value()) != 1 {
		return a.next.AuthenticateRequest(req)
	}
	response, ok, err := a.proxy.AuthenticateRequest(req)
	if err != nil || !ok {
		return a.next.AuthenticateRequest(req)
	}
	marked := *response
	marked.User = &frontProxyUser{Info: response.User}
	return &marked, true, nil
}
