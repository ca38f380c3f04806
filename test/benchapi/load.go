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
	"reflect"
	"time"

	"github.com/google/go-cmp/cmp"
	clientv3 "go.etcd.io/etcd/client/v3"
)

// loadPatience is how long loading may take.
const loadPatience = 20 * time.Minute

// errDifferent means that the comparison would not be fair.
var errDifferent = errors.New("the CRD and the API server store different contents for the same request; correct the schema in rules.go")

// load fills both servers with the same objects and measures what they cost to keep.
func (st *stage) load(ctx context.Context) error {
	for _, s := range st.stores() {
		base := s.base
		before, err := st.heapBytes(ctx, s.clients, base)
		if err != nil {
			return err
		}
		if err := st.putSpecs(ctx, s, loadNamespace, st.objects); err != nil {
			return fmt.Errorf("load %s: %w", s.name, err)
		}
		made, err := st.heapBytes(ctx, s.clients, base)
		if err != nil {
			return err
		}
		if err := st.putStatuses(ctx, s, loadNamespace); err != nil {
			return fmt.Errorf("load the statuses of %s: %w", s.name, err)
		}
		updated, err := st.heapBytes(ctx, s.clients, base)
		if err != nil {
			return err
		}
		resident, err := st.residentBytes(s.server())
		if err != nil {
			return err
		}
		stored, err := st.storedBytes(ctx, s)
		if err != nil {
			return err
		}
		n := float64(st.objects)
		st.report.addSizes(st, s, sizes{HeapAfterCreate: (made - before) / n, HeapAfterStatus: (updated - before) / n, Resident: resident, Stored: stored})
		for namespace, number := range map[string]int{appliedNamespace: st.profile.applied, watchedNamespace: st.profile.updates} {
			if err := st.put(ctx, s, namespace, number); err != nil {
				return err
			}
		}
	}
	return nil
}

// server returns the process that serves the objects.
func (s *serving) server() string {
	if s.name == servingCRD {
		return kubeServer
	}
	return ownServer
}

// storedBytes returns the mean size of a loaded object in etcd, with its key.
func (st *stage) storedBytes(ctx context.Context, s *serving) (float64, error) {
	client, err := clientv3.New(clientv3.Config{Endpoints: []string{st.etcdURL[s.etcd]}, DialTimeout: startPatience})
	if err != nil {
		return 0, err
	}
	defer client.Close()
	prefix := "/registry/" + s.group + "/"
	size, number := 0, 0
	for key := prefix; ; {
		page, err := client.Get(ctx, key, clientv3.WithRange(clientv3.GetPrefixRangeEnd(prefix)), clientv3.WithLimit(500))
		if err != nil {
			return 0, err
		}
		for _, pair := range page.Kvs {
			if bytes.Contains(pair.Key, []byte("/"+loadNamespace+"/")) {
				size += len(pair.Key) + len(pair.Value)
				number++
			}
			key = string(pair.Key) + "\x00"
		}
		if !page.More {
			return float64(size) / float64(max(number, 1)), nil
		}
	}
}

// compare fails if an object has another content at the two servers.
func (st *stage) compare(ctx context.Context) error {
	var contents []object
	for _, s := range st.stores() {
		encoded, err := send(ctx, s.clients.admin, call{method: http.MethodGet, url: s.url(loadNamespace, "/"+loadedName(0))})
		if err != nil {
			return err
		}
		content := object{}
		if err := json.Unmarshal(encoded, &content); err != nil {
			return err
		}
		st.report.addSize(st, s, len(encoded))
		contents = append(contents, object{"spec": withoutZero(content["spec"]), "status": withoutZero(content["status"])})
	}
	if !reflect.DeepEqual(contents[0], contents[1]) {
		return fmt.Errorf("%w: %s", errDifferent, cmp.Diff(contents[0], contents[1]))
	}
	return nil
}

// withoutZero removes empty values: a Go type writes some of them, and a CRD keeps what it got.
func withoutZero(value any) any {
	switch typed := value.(type) {
	case map[string]any:
		out := object{}
		for key, child := range typed {
			if kept := withoutZero(child); kept != nil {
				out[key] = kept
			}
		}
		if len(out) == 0 {
			return nil
		}
		return out
	case []any:
		var out []any
		for _, child := range typed {
			out = append(out, withoutZero(child))
		}
		if len(out) == 0 {
			return nil
		}
		return out
	case nil:
		return nil
	default:
		if reflect.ValueOf(value).IsZero() {
			return nil
		}
		return value
	}
}
