// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package frontproxy

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apiserver/pkg/authentication/authenticator"
	"k8s.io/apiserver/pkg/authentication/request/headerrequest"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/endpoints/filters"
	"k8s.io/utils/clock"

	"github.com/etcd-operator/etcd-operator/pkg/apiserver/clientcert"
)

var alice = map[string]string{"X-Remote-User": "alice", "X-Remote-Group": "developers"}

func TestFrontProxyIsNotAskedAgain(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	proxy := b.proxyCA.client(t, proxyName)
	for _, sent := range []struct{ method, path string }{
		{http.MethodGet, clusters + "/a"},
		{http.MethodGet, clusters + "?watch=true&fieldSelector=spec.version%3D3.6.16&labelSelector=a%3Db"},
		{http.MethodGet, clusters + "?labelSelector=%25%25"},
		{http.MethodPost, clusters},
		{http.MethodPut, clusters + "/a/status"},
		{http.MethodDelete, clusters},
	} {
		b.send(t, proxy, sent.method, sent.path, alice)
		b.expect(t, "alice")
	}
	if groups := b.served.GetGroups(); !cmp.Equal(groups, []string{"developers", user.AllAuthenticated}) {
		t.Errorf("groups %q, want those of the header and that of all authenticated users", groups)
	}
}

func TestOtherPathsAreAsked(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	proxy := b.proxyCA.client(t, proxyName)
	for _, path := range []string{
		"/metrics", "/openapi/v3", "/apis", "/apis/" + apiGroup, "/apis/" + apiGroup + ".example.com/v1/namespaces/ns/secrets",
		"/apis/apps/v1/namespaces/ns/deployments/a", "/api/v1/namespaces/ns/secrets/a",
	} {
		b.send(t, proxy, http.MethodGet, path, alice)
		if len(b.asked.asked) != 1 || b.asked.asked[0].User != "alice" {
			t.Errorf("%s: asked %v, want one question about alice", path, b.asked.asked)
		}
	}
}

func TestForgedHeaders(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	unknownCA := newSigningCA(t)
	get := func(servedAs string) []question { return []question{{servedAs, "get", clusters + "/a", ""}} }
	for _, test := range []struct {
		name        string
		certificate *x509.Certificate
		servedAs    string
	}{
		{"no certificate", nil, user.Anonymous},
		{"a client's own certificate", b.clientCA.client(t, "mallory"), "mallory"},
		{"a client with the name of the proxy", b.clientCA.client(t, proxyName), proxyName},
	} {
		t.Run(test.name, func(t *testing.T) {
			b.send(t, test.certificate, http.MethodGet, clusters+"/a", alice)
			b.expect(t, test.servedAs, get(test.servedAs)...)
		})
	}
	for _, test := range []struct {
		name        string
		certificate *x509.Certificate
	}{
		{"the proxy's CA, another name", b.proxyCA.client(t, "someone-else")},
		{"the proxy's name, another CA", unknownCA.client(t, proxyName)},
		{"the proxy's certificate, expired", b.proxyCA.issue(t, proxyName, -time.Minute, x509.ExtKeyUsageClientAuth)},
		{"the proxy's certificate, not for clients", b.proxyCA.issue(t, proxyName, time.Hour, x509.ExtKeyUsageServerAuth)},
	} {
		t.Run(test.name, func(t *testing.T) {
			if code := b.send(t, test.certificate, http.MethodGet, clusters+"/a", alice); code != http.StatusUnauthorized {
				t.Errorf("status %d, want 401", code)
			}
			b.expect(t, "")
		})
	}
}

// TestOneName: without exactly one name the certificate may be that of another proxy, which
// has authorized nothing. The server trusts the user name, and asks the authorizer.
func TestOneName(t *testing.T) {
	t.Parallel()
	for _, names := range [][]string{{}, {proxyName, "login-proxy"}} {
		b := newBench(t, names...)
		for _, proxy := range []string{proxyName, "login-proxy"} {
			b.send(t, b.proxyCA.client(t, proxy), http.MethodGet, clusters+"/a", alice)
			b.expect(t, "alice", question{"alice", "get", clusters + "/a", ""})
		}
	}
}

func TestProxyWithoutUser(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	if code := b.send(t, b.proxyCA.client(t, proxyName), http.MethodGet, clusters+"/a", nil); code != http.StatusUnauthorized {
		t.Errorf("status %d, want 401", code)
	}
	b.expect(t, "")
}

// TestProxiedAnonymous keeps what the kube-apiserver said: it authorized the
// anonymous user, and no group is added to it.
func TestProxiedAnonymous(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.send(t, b.proxyCA.client(t, proxyName), http.MethodGet, clusters+"/a",
		map[string]string{"X-Remote-User": user.Anonymous, "X-Remote-Group": user.AllUnauthenticated})
	b.expect(t, user.Anonymous)
	if groups := b.served.GetGroups(); !cmp.Equal(groups, []string{user.AllUnauthenticated}) {
		t.Errorf("groups %q", groups)
	}
}

// TestImpersonationBehindTheProxy makes sure that the server asks both questions: may
// alice impersonate bob, and may bob do it. The kube-apiserver judged neither.
func TestImpersonationBehindTheProxy(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.send(t, b.proxyCA.client(t, proxyName), http.MethodGet, clusters+"/a",
		map[string]string{"X-Remote-User": "alice", "Impersonate-User": "bob"})
	b.expect(t, "bob", question{"alice", "impersonate", "", ""}, question{"bob", "get", clusters + "/a", ""})
}

// TestOtherQuestionsWithinARequest are new to the kube-apiserver: a create behind a
// patch, a right that a subresource needs beside, what a policy wants to know.
func TestOtherQuestionsWithinARequest(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	change := map[string]func(*authorizer.AttributesRecord){
		"verb":        func(a *authorizer.AttributesRecord) { a.Verb = "create" },
		"name":        func(a *authorizer.AttributesRecord) { a.Name = "b" },
		"namespace":   func(a *authorizer.AttributesRecord) { a.Namespace = "kube-system" },
		"subresource": func(a *authorizer.AttributesRecord) { a.Subresource = "status" },
		"resource":    func(a *authorizer.AttributesRecord) { a.Resource = "secrets" },
		"group":       func(a *authorizer.AttributesRecord) { a.APIGroup = "" },
		"version":     func(a *authorizer.AttributesRecord) { a.APIVersion = "v1" },
		"path":        func(a *authorizer.AttributesRecord) { a.Path = "/metrics"; a.ResourceRequest = false },
		"user":        func(a *authorizer.AttributesRecord) { a.User = &user.DefaultInfo{Name: "alice"} },
		"forged user": func(a *authorizer.AttributesRecord) { a.User = &frontProxyUser{Info: &user.DefaultInfo{Name: "alice"}} },
	}
	b.inside = func(ctx context.Context) {
		same, err := filters.GetAuthorizerAttributes(ctx)
		if err != nil {
			t.Error(err)
			return
		}
		if _, _, err := b.authorizer.Authorize(ctx, same); err != nil || len(b.asked.asked) != 0 {
			t.Errorf("the authorizer got the same question again: %v %v", b.asked.asked, err)
		}
		for name, by := range change {
			b.asked.asked = nil
			other := *same.(*authorizer.AttributesRecord)
			by(&other)
			if _, _, err := b.authorizer.Authorize(ctx, &other); err != nil || len(b.asked.asked) != 1 {
				t.Errorf("another %s: asked %v, want one question (%v)", name, b.asked.asked, err)
			}
		}
	}
	b.send(t, b.proxyCA.client(t, proxyName), http.MethodPatch, clusters+"/a", alice)
}

// TestSelectorsOfAnotherQuestion: a list that a selector narrows does not allow one
// that nothing narrows.
func TestSelectorsOfAnotherQuestion(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.inside = func(ctx context.Context) {
		same, err := filters.GetAuthorizerAttributes(ctx)
		if err != nil {
			t.Error(err)
			return
		}
		wider := *same.(*authorizer.AttributesRecord)
		wider.FieldSelectorRequirements = nil
		if _, _, err := b.authorizer.Authorize(ctx, &wider); err != nil || len(b.asked.asked) != 1 {
			t.Errorf("asked %v, want one question (%v)", b.asked.asked, err)
		}
	}
	b.send(t, b.proxyCA.client(t, proxyName), http.MethodGet, clusters+"?fieldSelector=spec.version%3D3.6.16", alice)
}

// TestChangedCA checks that a change of the CA takes effect at once.
func TestChangedCA(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	proxy := b.proxyCA.client(t, proxyName)
	for range 2 {
		b.send(t, proxy, http.MethodGet, clusters+"/a", alice)
		b.expect(t, "alice")
	}
	b.proxyBundle.trust(newSigningCA(t))
	if code := b.send(t, proxy, http.MethodGet, clusters+"/a", alice); code != http.StatusUnauthorized {
		t.Errorf("status %d, want 401", code)
	}
	b.expect(t, "")
}

// TestResponseIsNotShared: an authenticator may keep its responses, so the server must
// not change them.
func TestResponseIsNotShared(t *testing.T) {
	t.Parallel()
	shared := &authenticator.Response{User: &user.DefaultInfo{Name: "alice", Groups: []string{user.AllAuthenticated}}}
	ca := newSigningCA(t)
	marking := &proxyAuthenticator{
		names:        headerrequest.StaticStringSlice{proxyName},
		certificates: clientcert.NewVerifier((&changingCA{trusted: ca}).VerifyOptions, clock.RealClock{}),
		headers: authenticator.RequestFunc(func(*http.Request) (*authenticator.Response, bool, error) {
			return shared, true, nil
		}),
	}
	req := httptest.NewRequestWithContext(t.Context(), http.MethodGet, clusters, nil)
	req.TLS = &tls.ConnectionState{PeerCertificates: []*x509.Certificate{ca.client(t, proxyName)}}
	response, ok, err := marking.AuthenticateRequest(req)
	if err != nil || !ok {
		t.Fatal(ok, err)
	}
	if _, marked := response.User.(*frontProxyUser); !marked {
		t.Error("the user is not marked")
	}
	if _, marked := shared.User.(*frontProxyUser); marked {
		t.Error("the shared response was changed")
	}
}
