// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package abs

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/etcd-operator/etcd-operator/pkg/objectstore"
	"github.com/etcd-operator/etcd-operator/pkg/objectstore/storetest"
)

const (
	tenant   = "00000000-0000-0000-0000-000000000001"
	clientID = "00000000-0000-0000-0000-000000000002"
	podToken = "canary-token-of-the-pod"
)

// azure stands in for all hosts of Azure: the issuer of tokens, and the account.
type azure struct {
	server *httptest.Server
	// CA is the host that issues tokens.
	ca string
	// rejects says why it gives no token.
	rejects string
	// exchanged counts the tokens that were given, asked are the hosts and the
	// authorizations that objects were requested with.
	exchanged int
	asked     []string
}

func newAzure(t *testing.T, ca string) *azure {
	t.Helper()
	a := &azure{ca: ca}
	a.server = httptest.NewTLSServer(a)
	t.Cleanup(a.server.Close)
	return a
}

// ServeHTTP implements http.Handler.
func (a *azure) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	base := "https://" + a.ca + "/" + tenant
	w.Header().Set("Content-Type", "application/json")
	switch {
	case strings.HasSuffix(r.URL.Path, "/discovery/instance"):
		_, _ = fmt.Fprintf(w, `{"tenant_discovery_endpoint":"%s/v2.0/.well-known/openid-configuration","metadata":[{"preferred_network":%[2]q,"preferred_cache":%[2]q,"aliases":[%[2]q]}]}`, base, a.ca)
	case strings.HasSuffix(r.URL.Path, "/openid-configuration"):
		_, _ = fmt.Fprintf(w, `{"token_endpoint":"%[1]s/oauth2/v2.0/token","authorization_endpoint":"%[1]s/oauth2/v2.0/authorize","issuer":"%[1]s/v2.0"}`, base)
	case r.Host == a.ca && r.URL.Path == "/"+tenant+"/oauth2/v2.0/token":
		a.exchange(w, r)
	default:
		a.asked = append(a.asked, r.Host+" "+r.Header.Get("Authorization"))
		w.Header().Set("Content-Length", "7")
		w.Header().Set("Last-Modified", "Fri, 02 Jan 2026 03:04:05 GMT")
	}
}

func (a *azure) exchange(w http.ResponseWriter, r *http.Request) {
	err := r.ParseForm()
	if err != nil || r.Form.Get("client_id") != clientID || r.Form.Get("client_assertion") != podToken ||
		!strings.Contains(r.Form.Get("scope"), "https://storage.azure.com/.default") {
		http.Error(w, "unexpected", http.StatusBadRequest)
		return
	}
	if a.rejects != "" {
		w.WriteHeader(http.StatusBadRequest)
		_, _ = fmt.Fprintf(w, `{"error":"invalid_client","error_description":"%s\nTrace ID: x"}`, a.rejects)
		return
	}
	a.exchanged++
	_, _ = fmt.Fprint(w, `{"access_token":"token-of-the-identity","expires_in":3600,"token_type":"Bearer"}`)
}

// transport leads to the server, whatever the host is.
func (a *azure) transport(t *testing.T) *http.Transport {
	t.Helper()
	transport, err := objectstore.NewTransport(objectstore.TransportConfig{Stall: storetest.Stall})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(transport.CloseIdleConnections)
	roots := x509.NewCertPool()
	roots.AddCert(a.server.Certificate())
	transport.Proxy = nil
	transport.TLSClientConfig = &tls.Config{RootCAs: roots, ServerName: "example.com", MinVersion: tls.VersionTLS12}
	transport.DialContext = func(ctx context.Context, network, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, network, a.server.Listener.Addr().String())
	}
	return transport
}

// identified sets what Azure's webhook sets in a pod.
func identified(t *testing.T, ca string) {
	t.Helper()
	token := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(token, []byte(podToken), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, value := range map[string]string{
		tokenFileVariable: token, clientVariable: clientID, "AZURE_TENANT_ID": tenant, "AZURE_AUTHORITY_HOST": ca,
	} {
		t.Setenv(name, value)
	}
}

// TestIdentityOfTheWorkload: without a key, the token that a pod is given for its service
// account is exchanged for one of Azure, where the webhook says, once for all requests.
func TestIdentityOfTheWorkload(t *testing.T) {
	for name, test := range map[string]struct {
		ca, host       string
		secret         map[string]string
		endpoint, want string
	}{
		"no secret":      {"login.microsoftonline.com", "", nil, "https://acc.blob.core.windows.net", "acc.blob.core.windows.net"},
		"another cloud":  {"login.partner.microsoftonline.cn", "https://login.partner.microsoftonline.cn/", nil, "acc.blob.core.chinacloudapi.cn", "acc.blob.core.chinacloudapi.cn"},
		"only a name":    {"login.microsoftonline.com", "", map[string]string{accountFile: "acc"}, "", "acc.blob.core.windows.net"},
		"name and cloud": {"login.microsoftonline.us", "", map[string]string{accountFile: "acc", cloudFile: "AzureUSGovernmentCloud"}, "", "acc.blob.core.usgovcloudapi.net"},
	} {
		t.Run(name, func(t *testing.T) {
			a := newAzure(t, test.ca)
			identified(t, test.host)
			config := Config{Container: "c", Endpoint: test.endpoint, EndpointOfCloud: true, Transport: a.transport(t)}
			if test.secret != nil {
				config.CredentialsDir = storetest.Secret(t, test.secret)
			}
			store, err := New(config)
			if err != nil {
				t.Fatal(err)
			}
			for range 2 {
				if object, err := store.Stat(t.Context(), "k"); err != nil || object.Size != 7 {
					t.Errorf("%+v, %v", object, err)
				}
			}
			want := test.want + " Bearer token-of-the-identity"
			if a.exchanged != 1 || len(a.asked) != 2 || a.asked[0] != want || a.asked[1] != want {
				t.Errorf("%d exchanged, asked %q, want %q", a.exchanged, a.asked, want)
			}
		})
	}
}

// TestNoIdentity: the error quotes Azure in one line, without the token.
func TestNoIdentity(t *testing.T) {
	const why = "AADSTS700213: No matching federated identity record found"
	a := newAzure(t, "login.microsoftonline.com")
	a.rejects = why
	identified(t, "")
	config := Config{Container: "c", Endpoint: "https://acc.blob.core.windows.net", EndpointOfCloud: true, Transport: a.transport(t)}
	store, err := New(config)
	if err != nil {
		t.Fatal(err)
	}
	_, err = store.Stat(t.Context(), "k")
	if !errors.Is(err, objectstore.ErrDenied) || !strings.HasSuffix(err.Error(), ": "+why) || strings.Contains(err.Error(), podToken) || len(a.asked) > 0 {
		t.Errorf("%v; asked %q", err, a.asked)
	}

	t.Setenv(clientVariable, "")
	if _, err := New(config); !errors.Is(err, objectstore.ErrCredentials) {
		t.Errorf("without a client: %v", err)
	}
	if _, err := New(Config{Container: "c"}); !errors.Is(err, objectstore.ErrCredentials) || !strings.Contains(err.Error(), "endpoint") {
		t.Errorf("without an account: %v", err)
	}
}

// TestTokensStayAtAzure: neither an endpoint of the user's choice nor a name of an account that
// is a host gets the token of the workload.
func TestTokensStayAtAzure(t *testing.T) {
	a := newAzure(t, "login.microsoftonline.com")
	identified(t, "")
	for name, config := range map[string]Config{
		"endpoint":                {Endpoint: "https://account.example.com"},
		"endpoint with a name":    {Endpoint: "https://example.com", CredentialsDir: storetest.Secret(t, map[string]string{accountFile: "acc"})},
		"name of another account": {CredentialsDir: storetest.Secret(t, map[string]string{accountFile: "example.com/"})},
	} {
		config.Container, config.Transport = "c", a.transport(t)
		if _, err := New(config); !errors.Is(err, objectstore.ErrCredentials) || !strings.Contains(err.Error(), "abs.") {
			t.Errorf("%s: %v", name, err)
		}
	}
	if a.exchanged > 0 || len(a.asked) > 0 {
		t.Errorf("%d tokens were made, asked %q", a.exchanged, a.asked)
	}
}
