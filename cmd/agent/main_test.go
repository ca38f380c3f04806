// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/etcd-operator/etcd-operator/pkg/agent"
	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/etcd/etcdtest"
	"github.com/etcd-operator/etcd-operator/pkg/objectstore/storetest"
	"github.com/etcd-operator/etcd-operator/pkg/snapshot/manifest"
)

// asAgent makes this test binary the agent itself.
const asAgent = "RUN_AS_AGENT"

func TestMain(m *testing.M) {
	if os.Getenv(asAgent) != "" {
		main()
		return
	}
	if os.Getenv(showRoots) != "" {
		names, err := trustedRoots()
		if err == nil {
			err = json.NewEncoder(os.Stdout).Encode(names)
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

// agentPatience is for a slow store on a loaded machine.
const agentPatience = 5 * time.Minute

// runAgent runs the agent as a process and returns its result and all that it said.
func runAgent(t *testing.T, command agent.Command, request string, env ...string) (result *agent.Result, said string, failed bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*agentPatience)
	defer cancel()
	file := filepath.Join(t.TempDir(), "termination-log")
	process := exec.CommandContext(ctx, os.Args[0], string(command), "--request="+request, "--result-file="+file, "--progress-host=127.0.0.1")
	process.Env = append(append(os.Environ(), asAgent+"=1"), env...)
	var out bytes.Buffer
	process.Stdout, process.Stderr = &out, &out
	err := process.Run()
	raw, readErr := os.ReadFile(file)
	if readErr != nil {
		t.Fatalf("%v: %s", readErr, out.String())
	}
	result, decodeErr := agent.DecodeResult(string(raw))
	if decodeErr != nil {
		t.Fatalf("%v: %s", decodeErr, raw)
	}
	return result, out.String() + string(raw), err != nil
}

func encode(t *testing.T, command agent.Command, r *agent.Request) string {
	t.Helper()
	args, err := r.Args(command)
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimPrefix(args[1], "--request=")
}

// childRoots returns the CAs that a process with this environment trusts.
func childRoots(t *testing.T, env ...string) []string {
	t.Helper()
	process := exec.CommandContext(t.Context(), os.Args[0])
	process.Env = append(append(os.Environ(), showRoots+"=1"), env...)
	out, err := process.Output()
	var names []string
	if err = errors.Join(err, json.Unmarshal(out, &names)); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return names
}

func TestInvalidRequest(t *testing.T) {
	result, _, failed := runAgent(t, agent.CommandSave, `{"id":"x","surprise":1}`)
	if !failed || result.Error == nil || result.Error.Class != agent.ClassRequest {
		t.Errorf("failed %v, %+v", failed, result)
	}
}

// canaries are the secrets that no output may hold.
var canaries = []string{
	storetest.SecretKey, base64.StdEncoding.EncodeToString([]byte(storetest.SecretKey)), storetest.AccountKey, storetest.Token, "AGE-SECRET-KEY-1CANARY",
}

func mustHideSecrets(t *testing.T, said string) {
	t.Helper()
	for _, canary := range canaries {
		if strings.Contains(said, canary) {
			t.Errorf("a secret was printed: %s", said)
		}
	}
}

func makeBucket(t testing.TB, endpoint, bucket string) {
	t.Helper()
	client := s3.New(s3.Options{
		BaseEndpoint: &endpoint, UsePathStyle: true, Region: "us-east-1", HTTPClient: &http.Client{Transport: storetest.Transport(t, nil)},
		Credentials: credentials.NewStaticCredentialsProvider(storetest.AccessKey, storetest.SecretKey, ""),
	})
	if _, err := client.CreateBucket(t.Context(), &s3.CreateBucketInput{Bucket: aws.String(bucket)}); err != nil {
		t.Fatal(err)
	}
}

// The whole program against a real member and a real store: the result says what was
// done or why not, and no secret is ever said.
func TestSaveToS3(t *testing.T) {
	cluster := etcdtest.New(t)
	cluster.Member("m0").Put(50)
	endpoint := storetest.S3(t)
	makeBucket(t, endpoint, "backups")
	request := func() *agent.Request {
		return &agent.Request{
			ID: "transfer", StallTimeoutSeconds: 30, TimeoutSeconds: 60,
			Etcd: &agent.Etcd{Endpoints: []agent.Endpoint{{Name: "m0", URL: cluster.Member("m0").ClientURL}}},
			Store: &agent.Store{
				Type: v1beta2.BackupStorageTypeS3, Bucket: "backups", Key: "k", Endpoint: endpoint, ForcePathStyle: true, CADir: storeCA(t),
				CredentialsDir: storetest.AWSSecret(t, storetest.AccessKey, storetest.SecretKey),
			},
			Save: &agent.Save{
				Layout: manifest.LayoutDirectory, Owner: manifest.Owner{Namespace: "n", Name: "c", UID: "u"},
				Started: time.Now(), Compression: v1beta2.CompressionZstd,
			},
		}
	}
	result, said, failed := runAgent(t, agent.CommandSave, encode(t, agent.CommandSave, request()))
	if failed || result.Error != nil || !result.Verified || result.Revision < 51 || !strings.HasPrefix(result.URI, "s3://backups/k/v1/n/c-u/") {
		t.Fatalf("%+v: %s", result, said)
	}
	mustHideSecrets(t, said)

	storm := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		// Stores quote what they got; some quote all of it.
		http.Error(w, "no: "+r.Header.Get("Authorization"), http.StatusInternalServerError)
	}))
	t.Cleanup(storm.Close)
	azure := func(r *agent.Request, at, key string) {
		r.Store = &agent.Store{Type: v1beta2.BackupStorageTypeABS, Bucket: "c", Key: "k", Endpoint: at, CredentialsDir: storetest.Secret(t, map[string]string{
			"storage-account": storetest.Account, "storage-key": key,
		})}
	}
	for name, test := range map[string]struct {
		change func(*agent.Request)
		class  agent.ErrorClass
	}{
		"wrong secret": {func(r *agent.Request) {
			r.Store.CredentialsDir = storetest.AWSSecret(t, "SOMEBODY", storetest.SecretKey)
		}, agent.ClassStoreDenied},
		"malformed secret": {func(r *agent.Request) {
			r.Store.CredentialsDir = storetest.Secret(t, map[string]string{"credentials": storetest.SecretKey})
		}, agent.ClassCredentials},
		"no secret": {func(r *agent.Request) { r.Store.CredentialsDir = "/nonexistent" }, agent.ClassCredentials},
		"no bucket": {func(r *agent.Request) { r.Store.Bucket = "none" }, agent.ClassNoBucket},
		"no store":  {func(r *agent.Request) { r.Store.Endpoint = "http://127.0.0.1:1" }, agent.ClassStore},
		"500":       {func(r *agent.Request) { r.Store.Endpoint = storm.URL }, agent.ClassStore},
		"no member": {func(r *agent.Request) { r.Etcd.Endpoints[0].URL = "http://127.0.0.1:1" }, agent.ClassEtcd},
		"no TLS":    {func(r *agent.Request) { r.Etcd.TLSDir = t.TempDir() }, agent.ClassCredentials},
		"bad recipients": {func(r *agent.Request) {
			r.Save.RecipientsDir = storetest.Secret(t, map[string]string{"recipients": "AGE-SECRET-KEY-1CANARY"})
		}, agent.ClassCredentials},
		"azure 500":           {func(r *agent.Request) { azure(r, storm.URL, storetest.AccountKey) }, agent.ClassStore},
		"azure malformed key": {func(r *agent.Request) { azure(r, storm.URL, storetest.SecretKey) }, agent.ClassCredentials},
		"google 500": {func(r *agent.Request) {
			r.Store = &agent.Store{Type: v1beta2.BackupStorageTypeGCS, Bucket: "b", Key: "k", Endpoint: storm.URL, CredentialsDir: storetest.Secret(t, map[string]string{"access-token": storetest.Token})}
		}, agent.ClassStore},
		"oss 500": {func(r *agent.Request) {
			r.Store = &agent.Store{Type: v1beta2.BackupStorageTypeOSS, Bucket: "b", Key: "k", Endpoint: storm.URL, CredentialsDir: storetest.Secret(t, map[string]string{"accessKeyID": storetest.AccessKey, "accessKeySecret": storetest.SecretKey})}
		}, agent.ClassStore},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := request()
			r.ID = "other"
			test.change(r)
			result, said, failed := runAgent(t, agent.CommandSave, encode(t, agent.CommandSave, r))
			if !failed || result.Error == nil || result.Error.Class != test.class {
				t.Errorf("got %v, want %s", result.Error, test.class)
			}
			mustHideSecrets(t, said)
		})
	}
}

// The progress is served while a store is slow.
func TestProgress(t *testing.T) {
	cluster := etcdtest.New(t)
	asked, reply := make(chan struct{}), make(chan struct{})
	store := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		select {
		case asked <- struct{}{}:
		default:
		}
		<-reply
		w.WriteHeader(http.StatusForbidden)
	}))
	t.Cleanup(store.Close)
	port := 12000 + os.Getpid()%20000
	r := &agent.Request{
		ID: "watched", ProgressPort: int32(port),
		Etcd: &agent.Etcd{Endpoints: []agent.Endpoint{{URL: cluster.Member("m0").ClientURL}}},
		Store: &agent.Store{
			Type: v1beta2.BackupStorageTypeS3, Bucket: "b", Key: "k", Endpoint: store.URL, ForcePathStyle: true,
			CredentialsDir: storetest.AWSSecret(t, storetest.AccessKey, storetest.SecretKey),
		},
		Save: &agent.Save{Layout: manifest.LayoutObject, Started: time.Now()},
	}
	request := encode(t, agent.CommandSave, r)
	done := make(chan *agent.Result)
	go func() {
		result, _, _ := runAgent(t, agent.CommandSave, request)
		done <- result
	}()
	<-asked
	response, err := http.Get(agent.ProgressURL("127.0.0.1", r.ProgressPort)) //nolint:noctx // it responds or the test fails
	if err != nil {
		t.Fatal(err)
	}
	var progress agent.Progress
	err = json.NewDecoder(response.Body).Decode(&progress)
	response.Body.Close()
	if err != nil || progress.ID != "watched" || progress.Step == "" {
		t.Errorf("%+v, %v", progress, err)
	}
	close(reply)
	if result := <-done; result.Error == nil || result.Error.Class != agent.ClassStoreDenied {
		t.Errorf("%+v", result)
	}
}
