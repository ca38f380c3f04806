// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package command_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/rest"
	clientexec "k8s.io/client-go/util/exec"

	"github.com/etcd-operator/etcd-operator/pkg/plugin/command"
	"github.com/etcd-operator/etcd-operator/pkg/plugin/connect"
	"github.com/etcd-operator/etcd-operator/pkg/plugin/failure"
	"github.com/etcd-operator/etcd-operator/pkg/plugin/plugintest"
)

// shellServerEnv makes this program a plugin that uses the server with this URL.
const shellServerEnv = "KUBECTL_ETCD_TEST_SERVER"

func TestMain(m *testing.M) {
	url := os.Getenv(shellServerEnv)
	if url == "" {
		os.Exit(m.Run())
	}
	s := command.System()
	s.Connect = func(*connect.Flags) (*connect.Clients, error) {
		return connect.New(&rest.Config{Host: url, QPS: -1}, plugintest.Namespace)
	}
	s.Exec = fakeEtcdctl
	os.Exit(int(command.Run(context.Background(), os.Args[1:], s)))
}

// fakeEtcdctl prints its arguments behind the flags that the plugin adds. "watch" ends with its
// context, "fail" with exit code 7.
func fakeEtcdctl(ctx context.Context, _ *connect.Clients, _ *corev1.Pod, command []string, _ io.Reader, out, errOut io.Writer) error {
	var words []string
	for _, word := range command[1:] {
		if !strings.HasPrefix(word, "--endpoints=") && !strings.HasPrefix(word, "--ca") && !strings.HasPrefix(word, "--cert") && !strings.HasPrefix(word, "--key=") {
			words = append(words, word)
		}
	}
	fmt.Fprintf(out, "etcdctl %s\n", strings.Join(words, "|"))
	switch words[0] {
	case "watch":
		<-ctx.Done()
		return ctx.Err()
	case "fail":
		fmt.Fprintln(errOut, "Error: etcdctl says why")
		return clientexec.CodeExitError{Code: 7, Err: errors.New("exit status 7")}
	default:
		return nil
	}
}

func shellServer(t *testing.T) *plugintest.Server {
	t.Helper()
	server := plugintest.New(t)
	server.PutState(plugintest.Healthy())
	server.Put("/api/v1/namespaces/prod/pods/main-f9x4", memberPod("3.6.16"))
	return server
}

// TestShellOfInput: without a terminal lines come from the input, and the first error ends the
// session with its exit code.
func TestShellOfInput(t *testing.T) {
	for name, c := range map[string]struct {
		args, input string
		code        failure.Code
		out         string
		want        string
	}{
		"nothing":               {},
		"two commands":          {input: "get a\nget b", out: "etcdctl get|a\netcdctl get|b\n"},
		"empty lines, comments": {input: "\n  # no command\nget a # a key\n", out: "etcdctl get|a\n"},
		"quotes":                {input: `put 'a b' "c \"d" e\ f ''` + "\n", out: "etcdctl put|a b|c \"d|e f|\n"},
		"backslashes":           {input: `put "a\b\\c" \$x\\y '\z' {"a":1,b}` + "\n", out: "etcdctl put|a\\b\\c|$x\\y|\\z|{a:1,b}\n"},
		"no glob, no home":      {input: "get * ~ [a-z]\n", out: "etcdctl get|*|~|[a-z]\n"},
		"with the program":      {input: "etcdctl get a\n", out: "etcdctl get|a\n"},
		"exit":                  {input: "get a\nexit\nget b\n", out: "etcdctl get|a\n"},
		"quit":                  {input: "quit\nget b\n"},
		"an error ends it":      {input: "get a\nfail\nget b\n", code: 7, out: "etcdctl get|a\netcdctl fail\n", want: "error: etcdctl in pod main-f9x4"},
		"a pipe":                {input: "get a | grep b\nget b\n", code: failure.CodeUsage, want: "a line is one command of etcdctl"},
		"a redirection":         {input: "get a > file\n", code: failure.CodeUsage, want: "a line is one command of etcdctl"},
		"two on a line":         {input: "get a; get b\n", code: failure.CodeUsage, want: "a line is one command of etcdctl"},
		"in the background":     {input: "get a &\n", code: failure.CodeUsage, want: "a line is one command of etcdctl"},
		"an assignment":         {input: "A=b get a\n", code: failure.CodeUsage, want: "a line is one command of etcdctl"},
		"a variable":            {input: "get $HOME\n", code: failure.CodeUsage, want: "are not replaced"},
		"a variable in quotes":  {input: "get \"$HOME\"\n", code: failure.CodeUsage, want: "are not replaced"},
		"a command in quotes":   {input: "get \"`id`\"\n", code: failure.CodeUsage, want: "are not replaced"},
		"a quoted variable":     {input: "get '$HOME'\n", out: "etcdctl get|$HOME\n"},
		"an open quote":         {input: "get 'a\n", code: failure.CodeUsage, want: "cannot be split into words"},
		"danger":                {input: "member remove 8e9e\nget b\n", code: failure.CodeUsage, want: "member remove: the member loses its vote at once"},
		"danger, confirmed":     {args: "--yes", input: "member remove 8e9e\n", out: "etcdctl member|remove|8e9e\n"},
		"no such member":        {args: "--member x", input: "get a\n", code: failure.CodeUsage, want: "prod/main has no member x with a pod"},
	} {
		t.Run(name, func(t *testing.T) {
			p := newTerminal(t, shellServer(t), false)
			p.In, p.Exec = strings.NewReader(c.input), fakeEtcdctl
			p.expect(p.run(append([]string{"shell", "main"}, strings.Fields(c.args)...)...), c.code, c.want)
			if p.out.String() != c.out {
				t.Errorf("got  %q\nwant %q", p.out.String(), c.out)
			}
		})
	}
}

// TestShellRights: a session does not start without the right to read the pod, and ends with
// the first command if programs may not be run in it.
func TestShellRights(t *testing.T) {
	server := shellServer(t)
	p := newTerminal(t, server, false)
	p.In = strings.NewReader("get a\nget b\n")
	ran := 0
	p.Exec = func(context.Context, *connect.Clients, *corev1.Pod, []string, io.Reader, io.Writer, io.Writer) error {
		ran++
		return apierrors.NewForbidden(corev1.Resource("pods/exec"), "main-f9x4", nil)
	}
	p.expect(p.run("shell", "main"), failure.CodeForbidden, "the right to create pods/exec in namespace prod is missing", "ClusterRole edit gives the right")
	if ran != 1 {
		t.Errorf("%d commands were tried", ran)
	}
	server.Put("/api/v1/namespaces/prod/pods/main-f9x4", plugintest.Forbidden("pods", "main-f9x4"))
	p = newTerminal(t, server, false)
	p.expect(p.run("shell", "main"), failure.CodeForbidden, "the right to get pods in namespace prod is missing", "ClusterRole view gives the right")
}

// TestShellFollowsMembers: each command runs in a member that is there now, and a cluster that
// was recreated ends the session.
func TestShellFollowsMembers(t *testing.T) {
	server := shellServer(t)
	p := newTerminal(t, server, false)
	p.In = strings.NewReader("get a\nget b\nget c\n")
	var pods []string
	p.Exec = func(_ context.Context, _ *connect.Clients, pod *corev1.Pod, _ []string, _ io.Reader, _, _ io.Writer) error {
		pods = append(pods, pod.Name)
		state := plugintest.Healthy()
		if len(pods) == 1 {
			state.Cluster.Status.MemberStatuses[1].Pod = ""
			other := memberPod("3.6.16")
			other.Name = "main-q3m8"
			server.Put("/api/v1/namespaces/prod/pods/main-q3m8", other)
		} else {
			state.Cluster.UID = "another"
		}
		server.PutState(state)
		return nil
	}
	p.expect(p.run("shell", "main"), failure.CodeFailed, "EtcdCluster prod/main was recreated (UID changed from 0b6c to another)")
	if got := strings.Join(pods, " "); got != "main-f9x4 main-q3m8" {
		t.Errorf("the commands ran in %s", got)
	}
}

// TestInterruptedInput: the end of the program ends a session that waits for its input.
func TestInterruptedInput(t *testing.T) {
	p := newTerminal(t, shellServer(t), false)
	in, out := io.Pipe()
	defer out.Close()
	p.In = in
	ctx, cancel := context.WithCancel(t.Context())
	p.Exec = func(context.Context, *connect.Clients, *corev1.Pod, []string, io.Reader, io.Writer, io.Writer) error {
		cancel()
		return nil
	}
	go func() { _, _ = io.WriteString(out, "get a\n") }() // the session reads it, or the test fails below
	p.expect(p.runIn(ctx, "shell", "main"), failure.CodeFailed, "error: interrupted")
}

// TestDanger: commands that ask are recognized as etcdctl reads its command line.
func TestDanger(t *testing.T) {
	for line, asks := range map[string]bool{
		"auth enable": true, "au e": true, "auth disable": false, "auth": false, "user add enable": false,
		"member remove 8e9e": true, "mem rem 8e9e": true, "-w json member remove 8e9e": true, "--write-out=json member remove 8e9e": true,
		"--endpoints x member remove 8e9e": true, "member -w json remove 8e9e": true, "member list": false, "member add x": false,
		"compaction 5": true, "compact 5": true, "--physical=true comp 5": true, "--debug compaction 5": true, "check perf": false,
		"put member remove": false, "get auth enable": false, "-- compaction 5": false, "version": false,
	} {
		t.Run(line, func(t *testing.T) {
			p := newTerminal(t, shellServer(t), false)
			p.Exec = fakeEtcdctl
			code, want := failure.CodeDone, ""
			if asks {
				code, want = failure.CodeUsage, "add --yes to run it"
			}
			p.expect(p.run(append([]string{"ctl", "main", "--"}, strings.Fields(line)...)...), code, want)
			for reply, runs := range map[string]bool{"y\n": true, "YES\n": true, "n\n": false, "": false} {
				p := newTerminal(t, shellServer(t), true)
				p.In, p.Exec = strings.NewReader(reply), fakeEtcdctl
				code := failure.CodeDone
				if asks && !runs {
					code = failure.CodeFailed
				}
				p.expect(p.run(append([]string{"ctl", "main", "--"}, strings.Fields(line)...)...), code)
				if asked := strings.Contains(p.err.String(), "Run it? [y/N] "); asked != asks {
					t.Errorf("asked: %v, want %v", asked, asks)
				}
			}
		})
	}
}

// screen is a terminal of tmux.
type screen struct {
	t      *testing.T
	socket string
}

// newScreen runs a command line in a terminal of 90 columns and 45 rows.
func newScreen(t *testing.T, commandLine string, env ...string) *screen {
	t.Helper()
	if _, err := exec.LookPath("tmux"); err != nil {
		t.Skip("tmux is missing; hack/packages.sh installs it")
	}
	s := &screen{t, filepath.Join(t.TempDir(), "tmux")}
	t.Cleanup(func() {
		if out, err := s.command(context.WithoutCancel(t.Context()), "kill-server"); err != nil {
			t.Errorf("end tmux: %v: %s", err, out)
		}
	})
	args := []string{"-f", os.DevNull, "-u", "new-session", "-d", "-x", "90", "-y", "45"}
	for _, e := range env {
		args = append(args, "-e", e)
	}
	s.tmux(append(args, commandLine)...)
	return s
}

func (s *screen) command(ctx context.Context, args ...string) (string, error) {
	out, err := exec.CommandContext(ctx, "tmux", append([]string{"-S", s.socket}, args...)...).CombinedOutput()
	return string(out), err
}

func (s *screen) tmux(args ...string) string {
	s.t.Helper()
	out, err := s.command(s.t.Context(), args...)
	if err != nil {
		s.t.Fatalf("tmux %v: %v: %s", args, err, out)
	}
	return out
}

// shows waits until the screen ends with some lines.
func (s *screen) shows(end ...string) string {
	s.t.Helper()
	deadline := time.After(time.Minute)
	for {
		text := strings.TrimRight(s.tmux("capture-pane", "-p"), "\n")
		if strings.HasSuffix("\n"+text, "\n"+strings.Join(end, "\n")) {
			return text + "\n"
		}
		select {
		case <-deadline:
			s.t.Fatalf("the screen does not end with %q:\n%s", end, text)
		case <-time.After(10 * time.Millisecond):
		}
	}
}

// keys types keys, as tmux names them.
func (s *screen) keys(keys ...string) {
	s.t.Helper()
	s.tmux(append([]string{"send-keys"}, keys...)...)
}

// TestShellOnATerminal types into a real terminal: lines, earlier lines, Ctrl-C at the prompt
// and during a command, questions, and Ctrl-D.
func TestShellOnATerminal(t *testing.T) {
	server := shellServer(t)
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	const prompt, question, declined = "prod/main>", "Run it? [y/N]", "error: not confirmed; nothing was changed"
	s := newScreen(t, program+` shell main; echo "ended with $?"; read -r wait`, shellServerEnv+"="+server.URL, "LC_ALL=C.UTF-8")
	s.shows("etcdctl in pod main-f9x4 of prod/main. exit or Ctrl-D ends the session, Ctrl-C a command.", prompt)
	s.keys("get 'a key'", "Enter")
	s.shows("etcdctl get|a key", prompt)
	s.keys("Up", "BSpace", " 2'", "Enter")
	s.shows("etcdctl get|a key 2", prompt)
	s.keys("half a line")
	s.shows(prompt + " half a line")
	s.keys("C-c")
	s.shows(prompt, prompt)
	s.keys("watch x", "Enter")
	s.shows("etcdctl watch|x")
	s.keys("C-c")
	s.shows("^C", prompt)
	s.keys("fail", "Enter")
	s.shows("Error: etcdctl says why", prompt)
	s.keys("get a | b", "Enter")
	s.shows("ds are not possible; quote special characters with '", prompt)
	s.keys("member remove 8e9e", "Enter")
	s.shows(question)
	s.keys("n", "Enter")
	s.shows(declined, prompt)
	s.keys("Up") // the reply is no line to come back to
	s.shows(prompt + " member remove 8e9e")
	s.keys("Enter")
	s.shows(question)
	s.keys("C-c")
	s.shows(question, declined, prompt)
	s.keys("auth enable", "Enter")
	s.shows(question)
	s.keys("y", "Enter")
	s.shows("etcdctl auth|enable", prompt)
	s.keys("C-d")
	golden(t, "shell-terminal", s.shows(prompt, "ended with 0"))
}

// TestShellEndsOnATerminal: a missing right ends the session.
func TestShellEndsOnATerminal(t *testing.T) {
	server := shellServer(t)
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	s := newScreen(t, program+` shell main; echo "ended with $?"; read -r wait`, shellServerEnv+"="+server.URL)
	s.shows("prod/main>")
	server.Put(clusterPath, plugintest.Forbidden("etcdclusters", "main"))
	s.keys("get a", "Enter")
	if text := s.shows("ended with 4"); !strings.Contains(text, "the right to get etcdclusters in namespace prod is missing") {
		t.Errorf("the right is not named:\n%s", text)
	}
}
