// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package command_test

import (
	"context"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"

	"github.com/etcd-operator/etcd-operator/pkg/plugin/failure"
	"github.com/etcd-operator/etcd-operator/pkg/plugin/plugintest"
)

// TestUI: the address goes to the output, the page is served there, and Ctrl-C ends it.
func TestUI(t *testing.T) {
	server := plugintest.New(t)
	server.PutState(plugintest.Degraded())
	p := newTerminal(t, server, true)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan failure.Code)
	go func() { ended <- p.runIn(ctx, "ui", "main") }()
	p.await("Open this address in a browser of this machine. Ctrl-C ends the page.")
	address := strings.TrimSpace(p.out.String())
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, address+"view.json", http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	body, err := io.ReadAll(response.Body)
	response.Body.Close()
	if err != nil || !strings.Contains(string(body), `"name":"prod/main","verdict":"Degraded"`) {
		t.Errorf("%v: %s", err, body)
	}
	cancel()
	p.expect(<-ended, failure.CodeDone)
	expectRequests(t, server)
}

func TestUIUsage(t *testing.T) {
	taken, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	_, port, err := net.SplitHostPort(taken.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	for line, c := range map[string]struct {
		code failure.Code
		want string
	}{
		"-A main":        {failure.CodeUsage, "omit the name main"},
		"--port 70000":   {failure.CodeUsage, "--port=70000 is no port"},
		"a b":            {failure.CodeUsage, "2 arguments were given"},
		"--port " + port: {failure.CodeFailed, "choose another with --port"},
		"-A":             {failure.CodeForbidden, "the right to list etcdclusters in all namespaces is missing"},
	} {
		t.Run(line, func(t *testing.T) {
			server := plugintest.New(t)
			server.PutState(plugintest.Healthy())
			server.Put("/apis/etcd.database.coreos.com/v1beta2/etcdclusters", plugintest.Forbidden("etcdclusters", ""))
			p := newTerminal(t, server, false)
			p.expect(p.run(append([]string{"ui"}, strings.Fields(line)...)...), c.code, c.want)
		})
	}
}
