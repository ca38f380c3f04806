// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package frontproxy

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"math/big"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apiserver/pkg/authentication/authenticatorfactory"
	"k8s.io/apiserver/pkg/authentication/request/anonymous"
	"k8s.io/apiserver/pkg/authentication/request/headerrequest"
	"k8s.io/apiserver/pkg/authentication/request/union"
	x509request "k8s.io/apiserver/pkg/authentication/request/x509"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/endpoints/filters"
	"k8s.io/apiserver/pkg/endpoints/filters/impersonation"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/server/dynamiccertificates"
	"k8s.io/client-go/util/cert"
	"k8s.io/utils/clock"
)

const (
	apiGroup  = "etcd.database.coreos.com"
	clusters  = "/apis/" + apiGroup + "/v1beta2/namespaces/ns/etcdclusters"
	proxyName = "front-proxy-client"
)

// signingCA signs client certificates.
type signingCA struct {
	certificate *x509.Certificate
	key         *ecdsa.PrivateKey
	// pool holds the certificate. As in the server, it stays the same as long as the CA does.
	pool *x509.CertPool
}

func newSigningCA(t *testing.T) *signingCA {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	certificate, err := cert.NewSelfSignedCACert(cert.Config{CommonName: "signingCA"}, key)
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AddCert(certificate)
	return &signingCA{certificate: certificate, key: key, pool: pool}
}

func (a *signingCA) issue(t *testing.T, name string, validFor time.Duration, usages ...x509.ExtKeyUsage) *x509.Certificate {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.CreateCertificate(rand.Reader, &x509.Certificate{
		SerialNumber: big.NewInt(2),
		Subject:      pkix.Name{CommonName: name},
		NotBefore:    time.Now().Add(-time.Hour),
		NotAfter:     time.Now().Add(validFor),
		ExtKeyUsage:  usages,
	}, a.certificate, key.Public(), a.key)
	if err != nil {
		t.Fatal(err)
	}
	certificate, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return certificate
}

func (a *signingCA) client(t *testing.T, name string) *x509.Certificate {
	return a.issue(t, name, time.Hour, x509.ExtKeyUsageClientAuth)
}

// changingCA is a bundle that can be replaced while requests come in.
type changingCA struct {
	dynamiccertificates.CAContentProvider
	mu      sync.Mutex
	trusted *signingCA
}

func (c *changingCA) trust(a *signingCA) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.trusted = a
}

func (c *changingCA) VerifyOptions() (x509.VerifyOptions, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	options := x509request.DefaultVerifyOptions()
	options.Roots = c.trusted.pool
	return options, true
}

// question is a request to the authorizer behind ours.
type question struct {
	User, Verb, Path, Subresource string
}

// recorder allows everything and remembers each request.
type recorder struct {
	mu    sync.Mutex
	asked []question
}

func (r *recorder) Authorize(_ context.Context, a authorizer.Attributes) (authorizer.Decision, string, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.asked = append(r.asked, question{a.GetUser().GetName(), a.GetVerb(), a.GetPath(), a.GetSubresource()})
	return authorizer.DecisionAllow, "", nil
}

func (r *recorder) ConditionsAwareAuthorize(ctx context.Context, a authorizer.Attributes) authorizer.ConditionsAwareDecision {
	return authorizer.ConditionsAwareDecisionFromParts(r.Authorize(ctx, a))
}

func (r *recorder) EvaluateConditions(context.Context, authorizer.ConditionsAwareDecision, authorizer.ConditionsData) (authorizer.Decision, string, error) {
	return authorizer.DecisionDeny, "evaluated by the next authorizer", nil
}

// bench is the part of the server's handler chain that authenticates and authorizes.
type bench struct {
	proxyCA, clientCA *signingCA
	proxyBundle       *changingCA
	asked             *recorder
	authorizer        authorizer.Authorizer
	handler           http.Handler
	served            user.Info
	inside            func(context.Context)
}

// newBench allows the proxies these names; without any that of the kube-apiserver.
func newBench(t *testing.T, names ...string) *bench {
	t.Helper()
	if names == nil {
		names = []string{proxyName}
	}
	b := &bench{proxyCA: newSigningCA(t), clientCA: newSigningCA(t), asked: &recorder{}}
	b.proxyBundle = &changingCA{trusted: b.proxyCA}
	config := &authenticatorfactory.RequestHeaderConfig{
		UsernameHeaders:     headerrequest.StaticStringSlice{"X-Remote-User"},
		UIDHeaders:          headerrequest.StaticStringSlice{"X-Remote-Uid"},
		GroupHeaders:        headerrequest.StaticStringSlice{"X-Remote-Group"},
		ExtraHeaderPrefixes: headerrequest.StaticStringSlice{"X-Remote-Extra-"},
		CAContentProvider:   b.proxyBundle,
		AllowedClientNames:  headerrequest.StaticStringSlice(names),
	}
	clients := &changingCA{trusted: b.clientCA}
	delegated := union.NewFailOnError(
		union.New(
			headerrequest.NewDynamicVerifyOptionsSecure(b.proxyBundle.VerifyOptions, config.AllowedClientNames,
				config.UsernameHeaders, config.UIDHeaders, config.GroupHeaders, config.ExtraHeaderPrefixes),
			x509request.NewDynamic(clients.VerifyOptions, x509request.CommonNameUserConversion),
		),
		anonymous.NewAuthenticator(nil),
	)
	b.authorizer = NewAuthorizer(apiGroup, b.asked)

	codecs := serializer.NewCodecFactory(runtime.NewScheme())
	var handler http.Handler = http.HandlerFunc(func(_ http.ResponseWriter, req *http.Request) {
		b.served, _ = request.UserFrom(req.Context())
		if b.inside != nil {
			b.inside(req.Context())
		}
	})
	handler = filters.WithAuthorization(handler, b.authorizer, codecs)
	handler = impersonation.WithImpersonation(handler, b.authorizer, codecs)
	handler = filters.WithAuthentication(handler, NewAuthenticator(config, delegated, clock.RealClock{}), filters.Unauthorized(codecs), nil, config)
	b.handler = filters.WithRequestInfo(handler, &request.RequestInfoFactory{
		APIPrefixes: sets.NewString("apis", "api"), GrouplessAPIPrefixes: sets.NewString("api"),
	})
	return b
}

// send sends a request that shows the certificate, if any, and returns its status.
func (b *bench) send(t *testing.T, certificate *x509.Certificate, method, path string, headers map[string]string) int {
	t.Helper()
	req := httptest.NewRequestWithContext(t.Context(), method, path, nil)
	req.TLS = &tls.ConnectionState{}
	if certificate != nil {
		req.TLS.PeerCertificates = []*x509.Certificate{certificate}
	}
	for name, value := range headers {
		req.Header.Set(name, value)
	}
	response := httptest.NewRecorder()
	b.served, b.asked.asked = nil, nil
	b.handler.ServeHTTP(response, req)
	return response.Code
}

func (b *bench) expect(t *testing.T, servedAs string, asked ...question) {
	t.Helper()
	switch {
	case b.served == nil && servedAs != "":
		t.Errorf("no user was served, want %q", servedAs)
	case b.served != nil && b.served.GetName() != servedAs:
		t.Errorf("served %q, want %q", b.served.GetName(), servedAs)
	}
	if diff := cmp.Diff(asked, b.asked.asked); diff != "" {
		t.Errorf("questions (-want +got):\n%s", diff)
	}
}
