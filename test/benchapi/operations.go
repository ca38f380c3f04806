// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"sync/atomic"
)

// Users of lines.
const (
	userAdmin    = "administrator"
	userOrdinary = "RBAC user"
)

// line is one line of the table: an operation with its variables. Each serving runs it once a
// round.
type line struct {
	name    string
	user    string
	format  string
	clients int
	// watchers of a watch.
	watchers int
	query    string
	run      func(context.Context, *stage, *serving, line) (result, error)
}

// created makes each name distinct within a run.
var created atomic.Int64

// create makes new objects, which are removed afterwards.
func create(ctx context.Context, st *stage, s *serving, l line) (result, error) {
	r, err := st.createSome(ctx, s, l)
	return r, errors.Join(err, st.empty(ctx, s))
}

func (st *stage) createSome(ctx context.Context, s *serving, l line) (result, error) {
	b := st.profile.box
	bodies := make([][]byte, b.requests)
	for i := range bodies {
		var err error
		if bodies[i], err = s.body(st.shape.newCluster(madeNamespace, fmt.Sprintf("made-%d", created.Add(1))), l.format); err != nil {
			return result{}, err
		}
	}
	at := s.url(madeNamespace, "")
	return st.repeat(ctx, l.clients, b, func(ctx context.Context, i int) (int64, error) {
		return count(ctx, s.client(l.user), call{method: http.MethodPost, url: at, contentType: accepts[s.format(l.format)], accept: accepts[s.format(l.format)], body: bodies[i]})
	})
}

// deleteCollection removes what it made before. The result is for each removed object.
func deleteCollection(ctx context.Context, st *stage, s *serving, l line) (result, error) {
	made, err := st.createSome(ctx, s, line{user: l.user, format: l.format, clients: manyClients})
	if err != nil {
		return result{}, err
	}
	r, err := st.repeat(ctx, 1, box{requests: 1, limit: requestPatience}, func(ctx context.Context, _ int) (int64, error) {
		return count(ctx, s.client(l.user), call{method: http.MethodDelete, url: s.url(madeNamespace, ""), accept: accepts[s.format(l.format)]})
	})
	r.Requests = made.Requests
	return r, err
}

// empty removes what create made.
func (st *stage) empty(ctx context.Context, s *serving) error {
	_, err := count(ctx, s.clients.admin, call{method: http.MethodDelete, url: s.url(madeNamespace, "")})
	return err
}

// get reads each loaded object at most once.
func get(ctx context.Context, st *stage, s *serving, l line) (result, error) {
	return st.repeat(ctx, l.clients, box{requests: st.objects, limit: st.profile.box.limit}, func(ctx context.Context, i int) (int64, error) {
		return count(ctx, s.client(l.user), call{method: http.MethodGet, url: s.url(loadNamespace, "/"+loadedName(i)), accept: accepts[s.format(l.format)]})
	})
}

// list reads all loaded objects, page by page if the query has a limit.
func list(ctx context.Context, st *stage, s *serving, l line) (result, error) {
	return st.repeat(ctx, l.clients, st.profile.box, func(ctx context.Context, _ int) (int64, error) {
		at := s.url(loadNamespace, l.query)
		if l.format == formatTable || l.query == pageQuery {
			return pages(ctx, s.client(l.user), accepts[s.format(l.format)], at)
		}
		return count(ctx, s.client(l.user), call{method: http.MethodGet, url: at, accept: accepts[s.format(l.format)]})
	})
}

// pageQuery asks for the first page; kubectl get does so, too.
const pageQuery = "?limit=500"

// pages reads a list page by page, and returns the bytes of all responses.
func pages(ctx context.Context, client *http.Client, accept, first string) (int64, error) {
	var size int64
	for at := first; ; {
		content, err := send(ctx, client, call{method: http.MethodGet, url: at, accept: accept})
		if err != nil {
			return size, err
		}
		size += int64(len(content))
		token := continueToken(content)
		if token == "" {
			return size, nil
		}
		at = first + "&continue=" + url.QueryEscape(token)
	}
}

// continueToken returns the token of the next page in a list as JSON.
func continueToken(content []byte) string {
	_, rest, found := bytes.Cut(listMetadata(content), []byte(`"continue":"`))
	if !found {
		return ""
	}
	token, _, _ := bytes.Cut(rest, []byte(`"`))
	return string(token)
}

// listMetadata returns the metadata of a list as JSON. They come before the items, but for a CRD: the
// kube-apiserver sorts the fields of its lists, and metadata come last. Decoding the whole list would take
// the client longer than the servers take for a page.
func listMetadata(content []byte) []byte {
	label, within := []byte(`"metadata":{`), min(len(content), 4096)
	before, rest, found := bytes.Cut(content[:within], label)
	if !found || bytes.Contains(before, []byte(`"items":`)) {
		tail := content[len(content)-within:]
		_, rest, _ = bytes.Cut(tail[max(0, bytes.LastIndex(tail, label)):], label)
	}
	metadata, _, _ := bytes.Cut(rest, []byte("}"))
	return metadata
}

// updateStatus writes a new status of each loaded object at most once.
func updateStatus(ctx context.Context, st *stage, s *serving, l line) (result, error) {
	calls, err := st.statusCalls(ctx, s, l, loadNamespace, created.Add(1))
	if err != nil {
		return result{}, err
	}
	return st.repeat(ctx, l.clients, box{requests: len(calls), limit: st.profile.box.limit}, func(ctx context.Context, i int) (int64, error) {
		return count(ctx, s.client(l.user), calls[i])
	})
}

// statusCalls encodes the updates beforehand. It reads the objects first, because an update of a
// CRD needs the resource version.
func (st *stage) statusCalls(ctx context.Context, s *serving, l line, namespace string, turn int64) ([]call, error) {
	stored, err := s.list(ctx, namespace)
	if err != nil {
		return nil, err
	}
	var calls []call
	for i := range stored.Items {
		cluster := &stored.Items[i]
		cluster.Status = st.shape.newStatus(cluster, turn)
		body, err := s.body(cluster, l.format)
		if err != nil {
			return nil, err
		}
		media := accepts[s.format(l.format)]
		calls = append(calls, call{method: http.MethodPut, url: s.url(namespace, "/"+cluster.Name+"/status"), contentType: media, accept: media, body: body})
	}
	return calls, nil
}

// applyServerSide applies the whole manifest of existing objects with one changed annotation.
func applyServerSide(ctx context.Context, st *stage, s *serving, l line) (result, error) {
	turn := created.Add(1)
	bodies := make([][]byte, st.profile.applied)
	for i := range bodies {
		cluster := st.shape.newCluster(appliedNamespace, loadedName(i))
		cluster.Annotations = map[string]string{"example.com/turn": fmt.Sprint(turn)}
		cluster.APIVersion, cluster.Kind = s.group+"/v1beta2", "EtcdCluster"
		encoded, err := json.Marshal(applied{cluster.APIVersion, cluster.Kind, cluster.ObjectMeta, cluster.Spec})
		if err != nil {
			return result{}, err
		}
		bodies[i] = encoded
	}
	return st.repeat(ctx, l.clients, box{requests: len(bodies), limit: st.profile.box.limit}, func(ctx context.Context, i int) (int64, error) {
		return count(ctx, s.client(l.user), call{
			method: http.MethodPatch, url: s.url(appliedNamespace, "/"+loadedName(i)+"?fieldManager=applier&force=true"),
			contentType: "application/apply-patch+yaml", accept: accepts[formatJSON], body: bodies[i],
		})
	})
}
