// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package objectstore

import (
	"net/http"
	"os"
	"os/exec"
	"strings"
	"testing"
)

// proxyTestVariable makes the test print its findings in a process that has proxy variables: the
// library reads them once.
const proxyTestVariable = "ETCD_OPERATOR_PROXY_TEST"

// TestMetadataGoesThroughNoProxy: a proxy would see the credentials that the servers of clouds give
// to workloads in plain text.
func TestMetadataGoesThroughNoProxy(t *testing.T) {
	want := map[string]bool{
		"https://s3.example.com/b": true, "http://s3.example.com/b": true, "http://[2001:db8::1]/b": true,
		"http://169.254.169.254/latest": false, "http://169.254.170.23/v1/credentials": false, "http://[fd00:ec2::254]/latest": false,
		"http://metadata.google.internal/computeMetadata": false, "http://METADATA.google.internal./x": false,
		"http://100.100.100.200/latest": false, "http://[::ffff:169.254.169.254]/latest": false,
		"https://internal.example.com/b": false, // NO_PROXY names it
	}
	if os.Getenv(proxyTestVariable) == "" {
		command := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestMetadataGoesThroughNoProxy$")
		command.Env = append(os.Environ(), proxyTestVariable+"=1", "HTTP_PROXY=http://proxy:1", "HTTPS_PROXY=http://proxy:1", "NO_PROXY=internal.example.com")
		if out, err := command.CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		return
	}
	transport, err := NewTransport(TransportConfig{})
	if err != nil {
		t.Fatal(err)
	}
	for target, through := range want {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, target, strings.NewReader(""))
		if err != nil {
			t.Fatal(err)
		}
		proxy, err := transport.Proxy(request)
		if err != nil || (proxy != nil) != through {
			t.Errorf("%s goes through %v, want a proxy: %t (%v)", target, proxy, through, err)
		}
	}
}
