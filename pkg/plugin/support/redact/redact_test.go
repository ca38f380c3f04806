// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package redact_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/etcd-operator/etcd-operator/pkg/plugin/support/redact"
)

const canary = "Hunter2Canary"

// TestTextWithoutSecret: what an engineer needs stays as it is.
func TestTextWithoutSecret(t *testing.T) {
	for _, line := range []string{
		"",
		"2 of 3 voters serve; main-q3m8 does not respond",
		`secret "aws" not found`,
		"quay.io/coreos/etcd@sha256:3397341272b9e0a6f44d7e3fc7c321c6efe6cbe82ce866b9b01d0c704bfc5bf3",
		"dial tcp 10.0.0.3:2379: connect: connection refused",
		`I0304 12:00:00.000000       1 reconcile.go:42] "Reconciled" controller="cluster" key="prod/main"`,
		`{"level":"warn","ts":"2026-03-04T12:00:00.000Z","caller":"rafthttp/stream.go:194","msg":"lost TCP streaming connection with remote peer","remote-peer-id":"8e9e05c52164694d"}`,
		`2026-03-04T12:00:00.000000000Z {"level":"warn","ts":1.5,"msg":"slow fdatasync","took":"2.1s","expected-duration":"1s","more":[1,"a",{"b":null}],"ok":true}`,
		"https://main-client.prod.svc:2379/health",
		"/apis/etcd.database.coreos.com/v1beta2/namespaces/prod/etcdclusters/main/proxy/snapshot",
		"0b6cbe4e-7d3c-4c5e-9d3a-6f8f6a0c2f11",
		"kubectl -n prod patch etcd main --type=merge -p '{\"spec\":{\"paused\":false}}'",
	} {
		if got := redact.Text(line); got != line {
			t.Errorf("got  %s\nfrom %s", got, line)
		}
	}
}

// TestTextWithSecret: no canary is left, wherever it stands in a line.
func TestTextWithSecret(t *testing.T) {
	for _, line := range []string{
		"password=" + canary,
		"Password: " + canary + ",more",
		`db_password = "two words ` + canary + `"`,
		"the password is " + canary,
		"--token=" + canary,
		"started with --s3-secret " + canary,
		"Authorization: Basic " + canary + " and " + canary,
		`\"Authorization\":\"` + canary + `\"`,
		"authorization bearer " + canary,
		"cookie: a=" + canary + "; b=" + canary,
		"https://user:" + canary + "@proxy.example.com:3128/",
		"redis://:" + canary + "@x",
		"https://store.example.com/b/k?X-Amz-Signature=" + canary + "&X-Amz-Date=1",
		"https://x.blob.core.windows.net/c?sv=1&sig=" + canary,
		"aws_secret_access_key = " + canary,
		"AWS_SESSION_TOKEN=" + canary,
		"eyJhbGciOiJSUzI1NiJ9." + canary + ".sig" + canary,
		"AGE-SECRET-KEY-1" + strings.ToUpper(canary),
		"wJalrXUtnFEMI7MDENG" + canary,
		"-----BEGIN PRIVATE KEY-----\n" + canary + "\nabc" + canary + "\n-----END PRIVATE KEY-----",
		"before -----BEGIN RSA PRIVATE KEY-----" + canary + "-----END RSA PRIVATE KEY----- behind",
		`{"msg":"loaded","data":"-----BEGIN PRIVATE KEY-----\n` + canary + `\n-----END PRIVATE KEY-----\n"}`,
		`{"msg":"recognized and used environment variable","variable-name":"ETCD_X","variable-value":"` + canary + `"}`,
		`{"msg":"x","password":"` + canary + `"}`,
		`{"msg":"x","headers":{"Authorization":["Bearer ` + canary + `"]}}`,
		`{"msg":"x","secret":{"inner":"` + canary + `","` + canary + `":1}}`,
		`{"msg":"password=` + canary + `"}`,
		`{"msg":"apply request took too long","request":"header:<ID:1 > txn:<compare:<key:\"/registry/` + canary + `\" >>","response":"size:1"}`,
		`{"msg":"trace[1758] range","detail":"{range_begin:/registry/` + canary + `; range_end:; }","steps":["trace[1758] 'x' {req_type:put; key:` + canary + `; req_size:1; }"]}`,
		`{"msg":"request stats","request content":"key:\"` + canary + `\" value_size:5"}`,
		`{"msg":"revoked a permission on range","role-name":"r","key":"` + canary + `","range-end":"` + canary + `"}`,
		`{"level":"warn","request":"header:<ID:1 > put:<key:\"` + canary,
		`2026-03-04 W | etcdserver: read-only range request "key:\"/registry/` + canary + `\" range_end:\"x\" " with result "range_response_count:1 ` + canary + `" took too long`,
		`the last log: {"msg":"apply request took too long","request":"key:\"` + canary + `\""}`,
		`the last log: {"msg":"apply request took too long","request":"key:\"` + canary,
		`escaped "{\"msg\":\"slow\",\"request\":\"key:` + canary + ` and more\"}"`,
		`put key:` + canary + ` value: "` + canary + `"`,
	} {
		if got := redact.Text(line); strings.Contains(strings.ToLower(got), strings.ToLower(canary)) || !strings.Contains(got, redact.Mark) {
			t.Errorf("got  %s\nfrom %s", got, line)
		}
	}
}

// TestPEMWithoutEnd: a block that never ends does not remove the rest of a log for ever.
func TestPEMWithoutEnd(t *testing.T) {
	var lines redact.Lines
	lines.Line("-----BEGIN PRIVATE KEY-----")
	kept := 0
	for range 300 {
		if _, ok := lines.Line("a line"); ok {
			kept++
		}
	}
	if kept != 100 {
		t.Errorf("%d of 300 lines are left, want 100", kept)
	}
}

func TestObject(t *testing.T) {
	const source = `{
		"metadata": {"name": "main", "managedFields": [{"manager": "` + canary + `"}], "labels": {"team": "data"}, "annotations": {
			"kubectl.kubernetes.io/last-applied-configuration": "` + canary + `", "example.com/note": "` + canary + `",
			"etcd.database.coreos.com/rotate-ca": "password=` + canary + `", "etcd.version": "3.6.16"}},
		"data": {"a": "` + canary + `"}, "stringData": {"a": "` + canary + `"},
		"spec": {
			"s3": {"awsSecret": "aws", "path": "b/k"}, "automountServiceAccountToken": false,
			"etcd": {"etcdEnv": [{"name": "A", "value": "` + canary + `"}]},
			"containers": [{"command": ["etcd", "--password", "` + canary + `", "--name=main", "--token=` + canary + `"],
				"env": [{"name": "B", "value": "` + canary + `"}, {"name": "C", "valueFrom": {"secretKeyRef": {"name": "s", "key": "k"}}}],
				"livenessProbe": {"httpGet": {"httpHeaders": [{"name": "X", "value": "` + canary + `"}]}}}],
			"volumes": [{"csi": {"driver": "d", "volumeAttributes": {"a": "` + canary + `"}}}],
			"accessToken": "` + canary + `", "tokens": ["` + canary + `"], "size": 3},
		"status": {"message": "{\"msg\":\"x\",\"request\":\"` + canary + `\"}"}}`
	const want = `{"data":{"a":"REDACTED"},"metadata":{"annotations":{"etcd.database.coreos.com/rotate-ca":"password=REDACTED","etcd.version":"3.6.16",` +
		`"example.com/note":"REDACTED","kubectl.kubernetes.io/last-applied-configuration":"REDACTED"},"labels":{"team":"data"},"name":"main"},` +
		`"spec":{"accessToken":"REDACTED","automountServiceAccountToken":false,"containers":[{"command":["etcd","--password","REDACTED","--name=main","--token=REDACTED"],` +
		`"env":[{"name":"B","value":"REDACTED"},{"name":"C","valueFrom":{"secretKeyRef":{"key":"k","name":"s"}}}],` +
		`"livenessProbe":{"httpGet":{"httpHeaders":[{"name":"X","value":"REDACTED"}]}}}],"etcd":{"etcdEnv":[{"name":"A","value":"REDACTED"}]},` +
		`"s3":{"awsSecret":"aws","path":"b/k"},"size":3,"tokens":["REDACTED"],"volumes":[{"csi":{"driver":"d","volumeAttributes":{"a":"REDACTED"}}}]},` +
		`"status":{"message":"{\"msg\":\"x\",\"request\":\"REDACTED\"}"},"stringData":{"a":"REDACTED"}}`
	object := map[string]any{}
	if err := json.Unmarshal([]byte(source), &object); err != nil {
		t.Fatal(err)
	}
	redact.Object(object)
	got, err := json.Marshal(object)
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}
