// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package ui

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"embed"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"path"
	"strconv"
	"strings"
	"time"
)

const (
	headerTimeout = 5 * time.Second
	// writeTimeout is longer than a look at all clusters.
	writeTimeout   = readTimeout + 10*time.Second
	idleTimeout    = time.Minute
	maxHeaderBytes = 16 << 10
	shutdownTime   = 2 * time.Second
)

//go:embed assets
var assets embed.FS

// files are what is served beside the view, with their types.
var files = map[string]struct{ name, contentType string }{
	"":         {"page.html", "text/html; charset=utf-8"},
	"page.css": {"page.css", "text/css; charset=utf-8"},
	"page.js":  {"page.js", "text/javascript; charset=utf-8"},
	"icon.svg": {"icon.svg", "image/svg+xml"},
}

// policy lets the page load nothing but its own files, and no other page show it in a frame.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; " +
	"base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'"

// Server serves the page on the loopback interface.
type Server struct {
	source   *Source
	listener net.Listener
	// token is the first part of every path. A page of another site does not know it, and a
	// program of another user on this machine does not either.
	token string
	hosts []string
}

// Listen binds a port of 127.0.0.1; 0 is any that is free.
func Listen(ctx context.Context, source *Source, port int) (*Server, error) {
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
	if err != nil {
		return nil, fmt.Errorf("listen on port %d of 127.0.0.1: %w; choose another with --port", port, err)
	}
	_, bound, err := net.SplitHostPort(listener.Addr().String())
	if err != nil {
		return nil, errors.Join(fmt.Errorf("read the address: %w", err), listener.Close())
	}
	return &Server{source: source, listener: listener, token: rand.Text(), hosts: []string{"127.0.0.1:" + bound, "localhost:" + bound}}, nil
}

// URL is the address of the page. It holds the token.
func (s *Server) URL() string { return "http://" + s.hosts[0] + "/" + s.token + "/" }

// Serve serves until the context ends.
func (s *Server) Serve(ctx context.Context) error {
	server := &http.Server{
		Handler: s, ReadHeaderTimeout: headerTimeout, ReadTimeout: headerTimeout, WriteTimeout: writeTimeout, IdleTimeout: idleTimeout, MaxHeaderBytes: maxHeaderBytes,
	}
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(s.listener) }()
	select {
	case err := <-ended:
		return fmt.Errorf("serve the page: %w", err)
	case <-ctx.Done():
	}
	shutdown, cancel := context.WithTimeout(context.WithoutCancel(ctx), shutdownTime)
	defer cancel()
	if err := server.Shutdown(shutdown); err != nil {
		return errors.Join(ctx.Err(), server.Close()) // a browser still waits for a look
	}
	return ctx.Err()
}

// ServeHTTP responds to GET with the token, and to nothing else.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	header := w.Header()
	header.Set("Content-Security-Policy", policy)
	header.Set("Cross-Origin-Opener-Policy", "same-origin")
	header.Set("Cross-Origin-Resource-Policy", "same-origin")
	header.Set("X-Content-Type-Options", "nosniff")
	header.Set("X-Frame-Options", "DENY")
	// The address has the token: no other page gets it, and no cache keeps what it shows.
	header.Set("Referrer-Policy", "no-referrer")
	header.Set("Cache-Control", "no-store")
	name, known := s.nameOf(r)
	switch {
	case !s.isOwnHost(r.Host):
		// A name of another site that leads to 127.0.0.1 would make its pages the same origin.
		http.Error(w, "This server is for 127.0.0.1 only.", http.StatusMisdirectedRequest)
	case !known:
		http.Error(w, "Use the address that kubectl etcd ui has printed.", http.StatusForbidden)
	case r.Method != http.MethodGet:
		header.Set("Allow", http.MethodGet)
		http.Error(w, "Only GET is allowed.", http.StatusMethodNotAllowed)
	case name == "view.json":
		s.serveView(w, r)
	default:
		s.serveFile(w, name)
	}
}

func (s *Server) isOwnHost(host string) bool {
	for _, own := range s.hosts {
		if host == own {
			return true
		}
	}
	return false
}

// nameOf returns the path behind the token.
func (s *Server) nameOf(r *http.Request) (string, bool) {
	token, name, slash := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
	return name, slash && subtle.ConstantTimeCompare([]byte(token), []byte(s.token)) == 1
}

func (s *Server) serveFile(w http.ResponseWriter, name string) {
	file, ok := files[name]
	if !ok {
		http.Error(w, "There is no such file.", http.StatusNotFound)
		return
	}
	content, err := assets.ReadFile(path.Join("assets", file.name))
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", file.contentType)
	_, _ = w.Write(content) // the browser may have left
}

// serveView sends the view, or nothing if the browser has the same.
func (s *Server) serveView(w http.ResponseWriter, r *http.Request) {
	view, err := s.source.View(r.Context())
	if err != nil {
		return // the browser has left
	}
	body, err := json.Marshal(view)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	sum := sha256.Sum256(body)
	tag := `"` + hex.EncodeToString(sum[:16]) + `"`
	w.Header().Set("ETag", tag)
	if r.Header.Get("If-None-Match") == tag {
		w.WriteHeader(http.StatusNotModified)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(body) // the browser may have left
}
