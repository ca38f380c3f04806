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

// proxied is a user whom the front proxy named. It stays with the request until
// something replaces the user, such as impersonation, and then the proof is gone
// with it: the kube-apiserver has not judged that other user.
type proxied struct {
	user.Info
}

type proxyAuthenticator struct {
	proxy authenticator.Request
	next  authenticator.Request
	// names are the common names that a proxy may have.
	names headerrequest.StringSliceProvider
}

// NewAuthenticator returns an authenticator that marks users who were named by the
// front proxy, and leaves every other request to next. The certificate of each
// request is verified against the authorities and names that config holds at that
// moment, so a change of them counts at once.
//
// Users are marked only while config allows exactly one common name, which is then that of
// the kube-apiserver. Without a name, or with several, another proxy that authenticates users
// and authorizes nothing may hold a certificate of the same authority.
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

// AuthenticateRequest implements authenticator.Request. A certificate that is not
// the front proxy's is no error here: it may be a client's own.
func (a *proxyAuthenticator) AuthenticateRequest(req *http.Request) (*authenticator.Response, bool, error) {
	if len(a.names.Value()) != 1 {
		return a.next.AuthenticateRequest(req)
	}
	response, ok, err := a.proxy.AuthenticateRequest(req)
	if err != nil || !ok {
		return a.next.AuthenticateRequest(req)
	}
	marked := *response
	marked.User = &proxied{Info: response.User}
	return &marked, true, nil
}
