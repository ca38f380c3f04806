// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package command_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/plugin/connect"
	"github.com/etcd-operator/etcd-operator/pkg/plugin/plugintest"
)

// streams are the commands that pass on what members, their logs and the API say.
var streams = []string{
	"ctl main -- endpoint health", "shell main", "logs main", "logs main main-q3m8", "snapshot save main FILE.db", "report main -f FILE.tar.gz", "version",
}

// archiveSize depends on the compression.
var archiveSize = regexp.MustCompile(`gz: [0-9.]+Ki`)

// TestStreamsInAnyState keeps what these commands print in five states of a cluster: which members they
// choose, and what they say of members that they do not reach.
func TestStreamsInAnyState(t *testing.T) {
	for name, s := range scenes() {
		t.Run(name, func(t *testing.T) {
			server := plugintest.New(t)
			plantScene(server, s)
			serveStreams(server, s)
			folder := t.TempDir()
			var all strings.Builder
			for _, line := range streams {
				p := newTerminal(t, server, false)
				p.Color, p.Unicode = false, false
				p.In = strings.NewReader("get greeting\nmember list\n")
				p.Exec = runsIn
				code := p.run(strings.Fields(strings.ReplaceAll(line, "FILE", filepath.Join(folder, "FILE")))...)
				screen := strings.ReplaceAll(p.out.String()+p.err.String(), folder+string(filepath.Separator), "")
				screen = archiveSize.ReplaceAllString(screen, "gz: (a size)")
				fmt.Fprintf(&all, "## kubectl etcd %s (exit code %d)\n%s\n", line, code, screen)
			}
			golden(t, "streams-"+name, all.String())
		})
	}
}

// runsIn is an etcdctl that prints the pod in which it runs, and the last of its arguments.
func runsIn(_ context.Context, _ *connect.Clients, pod *corev1.Pod, command []string, _ io.Reader, out, _ io.Writer) error {
	_, err := fmt.Fprintf(out, "etcdctl in %s: %s\n", pod.Name, strings.Join(command[len(command)-2:], " "))
	return err
}

// serveStreams serves pods, logs and a snapshot of the members that have a pod.
func serveStreams(server *plugintest.Server, s *scene) {
	const pods = "/api/v1/namespaces/" + plugintest.Namespace + "/pods/"
	for i := range s.members {
		m := &s.members[i]
		if m.lost {
			continue
		}
		pod := memberPod(m.version)
		pod.Name = m.name
		server.Put(pods+m.name, pod)
		server.Put(pods+m.name+"/log", http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintf(w, "the log of %s\n", m.name) }))
	}
	data := bytes.Repeat([]byte("0123456789abcdef"), 3200)
	sum := sha256.Sum256(data)
	server.On(http.MethodGet, clusterPath+"/proxy/snapshot", func(*http.Request, []byte) any {
		for i := range s.members {
			if m := &s.members[i]; m.responds() && m.hasLeader {
				return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
					w.Header().Set("Etcd-Member", m.name)
					w.Header().Set("Etcd-Revision", "77")
					_, _ = w.Write(append(bytes.Clone(data), sum[:]...)) // the client may have closed the connection
				})
			}
		}
		return apierrors.NewServiceUnavailable("no member of EtcdCluster main serves a snapshot")
	})
	server.Put("/apis/"+v1beta2.SchemeGroupVersion.String(), map[string]any{})
}
