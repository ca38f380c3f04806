// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package command_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/exec"
	"sigs.k8s.io/yaml"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/plugin/connect"
	"github.com/etcd-operator/etcd-operator/pkg/plugin/failure"
	"github.com/etcd-operator/etcd-operator/pkg/plugin/plugintest"
	"github.com/etcd-operator/etcd-operator/pkg/plugin/render"
)

func TestUsage(t *testing.T) {
	for line, want := range map[string]string{
		"bogus":                 `unknown command "bogus"`,
		"check":                 "name one of the commands that kubectl etcd check --help lists",
		"check bogus":           `unknown command "bogus"`,
		"snapshot":              "name one of the commands",
		"status --bogus":        "unknown flag: --bogus; see kubectl etcd status --help",
		"status a b":            "2 arguments were given; type: kubectl etcd status [NAME]",
		"status a -A":           "omit the name a",
		"status -o bogus":       "--output=bogus is not supported; choose json, yaml, wide",
		"why":                   "0 arguments were given",
		"conn main -o wide":     "choose env, json, yaml",
		"upgrade main":          "kubectl etcd upgrade NAME VERSION",
		"restart main --wait=x": "invalid argument",
	} {
		t.Run(line, func(t *testing.T) {
			p := newTerminal(t, plugintest.New(t), false)
			p.expect(p.run(strings.Fields(line)...), failure.CodeUsage, "error: ", want)
		})
	}
}

// TestErrorsOfEveryCommand: each command says that a cluster does not exist, and which right
// is missing.
func TestErrorsOfEveryCommand(t *testing.T) {
	for _, line := range []string{
		"status main", "why main", "check healthy main", "check backed-up main", "check upgraded main", "backup main -y", "restore main -y",
		"recover main -y", "upgrade main 3.6.18 -y", "restart main -y", "defrag main -y", "replace main m -y", "move-leader main -y", "hibernate main -y",
		"wake main -y", "pause main -y", "resume main -y", "cancel main -y", "rotate-ca main -y", "conn main", "ctl main -- version", "shell main", "ui main", "logs main", "snapshot save main " + filepath.Join(t.TempDir(), "none.db"),
	} {
		t.Run(line, func(t *testing.T) {
			server := plugintest.New(t)
			p := newTerminal(t, server, false)
			p.expect(p.run(strings.Fields(line)...), failure.CodeNotFound, "error: ", "not found")

			server.Put(clusterPath, plugintest.Forbidden("etcdclusters", "main"))
			server.Put(clusterPath+"/proxy/snapshot", plugintest.Forbidden("etcdclusters/proxy", "main"))
			p = newTerminal(t, server, false)
			p.expect(p.run(strings.Fields(line)...), failure.CodeForbidden, "error: the right to get etcdclusters", "in namespace prod is missing", "ClusterRole etcd-operator:")
			expectRequests(t, server)
		})
	}
}

// TestForbiddenChanges: each change names the right to its subresource.
func TestForbiddenChanges(t *testing.T) {
	for line, c := range map[string]struct{ method, path, role string }{
		"backup main":           {http.MethodPost, "backup", "etcd-operator:edit"},
		"restore main":          {http.MethodPost, "restore", "etcd-operator:restore"},
		"recover main":          {http.MethodPost, "recover", "etcd-operator:recover"},
		"restart main":          {http.MethodPost, "restart", "etcd-operator:edit"},
		"defrag main":           {http.MethodPost, "defrag", "etcd-operator:edit"},
		"replace main m":        {http.MethodPost, "replace", "etcd-operator:edit"},
		"move-leader main":      {http.MethodPost, "moveleader", "etcd-operator:edit"},
		"hibernate main":        {http.MethodPut, "scale", "etcd-operator:edit"},
		"pause main":            {http.MethodPatch, "", "etcd-operator:edit"},
		"upgrade main 3.6.18":   {http.MethodPatch, "", "etcd-operator:edit"},
		"snapshot save main %s": {http.MethodGet, "proxy/snapshot", "etcd-operator:snapshot"},
	} {
		t.Run(line, func(t *testing.T) {
			server := plugintest.New(t)
			server.PutState(plugintest.Healthy())
			server.On(c.method, strings.TrimSuffix(clusterPath+"/"+c.path, "/"), func(*http.Request, []byte) any { return plugintest.Forbidden("etcdclusters/"+c.path, "main") })
			p := newTerminal(t, server, false)
			line := strings.ReplaceAll(line, "%s", filepath.Join(t.TempDir(), "x.db"))
			p.expect(p.run(append(strings.Fields(line), addYes(line)...)...), failure.CodeForbidden, "is missing", "ClusterRole "+c.role+" gives the right")
		})
	}
}

func addYes(line string) []string {
	if strings.HasPrefix(line, "snapshot") {
		return nil
	}
	return []string{"--yes"}
}

func TestCheck(t *testing.T) {
	unverified := plugintest.Restoring()
	none := plugintest.Healthy()
	none.Cluster.Status.LastBackup = nil
	unconfirmed, future := plugintest.Healthy(), plugintest.Healthy()
	unconfirmed.Cluster.Status.LastBackup.Unconfirmed = true
	differs := plugintest.Healthy()
	differs.Cluster.Status.LastBackup.DataDiffers = true
	build := plugintest.Healthy()
	build.Cluster.Spec.Version = "3.6.16-arm64"
	future.Cluster.Status.LastBackup.Time = metav1.NewTime(future.Cluster.Status.LastBackup.Time.AddDate(1, 0, 0))
	for name, c := range map[string]struct {
		state *plugintest.State
		line  string
		code  failure.Code
		want  string
	}{
		"healthy":                 {plugintest.Healthy(), "healthy main", failure.CodeDone, "prod/main is Healthy: 3 of 3 voters serve"},
		"not healthy":             {plugintest.Degraded(), "healthy main", failure.CodeNotMet, "prod/main is Degraded"},
		"not healthy in time":     {plugintest.Degraded(), "healthy main --timeout=2s", failure.CodeTimedOut, "not done within 2s: prod/main is Degraded"},
		"healthy in time":         {plugintest.Healthy(), "healthy main --timeout=1m", failure.CodeDone, "prod/main is Healthy"},
		"backed up":               {plugintest.Healthy(), "backed-up main", failure.CodeDone, "the last backup of prod/main is main-scheduled, 9h old, verified"},
		"backed up too long ago":  {plugintest.Healthy(), "backed-up main --max-age=1h", failure.CodeNotMet, "which is more than 1h0m0s"},
		"backed up, no quorum":    {unconfirmed, "backed-up main", failure.CodeNotMet, "no quorum confirmed it"},
		"backed up, data differs": {differs, "backed-up main", failure.CodeNotMet, "it may have the wrong data"},
		"backed up in the future": {future, "backed-up main", failure.CodeNotMet, "is in the future, so its age is unknown"},
		"backed up, not verified": {unverified, "backed-up main", failure.CodeNotMet, "was not verified"},
		"not backed up":           {none, "backed-up main", failure.CodeNotMet, "prod/main has no backup. Make one: kubectl etcd backup main -n prod"},
		"upgraded":                {plugintest.Healthy(), "upgraded main", failure.CodeDone, "spec.version is 3.6.16"},
		"upgraded to a build":     {build, "upgraded main", failure.CodeDone, "spec.version is 3.6.16-arm64"},
		"not upgraded":            {plugintest.Upgrading(), "upgraded main", failure.CodeNotMet, "spec.version is 3.6.18, and the lowest version that a member runs is 3.6.16"},
	} {
		t.Run(name, func(t *testing.T) {
			server := plugintest.New(t)
			server.PutState(c.state)
			p := newTerminal(t, server, false)
			p.expect(p.run(append([]string{"check"}, strings.Fields(c.line)...)...), c.code, c.want)
		})
	}
}

func TestCheckAPI(t *testing.T) {
	server := plugintest.New(t)
	p := newTerminal(t, server, false)
	p.expect(p.run("check", "api"), failure.CodeNotMet, "Kubernetes does not serve etcd.database.coreos.com/v1beta2", "kubectl get apiservice v1beta2.etcd.database.coreos.com")
	server.Put("/apis/"+v1beta2.SchemeGroupVersion.String(), &metav1.APIResourceList{})
	p = newTerminal(t, server, false)
	p.expect(p.run("check", "api"), failure.CodeDone, "Kubernetes serves etcd.database.coreos.com/v1beta2")
}

func TestVersion(t *testing.T) {
	server := plugintest.New(t)
	server.Put("/version", map[string]string{"gitVersion": "v1.36.3"})
	server.Put("/apis/"+v1beta2.SchemeGroupVersion.String(), &metav1.APIResourceList{})
	p := newTerminal(t, server, false)
	p.expect(p.run("version"), failure.CodeDone, "plugin      v", "Kubernetes  v1.36.3")
	p = newTerminal(t, server, false)
	p.expect(p.run("version", "-o", "json"), failure.CodeDone, `"served": true`, `"kind": "Versions"`)
	p = newTerminal(t, plugintest.New(t), false)
	p.expect(p.run("version"), failure.CodeDone, "plugin      v", "Kubernetes does not say its version")
}

// TestSnapshotThatNoQuorumConfirmed: a copy that may lack the newest writes is no reason to delete the cluster.
func TestSnapshotThatNoQuorumConfirmed(t *testing.T) {
	data := bytes.Repeat([]byte("0123456789abcdef"), 32*100)
	sum := sha256.Sum256(data)
	snapshot := append(bytes.Clone(data), sum[:]...)
	for member, code := range map[string]failure.Code{"": failure.CodeFailed, "--member=main-f9x4": failure.CodeDone} {
		server := plugintest.New(t)
		server.Put(clusterPath+"/proxy/snapshot", http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Etcd-Member", "main-f9x4")
			w.Header().Set("Etcd-Confirmed", "false")
			w.Header().Set("Content-Length", fmt.Sprint(len(snapshot)))
			_, _ = w.Write(snapshot) // the client may have closed the connection
		}))
		p := newTerminal(t, server, false)
		args := []string{"snapshot", "save", "main", filepath.Join(t.TempDir(), "main.db")}
		if member != "" {
			args = append(args, member)
		}
		want := "Saved"
		if code == failure.CodeFailed {
			want = "no quorum confirmed that the member has every write"
		}
		p.expect(p.run(args...), code, want)
	}
}

func TestSnapshotSave(t *testing.T) {
	data := bytes.Repeat([]byte("0123456789abcdef"), 32*100)
	sum := sha256.Sum256(data)
	snapshot := append(bytes.Clone(data), sum[:]...)
	send := func(body []byte, length int) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Query().Get("member") != "main-f9x4" {
				t.Errorf("unexpected query %s", r.URL.RawQuery)
			}
			w.Header().Set("Etcd-Member", "main-f9x4")
			w.Header().Set("Etcd-Revision", "77")
			w.Header().Set("Content-Length", fmt.Sprint(length))
			_, _ = w.Write(body) // the client may have closed the connection
		}
	}
	for name, c := range map[string]struct {
		response any
		code     failure.Code
		want     string
	}{
		"a whole one":    {send(snapshot, len(snapshot)), failure.CodeDone, "50Ki of member main-f9x4, revision 77, hash checked."},
		"an incomplete":  {send(snapshot[:2000], len(snapshot)), failure.CodeFailed, "the snapshot is incomplete"},
		"a damaged":      {send(append(bytes.Clone(data), make([]byte, 32)...), len(snapshot)), failure.CodeFailed, "the snapshot is damaged"},
		"no member":      {apierrors.NewServiceUnavailable("no member of EtcdCluster main serves a snapshot"), failure.CodeFailed, "no member of EtcdCluster main serves a snapshot"},
		"no such member": {apierrors.NewNotFound(v1beta2.Resource("etcdclusters/proxy"), "main/snapshot?member=x"), failure.CodeNotFound, "not found"},
		"no API": {http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "no backend", http.StatusBadGateway) }),
			failure.CodeFailed, "no backend"},
	} {
		t.Run(name, func(t *testing.T) {
			server := plugintest.New(t)
			server.Put(clusterPath+"/proxy/snapshot", c.response)
			file := filepath.Join(t.TempDir(), "main.db")
			p := newTerminal(t, server, true)
			p.expect(p.run("snapshot", "save", "main", file, "--member", "main-f9x4"), c.code, c.want)
			left, err := os.ReadDir(filepath.Dir(file))
			if err != nil {
				t.Fatal(err)
			}
			if whole := len(left) == 1 && left[0].Name() == "main.db"; whole != (c.code == failure.CodeDone) || len(left) > 1 {
				t.Errorf("the directory has %v", left)
			}
		})
	}
	t.Run("a file that exists", func(t *testing.T) {
		file := filepath.Join(t.TempDir(), "main.db")
		if err := os.WriteFile(file, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		p := newTerminal(t, plugintest.New(t), false)
		p.expect(p.run("snapshot", "save", "main", file), failure.CodeFailed, "the file exists: "+file)
	})
}

func TestConn(t *testing.T) {
	plain, static := plugintest.Healthy(), plugintest.Healthy()
	plain.Cluster.Spec.TLS = nil
	plain.Cluster.Spec.Pod = &v1beta2.PodPolicy{ClusterDomain: "cluster.local"}
	static.Cluster.Spec.TLS = &v1beta2.TLSPolicy{Static: &v1beta2.StaticTLS{Member: &v1beta2.MemberSecret{ServerSecret: "mine"}}}
	for name, state := range map[string]*plugintest.State{"plain": plain, "static": static, "auto": plugintest.Healthy()} {
		t.Run(name, func(t *testing.T) {
			server := plugintest.New(t)
			server.PutState(state)
			p := newTerminal(t, server, false)
			p.expect(p.run("conn", "main"), failure.CodeDone)
			golden(t, "conn-"+name, p.out.String())
		})
	}
	server := plugintest.New(t)
	server.PutState(plugintest.Healthy())
	p := newTerminal(t, server, false)
	p.expect(p.run("conn", "main", "-o", "env"), failure.CodeDone, "export ETCDCTL_ENDPOINTS=https://main-client.prod.svc:2379\n", "export ETCDCTL_KEY=/etc/etcd-client/tls.key\n")
	p = newTerminal(t, server, false)
	p.expect(p.run("conn", "main", "-o", "yaml"), failure.CodeDone, "kind: Connection", "secret: main-client-tls")
}

// TestConnOfClient: with --client every format names the Secret of that client.
func TestConnOfClient(t *testing.T) {
	states := map[string]*plugintest.State{"auto": plugintest.Healthy(), "plain": plugintest.Healthy()}
	states["plain"].Cluster.Spec.TLS = nil
	for name, state := range states {
		state.Cluster.Spec.Clients = []v1beta2.ClusterClient{{Name: "shop"}, {Name: "tenants", CommonName: "root", SecretName: "datastore"}}
		server := plugintest.New(t)
		server.PutState(state)
		for _, format := range append([]string{"", "env"}, render.Layouts()...) {
			t.Run(name+"-"+format, func(t *testing.T) {
				args := []string{"conn", "main", "--client=tenants"}
				if format != "" {
					args = append(args, "-o", format)
				}
				p := newTerminal(t, server, false)
				code := p.run(args...)
				if format == "kamaji" && name == "plain" {
					p.expect(code, failure.CodeUsage, "kamaji needs the key of the CA, which main has only with spec.TLS.auto")
					return
				}
				p.expect(code, failure.CodeDone)
				if text := p.out.String(); strings.Contains(text, "main-client-tls") {
					t.Errorf("it names the shared Secret: %s", text)
				}
				golden(t, "conn-client-"+strings.TrimSuffix(name+"-"+format, "-"), p.out.String())
			})
		}
		p := newTerminal(t, server, false)
		p.expect(p.run("conn", "main", "--client=none"), failure.CodeUsage, "no client none in spec.clients; choose shop, tenants")
		p = newTerminal(t, server, false)
		p.expect(p.run("conn", "main", "--client=shop", "-o", "yaml"), failure.CodeDone, "client: shop", "secret: main-shop-binding")
	}
	server := plugintest.New(t)
	server.PutState(plugintest.Healthy())
	p := newTerminal(t, server, false)
	p.expect(p.run("conn", "main", "--client=shop"), failure.CodeUsage, "EtcdCluster main has no spec.clients; add {name: shop} to it")
}

// TestLayoutsAreManifests: what is printed for other programs is YAML, with or without a client
// of its own.
func TestLayoutsAreManifests(t *testing.T) {
	server := plugintest.New(t)
	server.PutState(plugintest.Healthy())
	for _, format := range render.Layouts() {
		p := newTerminal(t, server, false)
		p.expect(p.run("conn", "main", "-o", format), failure.CodeDone, "main-client-tls")
		var parsed map[string]any
		if err := yaml.UnmarshalStrict([]byte(p.out.String()), &parsed); err != nil || len(parsed) == 0 {
			t.Errorf("%s is no YAML: %v\n%s", format, err, p.out.String())
		}
	}
	static := plugintest.Healthy()
	static.Cluster.Spec.TLS = &v1beta2.TLSPolicy{Static: &v1beta2.StaticTLS{OperatorSecret: "o", Member: &v1beta2.MemberSecret{ServerSecret: "mine"}}}
	server.PutState(static)
	p := newTerminal(t, server, false)
	p.expect(p.run("conn", "main", "-o", "apisix"), failure.CodeUsage, "no Secret is known")
}

// memberPod is a pod of a member as the controller makes it.
func memberPod(version string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "main-f9x4", Namespace: "prod", Annotations: map[string]string{"etcd.version": version}},
		Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "etcd", Command: []string{
			"/usr/local/bin/etcd", "--trusted-ca-file=/tls/ca.crt", "--cert-file=/tls/tls.crt", "--key-file=/tls/tls.key", "--peer-cert-file=/peer/tls.crt",
		}}}},
	}
}

func TestCtl(t *testing.T) {
	const tls = "--cacert=/tls/ca.crt --cert=/tls/tls.crt --key=/tls/tls.key"
	const all = "--endpoints=https://main-a7k2.main.prod.svc:2379,https://main-f9x4.main.prod.svc:2379,https://main-q3m8.main.prod.svc:2379"
	for name, c := range map[string]struct {
		line, version string
		ends          error
		forbidden     bool
		code          failure.Code
		command, want string
	}{
		"all members":            {line: "ctl main -- endpoint status -w table", command: "etcdctl " + all + " " + tls + " endpoint status -w table"},
		"one member":             {line: "ctl main --member main-f9x4 -- get --prefix x", command: "etcdctl --endpoints=https://main-f9x4.main.prod.svc:2379 " + tls + " get --prefix x"},
		"endpoints of the user":  {line: "ctl main -- --endpoints=x:1 get y", command: "etcdctl " + tls + " --endpoints=x:1 get y"},
		"an old etcd":            {line: "ctl main -- get y", version: "3.3.27", command: "env ETCDCTL_API=3 etcdctl " + all + " " + tls + " get y"},
		"the exit code is kept":  {line: "ctl main -- get y", ends: exec.CodeExitError{Code: 7, Err: errors.New("exit status 7")}, code: 7, want: "etcdctl in pod main-f9x4"},
		"a right is missing":     {line: "ctl main -- get y", ends: apierrors.NewForbidden(corev1.Resource("pods/exec"), "main-f9x4", nil), code: failure.CodeForbidden, want: "ClusterRole edit gives the right"},
		"no such member":         {line: "ctl main --member x -- get y", code: failure.CodeUsage, want: "prod/main has no member x with a pod"},
		"pods may not be read":   {line: "ctl main -- get y", forbidden: true, code: failure.CodeForbidden, want: "the right to get pods in namespace prod is missing"},
		"the input is passed on": {line: "ctl main -i -- put y", command: "etcdctl " + all + " " + tls + " put y", want: "value"},
	} {
		t.Run(name, func(t *testing.T) {
			server := plugintest.New(t)
			server.PutState(plugintest.Healthy())
			version := c.version
			if version == "" {
				version = "3.6.16"
			}
			server.Put("/api/v1/namespaces/prod/pods/main-f9x4", memberPod(version))
			if c.forbidden {
				server.Put("/api/v1/namespaces/prod/pods/main-f9x4", plugintest.Forbidden("pods", "main-f9x4"))
			}
			p := newTerminal(t, server, false)
			p.In = strings.NewReader("value")
			ran := ""
			p.Exec = func(_ context.Context, _ *connect.Clients, pod *corev1.Pod, command []string, in io.Reader, out, _ io.Writer) error {
				ran = strings.Join(command, " ")
				if pod.Name != "main-f9x4" {
					t.Errorf("it runs in %s, which is no follower", pod.Name)
				}
				if in != nil {
					if _, err := io.Copy(out, in); err != nil {
						t.Error(err)
					}
				}
				return c.ends
			}
			p.expect(p.run(strings.Fields(c.line)...), c.code, c.want)
			if c.command != "" && ran != c.command {
				t.Errorf("got  %s\nwant %s", ran, c.command)
			}
		})
	}
}

func TestLogs(t *testing.T) {
	server := plugintest.New(t)
	server.PutState(plugintest.Healthy())
	for _, pod := range []string{"main-a7k2", "main-f9x4", "main-q3m8"} {
		server.Put("/api/v1/namespaces/prod/pods/"+pod+"/log", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if q := r.URL.Query(); q.Get("container") != "etcd" || q.Get("tailLines") != "2" {
				t.Errorf("unexpected query %v", q)
			}
			fmt.Fprintf(w, "one of %s\ntwo\n", pod)
		}))
	}
	p := newTerminal(t, server, false)
	p.expect(p.run("logs", "main", "--tail=2"), failure.CodeDone)
	if want := "[main-a7k2] one of main-a7k2\n[main-a7k2] two\n[main-f9x4] one of main-f9x4\n[main-f9x4] two\n[main-q3m8] one of main-q3m8\n[main-q3m8] two\n"; p.out.String() != want {
		t.Errorf("got %q", p.out.String())
	}
	p = newTerminal(t, server, false)
	p.expect(p.run("logs", "main", "main-f9x4", "--tail=2"), failure.CodeDone)
	if want := "one of main-f9x4\ntwo\n"; p.out.String() != want {
		t.Errorf("got %q", p.out.String())
	}
	p = newTerminal(t, server, false)
	p.expect(p.run("logs", "main", "x"), failure.CodeUsage, "prod/main has no member x with a pod")
	server.Put("/api/v1/namespaces/prod/pods/main-f9x4/log", plugintest.Forbidden("pods/log", "main-f9x4"))
	p = newTerminal(t, server, false)
	p.expect(p.run("logs", "main", "main-f9x4"), failure.CodeForbidden, "the right to get pods/log in namespace prod is missing", "ClusterRole view gives the right")
}

func TestCompletion(t *testing.T) {
	server := plugintest.New(t)
	server.PutState(plugintest.Healthy())
	for line, want := range map[string][]string{
		"status ":                     {"main"},
		"why m":                       {"main"},
		"status x":                    nil,
		"replace main main-":          {"main-a7k2", "main-f9x4", "main-q3m8"},
		"defrag main main-f9x4 main":  {"main-a7k2", "main-q3m8"},
		"restart main main":           nil,
		"move-leader main --to main-": {"main-a7k2", "main-f9x4", "main-q3m8"},
		"check healthy ":              {"main"},
	} {
		t.Run(line, func(t *testing.T) {
			p := newTerminal(t, server, false)
			p.expect(p.run(append([]string{"__complete"}, strings.Split(line, " ")...)...), failure.CodeDone)
			lines := strings.Split(p.out.String(), "\n")
			if got := lines[:max(0, slices.Index(lines, ":4"))]; !slices.Equal(got, want) && len(got)+len(want) > 0 {
				t.Errorf("got %q, want %q", got, want)
			}
		})
	}
}

func TestInterruptedChange(t *testing.T) {
	server := plugintest.New(t)
	ctx, cancel := context.WithCancel(t.Context())
	looks := 0
	server.On(http.MethodGet, clusterPath, func(*http.Request, []byte) any {
		if looks++; looks > 1 {
			cancel()
		}
		return withOperation(running)
	})
	server.On(http.MethodPost, clusterPath+"/restart", func(*http.Request, []byte) any {
		return &v1beta2.EtcdClusterOperation{Status: v1beta2.ClusterOperation{ID: "o7"}}
	})
	p := newTerminal(t, server, false)
	p.Every = time.Hour
	p.expect(p.runIn(ctx, "restart", "main", "-y"), failure.CodeFailed, "error: interrupted; the change continues; follow it: kubectl etcd status main -n prod -w")
}

// commands returns the names of the commands that a help lists.
func commands(t *testing.T, args ...string) []string {
	t.Helper()
	p := newTerminal(t, plugintest.New(t), false)
	p.expect(p.run(append(args, "--help")...), failure.CodeDone)
	var names []string
	for line := range strings.Lines(p.out.String()) {
		if fields := strings.Fields(line); strings.HasPrefix(line, "  ") && !strings.HasPrefix(line, "   ") && len(fields) > 2 && !strings.HasPrefix(fields[0], "-") && fields[0] != "kubectl" {
			names = append(names, fields[0])
		}
	}
	return names
}

// TestDocumentation: the page about the plugin names every command and every exit code.
func TestDocumentation(t *testing.T) {
	page, err := os.ReadFile(filepath.Join("..", "..", "..", "docs", "how-to", "kubectl-plugin.md"))
	if err != nil {
		t.Fatal(err)
	}
	all := commands(t)
	if len(all) < 20 {
		t.Fatalf("the help lists %q only", all)
	}
	for _, name := range all {
		if !strings.Contains(string(page), "kubectl etcd "+name) && name != "help" && name != "version" {
			t.Errorf("the page does not name kubectl etcd %s", name)
		}
	}
	for _, name := range commands(t, "check") {
		if !strings.Contains(string(page), "kubectl etcd check "+name) {
			t.Errorf("the page does not name kubectl etcd check %s", name)
		}
	}
	for code := failure.CodeDone; code <= failure.CodeTimedOut; code++ {
		if !strings.Contains(string(page), fmt.Sprintf("\n| %d | ", code)) {
			t.Errorf("the page does not explain exit code %d", code)
		}
	}
}

func TestHelpOfACommandIsShort(t *testing.T) {
	p := newTerminal(t, plugintest.New(t), false)
	p.expect(p.run("wake", "--help"), failure.CodeDone, "--size int32", "kubectl etcd --help lists the flags that every command has")
	if strings.Contains(p.out.String(), "--certificate-authority") {
		t.Error("the help repeats the flags of kubectl")
	}
}
