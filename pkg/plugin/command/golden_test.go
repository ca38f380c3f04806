// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package command_test

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httputil"
	"net/url"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	testingclock "k8s.io/utils/clock/testing"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/plugin/connect"
	"github.com/etcd-operator/etcd-operator/pkg/plugin/plugintest"
	"github.com/etcd-operator/etcd-operator/pkg/plugin/ui"
	"github.com/etcd-operator/etcd-operator/pkg/registry/etcd/cluster"
	"github.com/etcd-operator/etcd-operator/pkg/registry/etcd/health"
)

// widest is how many columns a line of a screen may have.
const widest = 120

// screens are the commands whose screens are kept: those that read, and the plans of those that
// change something.
var screens = []string{
	"status main", "status", "status -o wide", "status -A", "why main", "conn main", "conn main -o env",
	"check healthy main", "check backed-up main", "check backed-up main --max-age 1h", "check upgraded main", "check api",
	"backup main", "restore main", "restore main --backup nightly", "recover main", "recover main --member main-f9x4",
	"upgrade main 3.6.18", "upgrade main 3.7.0", "upgrade main 3.5.0", "restart main",
	"defrag main", "defrag main main-q3m8", "replace main main-q3m8", "replace main main-none",
	"move-leader main", "move-leader main --to main-q3m8",
	"hibernate main", "wake main", "pause main", "resume main", "cancel main", "rotate-ca main", "rotate-ca main --drop-old",
}

// changes are the first words of the commands that change something.
var changes = map[string]bool{
	"backup": true, "restore": true, "recover": true, "upgrade": true, "restart": true, "defrag": true, "replace": true,
	"move-leader": true, "hibernate": true, "wake": true, "pause": true, "resume": true, "cancel": true, "rotate-ca": true,
}

// TestStates keeps what each command prints in five states of a cluster. The real API server
// stores the cluster and plans the changes. Its status is that of the planner, and the responses of
// /health and /members are those of package health.
func TestStates(t *testing.T) {
	connected := startAPIServer(t)
	clients, err := connected(nil)
	if err != nil {
		t.Fatal(err)
	}
	for name, s := range scenes() {
		t.Run(name, func(t *testing.T) {
			server := serveScene(t, clients, s)
			var all strings.Builder
			for _, line := range screens {
				args := strings.Fields(line)
				if changes[args[0]] {
					args = append(args, "--dry-run")
				}
				p := newTerminal(t, server, true)
				p.Color, p.Unicode, p.InTerminal = false, false, false
				p.Size = func() (int, int) { return 200, 50 }
				code := p.run(args...)
				screen := p.out.String() + p.err.String()
				fmt.Fprintf(&all, "## kubectl etcd %s (exit code %d)\n%s\n", strings.Join(args, " "), code, screen)
				for text := range strings.Lines(screen) {
					if isTable(line, text) {
						continue
					}
					if width := utf8.RuneCountInString(strings.TrimRight(text, "\n")); width > widest {
						t.Errorf("%s: a line has %d columns: %s", line, width, text)
					}
				}
			}
			golden(t, "state-"+name, all.String())
			golden(t, "page-"+name, readPage(t, server))
		})
	}
}

// readPage returns what kubectl etcd ui shows, as text.
func readPage(t *testing.T, server *plugintest.Server) string {
	t.Helper()
	clients, err := server.Clients(nil)
	if err != nil {
		t.Fatal(err)
	}
	source := &ui.Source{Clients: clients, Namespace: plugintest.Namespace, Name: "main", Clock: testingclock.NewFakePassiveClock(plugintest.Now)}
	view, err := source.View(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	fmt.Fprintf(&b, "# %s\n%s\n", view.Scope, view.Problem)
	for i := range view.Clusters {
		c := &view.Clusters[i]
		fmt.Fprintf(&b, "%s: %s (%s)\n%s\n", c.Name, c.Verdict, c.Tone, c.Message)
		for _, d := range c.Details {
			fmt.Fprintf(&b, "%s: %s\n", d.Label, d.Text)
		}
		for _, work := range c.Work {
			fmt.Fprintf(&b, "work: %s\n", work)
		}
		writeTable(&b, "members", &c.Members)
		for _, step := range c.Steps {
			fmt.Fprintf(&b, "step: %s\ncommand: %s\n", step.Why, cmp.Or(step.Command, "none"))
		}
	}
	writeTable(&b, "backups", &view.Backups)
	writeTable(&b, "restores", &view.Restores)
	return b.String()
}

// writeTable writes a table of the page. The API server computes ages with the time of the
// machine, so their place is marked.
func writeTable(b *strings.Builder, title string, table *ui.Table) {
	fmt.Fprintf(b, "%s: %s\n", title, strings.TrimSpace(strings.Join(table.Columns, " | ")+" "+table.Problem))
	for _, row := range table.Rows {
		for i, column := range table.Columns {
			if column == "AGE" || column == "LAST-SUCCESS" {
				row.Cells[i] = "(an age)"
			}
		}
		fmt.Fprintln(b, strings.TrimRight("  "+strings.Join(row.Cells, " | ")+"  "+row.Tone+"  "+row.Fault, " "))
	}
}

// isTable is true for lines that may be wider: those of all columns, and URLs, which are copied.
func isTable(command, line string) bool {
	return strings.HasSuffix(command, "-o wide") || strings.HasPrefix(line, "members  ")
}

// serveScene stores the cluster of a scene in the API server. The server that it returns is in
// front of that one and responds for the members, which do not exist.
func serveScene(t *testing.T, clients *connect.Clients, s *scene) *plugintest.Server {
	t.Helper()
	clusters := clients.Etcd.EtcdV1beta2().EtcdClusters(plugintest.Namespace)
	stored, err := clusters.Create(t.Context(), s.desired(), metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { removeScene(t, clients) })
	if s.target != stored.Spec.Version {
		stored.Spec.Version = s.target
		if stored, err = clusters.Update(t.Context(), stored, metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	storeBackups(t, clients)
	s.reconcile(stored)
	if stored, err = clusters.UpdateStatus(t.Context(), stored, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	server := plugintest.New(t)
	probe := s.probe(stored)
	server.Put(clusterPath+"/health", health.Diagnose(probe))
	server.On(http.MethodPost, clusterPath+"/moveleader", func(_ *http.Request, body []byte) any { return planMove(probe, body) })
	server.Put(clusterPath+"/members", health.DescribeMembers(probe))
	server.Put("/api/v1/namespaces/"+plugintest.Namespace+"/events", &corev1.EventList{Items: s.events})
	server.Put("/api/v1/events", &corev1.EventList{Items: s.events})
	behind, err := url.Parse(clients.Config.Host)
	if err != nil {
		t.Fatal(err)
	}
	transport, err := rest.TransportFor(clients.Config)
	if err != nil {
		t.Fatal(err)
	}
	server.Else(&httputil.ReverseProxy{Transport: transport, Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(behind) }})
	return server
}

// planMove responds to a dry run of /moveleader.
func planMove(probe *health.Probe, body []byte) any {
	move := &v1beta2.EtcdClusterLeaderMove{}
	if err := json.Unmarshal(body, move); err != nil {
		return apierrors.NewBadRequest(err.Error())
	}
	var err error
	if move.Status.From, move.Status.Leader, err = cluster.PlanLeaderMove(health.Diagnose(probe), move.Spec.Target); err != nil {
		return err
	}
	return move
}

// storeBackups stores the EtcdBackups of the cluster.
func storeBackups(t *testing.T, clients *connect.Clients) {
	t.Helper()
	backups := clients.Etcd.EtcdV1beta2().EtcdBackups(plugintest.Namespace)
	for _, name := range []string{"main-scheduled", "nightly"} {
		backup := &v1beta2.EtcdBackup{
			ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: plugintest.Namespace},
			Spec: v1beta2.BackupSpec{
				EtcdCluster: &v1beta2.EtcdClusterRef{Name: "main"}, StorageType: v1beta2.BackupStorageTypeS3,
				BackupSource: v1beta2.BackupSource{S3: &v1beta2.S3BackupSource{Path: "backups/" + name, AWSSecret: "aws"}},
			},
		}
		stored, err := backups.Create(t.Context(), backup, metav1.CreateOptions{})
		if apierrors.IsAlreadyExists(err) {
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		stored.Status = v1beta2.BackupStatus{
			Phase: v1beta2.BackupPhaseSucceeded, Succeeded: true, LastSuccessDate: metav1.NewTime(plugintest.Now.Add(-9 * time.Hour)), EtcdRevision: 81233,
			Verified: true, VerifiedBy: v1beta2.VerificationChecksum, URI: "s3://backups/" + name,
		}
		if _, err := backups.UpdateStatus(t.Context(), stored, metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
}

// removeScene removes the cluster from the API server. No controller removes its finalizer.
func removeScene(t *testing.T, clients *connect.Clients) {
	t.Helper()
	ctx := context.WithoutCancel(t.Context())
	clusters := clients.Etcd.EtcdV1beta2().EtcdClusters(plugintest.Namespace)
	if _, err := clusters.Patch(ctx, "main", types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`), metav1.PatchOptions{}); err != nil {
		t.Error(err)
	}
	if err := clusters.Delete(ctx, "main", metav1.DeleteOptions{}); err != nil {
		t.Error(err)
	}
}
