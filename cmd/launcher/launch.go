// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/etcd-operator/etcd-operator/pkg/notice"
)

const (
	// envInitialCluster is etcd's own variable. The kubelet sets it when it makes the
	// container, from an annotation that is empty until the member was added.
	envInitialCluster = "ETCD_INITIAL_CLUSTER"
	// pollInterval is how often the file is read. The kubelet writes it up to a second
	// after the annotation has changed, so that reading more often gains nothing. A notice of
	// the controller is there sooner.
	pollInterval = 10 * time.Millisecond
	// headerTimeout bounds a request of a probe.
	headerTimeout = 5 * time.Second
	programMode   = 0o755
)

// launch is one wait for membership.
type launch struct {
	file              string
	command           []string
	httpPort, tcpPort int

	environ []string
	exec    func(program string, args, environ []string) error
	log     io.Writer
}

// run waits for the initial cluster and becomes the command. It returns only with an
// error: that of ctx if it ends first.
func (l *launch) run(ctx context.Context) error {
	environ := l.environ
	if value(environ, envInitialCluster) == "" {
		noticed := make(chan string, 1)
		responded, err := l.respond(ctx, noticed)
		if err != nil {
			return err
		}
		fmt.Fprintln(l.log, "launcher: waiting until the controller adds this member to the cluster")
		cluster, source, err := l.await(ctx, noticed)
		responded()
		if err != nil {
			return err
		}
		fmt.Fprintln(l.log, "launcher: the member was added, says the "+source+"; starting", l.command[0])
		environ = with(environ, envInitialCluster, cluster)
	}
	if err := l.exec(l.command[0], l.command, environ); err != nil {
		return fmt.Errorf("start %s: %w", l.command[0], err)
	}
	return nil
}

// await returns the initial cluster as soon as the file holds it or a notice names it, and which
// of the two was first.
func (l *launch) await(ctx context.Context, noticed <-chan string) (cluster, source string, err error) {
	tick := time.NewTicker(pollInterval)
	defer tick.Stop()
	for {
		raw, err := os.ReadFile(l.file)
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			return "", "", fmt.Errorf("read the initial cluster: %w", err)
		}
		if cluster := strings.TrimSpace(string(raw)); cluster != "" {
			return cluster, "kubelet", nil
		}
		select {
		case <-ctx.Done():
			return "", "", ctx.Err()
		case cluster := <-noticed:
			return cluster, "controller", nil
		case <-tick.C:
		}
	}
}

// respond lets the startup and liveness probes of etcd succeed while etcd is not
// started yet: a wait may be long, and is no failure. The readiness probe of a cluster with TLS comes to
// the same port and fails: a pod in which etcd does not serve is not ready. Notices that come to the HTTP port go
// to noticed. The ports are free again when the returned function has returned.
func (l *launch) respond(ctx context.Context, noticed chan<- string) (func(), error) {
	var closers []io.Closer
	finish := func() {
		for _, c := range closers {
			_ = c.Close()
		}
	}
	if l.httpPort > 0 {
		listener, err := listen(ctx, l.httpPort)
		if err != nil {
			return nil, err
		}
		handler := http.NewServeMux()
		handler.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Connection", "close")
			if asksForService(r.URL) {
				w.WriteHeader(http.StatusServiceUnavailable)
			}
			_, _ = io.WriteString(w, "waiting until the member is added\n")
		})
		handler.HandleFunc("POST "+notice.Path, func(w http.ResponseWriter, r *http.Request) { l.heed(w, r, noticed) })
		server := &http.Server{ReadHeaderTimeout: headerTimeout, ReadTimeout: headerTimeout, Handler: handler}
		closers = append(closers, server)
		go func() { _ = server.Serve(listener) }()
	}
	if l.tcpPort > 0 {
		listener, err := listen(ctx, l.tcpPort)
		if err != nil {
			finish()
			return nil, err
		}
		closers = append(closers, listener)
		go hangUp(listener)
	}
	return finish, nil
}

// asksForService is true for the readiness probes of etcd: /readyz, and a /health that is not limited to
// the process by serializable=true.
func asksForService(u *url.URL) bool {
	return u.Path == "/readyz" || u.Path == "/health" && u.Query().Get("serializable") != "true"
}

// heed passes on the first notice of the controller that made the pod, and rejects every other
// one.
func (l *launch) heed(w http.ResponseWriter, r *http.Request, noticed chan<- string) {
	w.Header().Set("Connection", "close")
	var n notice.Notice
	if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, notice.MaxBytes)).Decode(&n); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	key, err := os.ReadFile(filepath.Join(filepath.Dir(l.file), notice.KeyFile))
	var uid []byte
	if err == nil {
		uid, err = os.ReadFile(filepath.Join(filepath.Dir(l.file), notice.UIDFile))
	}
	if err == nil {
		err = n.Verify(string(key), string(uid))
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusForbidden)
		return
	}
	w.WriteHeader(http.StatusNoContent)
	_ = http.NewResponseController(w).Flush() // etcd takes the place of this program at once
	select {
	case noticed <- n.InitialCluster:
	default:
	}
}

func listen(ctx context.Context, port int) (net.Listener, error) {
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", ":"+strconv.Itoa(port))
	if err != nil {
		return nil, fmt.Errorf("respond to probes: %w", err)
	}
	return listener, nil
}

// hangUp accepts connections and closes them, until the listener is closed.
func hangUp(listener net.Listener) {
	for {
		conn, err := listener.Accept()
		if err != nil {
			return
		}
		_ = conn.Close()
	}
}

func value(environ []string, name string) string {
	found := ""
	for _, entry := range environ {
		if v, ok := strings.CutPrefix(entry, name+"="); ok {
			found = v
		}
	}
	return found
}

// with returns environ with one value for name.
func with(environ []string, name, value string) []string {
	out := make([]string, 0, len(environ)+1)
	for _, entry := range environ {
		if !strings.HasPrefix(entry, name+"=") {
			out = append(out, entry)
		}
	}
	return append(out, name+"="+value)
}

// install copies a program into a directory, under the same name. A copy that is cut
// short does not have the name.
func install(program, dir string) error {
	source, err := os.Open(program)
	if err != nil {
		return fmt.Errorf("install: %w", err)
	}
	defer func() { _ = source.Close() }()
	partial, err := os.CreateTemp(dir, filepath.Base(program)+".*")
	if err != nil {
		return fmt.Errorf("install: %w", err)
	}
	_, err = io.Copy(partial, source)
	if err == nil {
		err = partial.Chmod(programMode)
	}
	if err = errors.Join(err, partial.Close()); err == nil {
		err = os.Rename(partial.Name(), filepath.Join(dir, filepath.Base(program)))
	}
	if err != nil {
		return fmt.Errorf("install: %w", errors.Join(err, os.Remove(partial.Name())))
	}
	return nil
}
