// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package ui_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	testingclock "k8s.io/utils/clock/testing"

	"github.com/etcd-operator/etcd-operator/pkg/plugin/plugintest"
	"github.com/etcd-operator/etcd-operator/pkg/plugin/ui"
)

// page is a server of the page in a test.
type page struct {
	*ui.Server

	t      *testing.T
	api    *plugintest.Server
	source *ui.Source
	clock  *testingclock.FakePassiveClock
	mu     sync.Mutex
	// lists counts the requests for the list of clusters.
	lists int
}

// tableOf returns what the API server sends for kubectl get.
func tableOf(columns string, rows ...string) *metav1.Table {
	table := &metav1.Table{TypeMeta: metav1.TypeMeta{APIVersion: "meta.k8s.io/v1", Kind: "Table"}}
	for name := range strings.SplitSeq(columns, "|") {
		wide := strings.HasPrefix(name, "(")
		priority := int32(0)
		if wide || name == "Message" {
			priority = 1
		}
		table.ColumnDefinitions = append(table.ColumnDefinitions, metav1.TableColumnDefinition{Name: strings.Trim(name, "()"), Priority: priority})
	}
	for _, row := range rows {
		var cells []any
		for cell := range strings.SplitSeq(row, "|") {
			cells = append(cells, cell)
		}
		table.Rows = append(table.Rows, metav1.TableRow{Cells: cells, Object: runtime.RawExtension{Raw: []byte(`{"kind":"PartialObjectMetadata","metadata":{"namespace":"prod"}}`)}})
	}
	return table
}

func newPage(t *testing.T, state *plugintest.State) *page {
	t.Helper()
	p := &page{t: t, api: plugintest.New(t), clock: testingclock.NewFakePassiveClock(plugintest.Now)}
	p.show(state)
	p.api.Put(plugintest.Path("etcdbackups"), tableOf("Name|Cluster|Storage|Phase|(URI)|Message", "nightly|main|S3|Succeeded|s3://x|<none>", "other|else|S3|Failed|s3://y|no bucket"))
	p.api.Put(plugintest.Path("etcdrestores"), tableOf("Name|Cluster|Source|Phase|Message", "main-20260304|main|etcdbackup/nightly|Running|waits for the pod"))
	clients, err := p.api.Clients(nil)
	if err != nil {
		t.Fatal(err)
	}
	p.source = &ui.Source{Clients: clients, Namespace: plugintest.Namespace, Clock: p.clock, Every: 3 * time.Second}
	if err := p.source.Read(t.Context()); err != nil {
		t.Fatal(err)
	}
	p.Server, err = ui.Listen(t.Context(), p.source, 0)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	ended := make(chan error, 1)
	go func() { ended <- p.Serve(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	})
	return p
}

// show changes what the API server returns.
func (p *page) show(state *plugintest.State) {
	p.api.PutState(state)
	list := &metav1.List{}
	raw, err := json.Marshal(state.Cluster)
	if err != nil {
		p.t.Fatal(err)
	}
	list.Items = []runtime.RawExtension{{Raw: raw}}
	p.api.On(http.MethodGet, plugintest.Path("etcdclusters"), func(*http.Request, []byte) any {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.lists++
		return list
	})
}

func (p *page) asked() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.lists
}

// later lets the last look become too old.
func (p *page) later() { p.clock.SetTime(p.clock.Now().Add(3 * time.Second)) }

// get sends a request that change has changed, and returns the response and its body.
func (p *page) get(path string, change func(*http.Request)) response {
	p.t.Helper()
	request, err := http.NewRequestWithContext(p.t.Context(), http.MethodGet, p.URL()+path, http.NoBody)
	if err != nil {
		p.t.Fatal(err)
	}
	if change != nil {
		change(request)
	}
	got, err := http.DefaultClient.Do(request)
	if err != nil {
		p.t.Fatal(err)
	}
	defer got.Body.Close()
	body, err := io.ReadAll(got.Body)
	if err != nil {
		p.t.Fatal(err)
	}
	return response{StatusCode: got.StatusCode, Header: got.Header, body: string(body)}
}

// response is what the page sent.
type response struct {
	StatusCode int
	Header     http.Header
	body       string
}

func (p *page) view() *ui.View {
	p.t.Helper()
	got := p.get("view.json", nil)
	view := &ui.View{}
	if err := json.Unmarshal([]byte(got.body), view); err != nil || got.StatusCode != http.StatusOK {
		p.t.Fatalf("%d: %v: %s", got.StatusCode, err, got.body)
	}
	return view
}

// TestAccess: only GET with the token and the own host is served.
func TestAccess(t *testing.T) {
	p := newPage(t, plugintest.Healthy())
	host := strings.Split(p.URL(), "/")[2]
	_, port, _ := strings.Cut(host, ":")
	if !strings.HasPrefix(p.URL(), "http://127.0.0.1:") || !regexp.MustCompile(`/[A-Z2-7]{26}/$`).MatchString(p.URL()) {
		t.Fatalf("unexpected address %s", p.URL())
	}
	for name, c := range map[string]struct {
		change func(*http.Request)
		code   int
	}{
		"the address":               {nil, http.StatusOK},
		"localhost":                 {func(r *http.Request) { r.Host = "localhost:" + port }, http.StatusOK},
		"a file":                    {func(r *http.Request) { r.URL.Path += "page.js" }, http.StatusOK},
		"the host of another site":  {func(r *http.Request) { r.Host = "evil.example:" + port }, http.StatusMisdirectedRequest},
		"the host without a port":   {func(r *http.Request) { r.Host = "127.0.0.1" }, http.StatusMisdirectedRequest},
		"another host and no token": {func(r *http.Request) { r.Host, r.URL.Path = "evil.example", "/" }, http.StatusMisdirectedRequest},
		"no token":                  {func(r *http.Request) { r.URL.Path = "/" }, http.StatusForbidden},
		"the view without a token":  {func(r *http.Request) { r.URL.Path = "/view.json" }, http.StatusForbidden},
		"a wrong token":             {func(r *http.Request) { r.URL.Path = "/AAAAAAAAAAAAAAAAAAAAAAAAAA/view.json" }, http.StatusForbidden},
		"a part of the token":       {func(r *http.Request) { r.URL.Path = r.URL.Path[:10] + "/" }, http.StatusForbidden},
		"the token without a slash": {func(r *http.Request) { r.URL.Path = strings.TrimSuffix(r.URL.Path, "/") }, http.StatusForbidden},
		"POST":                      {func(r *http.Request) { r.Method = http.MethodPost }, http.StatusMethodNotAllowed},
		"DELETE of the view":        {func(r *http.Request) { r.Method = http.MethodDelete; r.URL.Path += "view.json" }, http.StatusMethodNotAllowed},
		"no such file":              {func(r *http.Request) { r.URL.Path += "page.go" }, http.StatusNotFound},
		"a file of the machine":     {func(r *http.Request) { r.URL.Path += "../../../etc/passwd" }, http.StatusNotFound},
	} {
		t.Run(name, func(t *testing.T) {
			got := p.get("", c.change)
			if got.StatusCode != c.code {
				t.Errorf("%d: %s", got.StatusCode, got.body)
			}
			if c.code != http.StatusOK && strings.Contains(got.body, "main-a7k2") {
				t.Errorf("the response shows a cluster: %s", got.body)
			}
			for header, want := range map[string]string{
				"Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'",
				"X-Content-Type-Options":  "nosniff", "Referrer-Policy": "no-referrer", "Cache-Control": "no-store", "X-Frame-Options": "DENY", "Access-Control-Allow-Origin": "",
			} {
				if value := got.Header.Get(header); value != want {
					t.Errorf("%s is %q, want %q", header, value, want)
				}
			}
		})
	}
}

// TestAssets: the page loads nothing from another host, and writes no HTML from data.
func TestAssets(t *testing.T) {
	files, err := filepath.Glob("assets/*")
	if err != nil || len(files) != 4 {
		t.Fatalf("%v: %v", err, files)
	}
	for _, file := range files {
		content, err := os.ReadFile(filepath.Clean(file))
		if err != nil {
			t.Fatal(err)
		}
		text := strings.ReplaceAll(string(content), `xmlns="http://www.w3.org/2000/svg"`, "")
		for _, forbidden := range []string{"http://", "https://", `"//`, "@import", "innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval(", " style=", "onclick"} {
			if strings.Contains(text, forbidden) {
				t.Errorf("%s has %s", file, forbidden)
			}
		}
	}
}

// TestView: the words are those of kubectl etcd status, and those of kubectl get.
func TestView(t *testing.T) {
	p := newPage(t, plugintest.QuorumLost())
	view := p.view()
	if len(view.Clusters) != 1 || view.Scope != "namespace prod" || view.Problem != "" {
		t.Fatalf("unexpected %+v", view)
	}
	c := view.Clusters[0]
	screen, err := os.ReadFile(filepath.Join("..", "command", "testdata", "status-quorum-lost.txt"))
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range append([]string{c.Name, c.Verdict, c.Message, c.Steps[0].Why, c.Steps[0].Command, c.Members.Rows[1].Fault}, c.Members.Rows[0].Cells[:7]...) {
		if !strings.Contains(string(screen), text) {
			t.Errorf("kubectl etcd status does not say %q", text)
		}
	}
	for _, d := range c.Details {
		if !regexp.MustCompile(`(?m)^  ` + regexp.QuoteMeta(d.Label) + ` +` + regexp.QuoteMeta(d.Text) + `$`).Match(screen) {
			t.Errorf("kubectl etcd status does not say %s %q", d.Label, d.Text)
		}
	}
	if c.Tone != "bad" || len(c.Steps) != 3 || c.Members.Rows[1].Tone != "bad" || len(c.Members.Rows[0].Cells) != len(c.Members.Columns) {
		t.Errorf("unexpected %+v", c)
	}
	if got := view.Backups; !slices.Equal(got.Columns, []string{"NAMESPACE", "NAME", "CLUSTER", "STORAGE", "PHASE", "MESSAGE"}) || len(got.Rows) != 2 ||
		!slices.Equal(got.Rows[1].Cells, []string{"prod", "other", "else", "S3", "Failed", "no bucket"}) {
		t.Errorf("unexpected backups %+v", got)
	}
	p.show(plugintest.Restoring())
	p.later()
	if work := p.view().Clusters[0].Work; len(work) != 2 || !strings.HasPrefix(work[1], "Recovering (Filling) for 4m: the cluster goes on from EtcdRestore main-20260304") {
		t.Errorf("unexpected work %q", work)
	}
}

// TestOneCluster: the page of one cluster shows its backups only.
func TestOneCluster(t *testing.T) {
	p := newPage(t, plugintest.Healthy())
	p.source.Name = "main"
	p.later()
	view := p.view()
	if view.Scope != "prod/main" || len(view.Clusters) != 1 || len(view.Backups.Rows) != 1 || view.Backups.Rows[0].Cells[1] != "nightly" || len(view.Restores.Rows) != 1 {
		t.Errorf("unexpected %+v", view)
	}
}

// TestRights: what the user may not read is named on the page.
func TestRights(t *testing.T) {
	p := newPage(t, plugintest.Healthy())
	p.api.Put(plugintest.Path("etcdbackups"), plugintest.Forbidden("etcdbackups", ""))
	p.api.Put(plugintest.Path("etcdclusters", "main", "health"), plugintest.Forbidden("etcdclusters/health", "main"))
	p.later()
	view := p.view()
	if !strings.Contains(view.Backups.Problem, "the right to list etcdbackups in namespace prod is missing") || !strings.Contains(view.Backups.Problem, "ClusterRole etcd-operator:view gives the right") {
		t.Errorf("unexpected %+v", view.Backups)
	}
	c := view.Clusters[0]
	if c.Verdict != "Healthy (by the status; the members were not probed)" || !strings.Contains(c.Details[len(c.Details)-1].Text, "the right to get etcdclusters/health in namespace prod is missing") {
		t.Errorf("unexpected %+v", c)
	}
	p.api.Put(plugintest.Path("etcdclusters"), plugintest.Forbidden("etcdclusters", ""))
	if err := p.source.Read(t.Context()); !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), "the right to list etcdclusters in namespace prod is missing") {
		t.Errorf("unexpected %v", err)
	}
}

// TestOneLookForAll: browsers share one request to the API; without a browser there is none.
func TestOneLookForAll(t *testing.T) {
	p := newPage(t, plugintest.Healthy())
	p.view()
	if p.asked() != 1 {
		t.Fatalf("the API got %d requests before the look was old", p.asked())
	}
	p.later() // certificates are now valid for less than 61 days
	first := p.get("view.json", nil)
	same := func(r *http.Request) { r.Header.Set("If-None-Match", first.Header.Get("ETag")) }
	if got := p.get("view.json", same); got.StatusCode != http.StatusNotModified || got.body != "" {
		t.Errorf("%d: %s", got.StatusCode, got.body)
	}
	p.later()
	if p.asked() != 2 {
		t.Errorf("the API got %d requests, want 2: no browser asks", p.asked())
	}
	var browsers sync.WaitGroup
	for range 20 {
		browsers.Go(func() {
			if got := p.get("view.json", same); got.StatusCode != http.StatusNotModified {
				t.Errorf("%d", got.StatusCode)
			}
		})
	}
	browsers.Wait()
	// A browser may read the time of the last look just before another look is kept.
	if asked := p.asked(); asked < 3 || asked > 4 {
		t.Errorf("the API got %d requests, want 3: one for 20 browsers", asked)
	}
	p.show(plugintest.Degraded())
	p.later()
	if got := p.get("view.json", same); got.StatusCode != http.StatusOK || !strings.Contains(got.body, `"verdict":"Degraded"`) {
		t.Errorf("%d: %s", got.StatusCode, got.body)
	}
}

// TestOutage: while the API does not respond the page shows the last look, and says so.
func TestOutage(t *testing.T) {
	p := newPage(t, plugintest.Healthy())
	p.api.Put(plugintest.Path("etcdclusters"), apierrors.NewServiceUnavailable("a restart"))
	p.later()
	for range 2 {
		view := p.view()
		if view.Problem != "What you see is old: a restart" || len(view.Clusters) != 1 || view.Clusters[0].Verdict != "Healthy" {
			t.Errorf("unexpected %+v", view)
		}
		p.later()
	}
	p.show(plugintest.Degraded())
	p.later()
	if view := p.view(); view.Problem != "" || view.Clusters[0].Verdict != "Degraded" {
		t.Errorf("unexpected %+v", view)
	}
}
