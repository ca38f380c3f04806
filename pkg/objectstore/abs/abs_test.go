// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package abs

import (
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blockblob"
	"k8s.io/utils/ptr"

	"github.com/etcd-operator/etcd-operator/pkg/objectstore"
	"github.com/etcd-operator/etcd-operator/pkg/objectstore/storetest"
)

func open(t *testing.T, endpoint, containerName, key string, proxy *storetest.Proxy) *Store {
	t.Helper()
	transport := storetest.Transport(t, proxy)
	secret := storetest.Secret(t, map[string]string{accountFile: storetest.Account, keyFile: key})
	store, err := New(Config{Container: containerName, Endpoint: endpoint, CredentialsDir: secret, Transport: transport})
	if err != nil {
		t.Fatal(err)
	}
	return store
}

func TestAcceptance(t *testing.T) {
	endpoint := storetest.Azure(t)
	const name = "backups"
	if _, err := open(t, endpoint, name, storetest.AccountKey, nil).client.Create(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	storetest.Run(t, storetest.Options{
		Open: func(t *testing.T) objectstore.Store { return open(t, endpoint, name, storetest.AccountKey, nil) },
		Through: func(t *testing.T, p *storetest.Proxy) objectstore.Store {
			return open(t, endpoint, name, storetest.AccountKey, p)
		},
		Denied: func(t *testing.T) objectstore.Store {
			return open(t, endpoint, name, base64.StdEncoding.EncodeToString([]byte("wrong")), nil)
		},
		Missing:   func(t *testing.T) objectstore.Store { return open(t, endpoint, "none", storetest.AccountKey, nil) },
		Leftovers: true,
		Proves:    true,
		Aborted:   true,
	})
}

// TestAbortUploadsKeepsOthers: what is no leftover of ours stays, whatever is beside it, and what
// AbortUploads has left when it was killed goes.
func TestAbortUploadsKeepsOthers(t *testing.T) {
	endpoint := storetest.Azure(t)
	store := open(t, endpoint, "spared", storetest.AccountKey, nil)
	ctx, now := t.Context(), time.Now()
	if _, err := store.client.Create(ctx, nil); err != nil {
		t.Fatal(err)
	}
	stage := func(key string, begun time.Time) *upload {
		u := &upload{client: store.client.NewBlockBlobClient(key), salt: begun.UnixNano()}
		if err := u.PutPart(ctx, 1, []byte("part")); err != nil {
			t.Fatal(err)
		}
		return u
	}
	old := now.Add(-48 * time.Hour)
	stage("abandoned", old)
	running := stage("running", now)
	stage("again", old)
	again := stage("again", now)
	stage("empty", old)
	if _, err := store.client.NewBlockBlobClient("empty").CommitBlockList(ctx, nil, nil); err != nil {
		t.Fatal(err)
	}
	if _, err := store.client.NewBlockBlobClient("killed").CommitBlockList(ctx, nil, &blockblob.CommitBlockListOptions{
		Metadata: map[string]*string{uploadMark: ptr.To("true")},
	}); err != nil {
		t.Fatal(err)
	}
	if _, err := store.client.NewBlockBlobClient("theirs").StageBlock(ctx, base64.StdEncoding.EncodeToString([]byte("0001")), body([]byte("x")), nil); err != nil {
		t.Fatal(err)
	}
	if err := objectstore.PutBytes(ctx, store, "whole", []byte("data"), objectstore.PutOptions{}); err != nil {
		t.Fatal(err)
	}
	stage("whole", old)

	if n, err := store.AbortUploads(ctx, "", storetest.Any, now.Add(-24*time.Hour)); err != nil || n != 2 {
		t.Errorf("aborted %d, %v; want what was abandoned, and what was killed", n, err)
	}
	for key, u := range map[string]*upload{"running": running, "again": again} {
		if err := u.Complete(ctx, 1); err != nil {
			t.Errorf("%s cannot be finished any more: %v", key, err)
		}
	}
	var found []string
	for object, err := range store.List(ctx, "") {
		if err != nil {
			t.Fatal(err)
		}
		found = append(found, object.Key)
	}
	if want := []string{"again", "empty", "running", "whole"}; !slices.Equal(found, want) {
		t.Errorf("there are %v, want %v", found, want)
	}
	if list, err := store.client.NewBlockBlobClient("theirs").GetBlockList(ctx, blockblob.BlockListTypeAll, nil); err != nil || len(list.UncommittedBlocks) != 1 {
		t.Errorf("what another program sends: %+v, %v", list.UncommittedBlocks, err)
	}
}

// listing is what an account with a hierarchical namespace responds: directories are among
// the blobs, tags have no quotes, and what is not committed has neither tag nor time.
const listing = `<?xml version="1.0" encoding="utf-8"?><EnumerationResults ContainerName="c"><Blobs>
<Blob><Name>a</Name><Properties><Etag>0x1</Etag><ResourceType>directory</ResourceType><Content-Length>0</Content-Length><BlobType>BlockBlob</BlobType></Properties></Blob>
<Blob><Name>a/killed</Name><Properties><Etag>0x2</Etag><ResourceType>file</ResourceType><Content-Length>0</Content-Length><BlobType>BlockBlob</BlobType></Properties><Metadata><etcdoperatorswept>true</etcdoperatorswept></Metadata></Blob>
<Blob><Name>a/sent</Name><Properties><Content-Length>0</Content-Length><BlobType>BlockBlob</BlobType></Properties></Blob>
</Blobs><NextMarker/></EnumerationResults>`

// TestAbortUploadsAsDocumented: the requests to the service, one after the other.
func TestAbortUploadsAsDocumented(t *testing.T) {
	block := (&upload{salt: time.Now().Add(-48 * time.Hour).UnixNano()}).block(1)
	var asked []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		query := r.URL.Query()
		path := strings.TrimPrefix(r.URL.Path, "/"+storetest.Account)
		switch {
		case query.Get("comp") == "list":
			asked = append(asked, "list "+query.Get("prefix")+" with "+query.Get("include"))
			_, _ = io.WriteString(w, listing)
		case r.Method == http.MethodGet:
			asked = append(asked, "get "+query.Get("comp")+" "+query.Get("blocklisttype")+" "+path)
			_, _ = fmt.Fprintf(w, "<BlockList><CommittedBlocks/><UncommittedBlocks><Block><Name>%s</Name><Size>1</Size></Block></UncommittedBlocks></BlockList>", block)
		case r.Method == http.MethodPut:
			body, _ := io.ReadAll(r.Body)
			asked = append(asked, fmt.Sprintf("put %s %s if none matches %s, %d blocks", query.Get("comp"), path, r.Header.Get("If-None-Match"), bytes.Count(body, []byte("<Latest>"))))
			w.Header().Set("Etag", `"0x3"`)
			w.WriteHeader(http.StatusCreated)
		default:
			asked = append(asked, r.Method+" "+path+" if it is "+r.Header.Get("If-Match"))
			w.WriteHeader(http.StatusAccepted)
		}
	}))
	t.Cleanup(server.Close)
	store := open(t, server.URL, "c", storetest.AccountKey, nil)
	if n, err := store.AbortUploads(t.Context(), "a/", storetest.Any, time.Now()); n != 2 || err != nil {
		t.Errorf("aborted %d, %v", n, err)
	}
	want := []string{
		"list a/ with metadata,uncommittedblobs",
		`DELETE /c/a/killed if it is "0x2"`,
		"get blocklist all /c/a/sent",
		"put blocklist /c/a/sent if none matches *, 0 blocks",
		`DELETE /c/a/sent if it is "0x3"`,
	}
	if !slices.Equal(asked, want) {
		t.Errorf("asked %q, want %q", asked, want)
	}
	for object, err := range store.List(t.Context(), "a/") {
		if err != nil || object.Key == "a" {
			t.Errorf("listed: %+v, %v", object, err)
		}
	}
}

func TestBadSecrets(t *testing.T) {
	const canary = "canary-5d1c!"
	for name, entries := range map[string]map[string]string{
		"nothing":       {},
		"no account":    {keyFile: storetest.AccountKey},
		"no Base64":     {accountFile: "a", keyFile: canary},
		"no name":       {accountFile: "evil.example.com/", keyFile: storetest.AccountKey},
		"unknown cloud": {accountFile: "a", keyFile: storetest.AccountKey, cloudFile: canary},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := New(Config{Container: "c", CredentialsDir: storetest.Secret(t, entries)})
			if !errors.Is(err, objectstore.ErrCredentials) {
				t.Errorf("got %v, want ErrCredentials", err)
			}
			if err != nil && strings.Contains(err.Error(), canary) {
				t.Errorf("the secret is in the error: %v", err)
			}
		})
	}
}

func TestAccountURL(t *testing.T) {
	for endpoint, want := range map[string]string{
		"":                                   "https://acc.blob.core.windows.net",
		"http://127.0.0.1:10000":             "http://127.0.0.1:10000/acc",
		"http://127.0.0.1:10000/other":       "http://127.0.0.1:10000/other",
		"https://acc.blob.local.azurestack/": "https://acc.blob.local.azurestack",
		"acc.privatelink.blob.example":       "https://acc.privatelink.blob.example",
	} {
		if got, err := accountURL(endpoint, "acc", environments[""].suffix); err != nil || got != want {
			t.Errorf("%q: got %q, %v; want %q", endpoint, got, err, want)
		}
	}
}
