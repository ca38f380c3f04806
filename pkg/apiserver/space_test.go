// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/endpoints/request"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd"
)

func TestFullStorageRejectsWrites(t *testing.T) {
	t.Parallel()
	config, err := NewConfig()
	if err != nil {
		t.Fatal(err)
	}
	full := false
	passed := 0
	handler := withSpace(func() bool { return full }, config.Codecs, http.HandlerFunc(func(http.ResponseWriter, *http.Request) { passed++ }))
	send := func(group, verb string) *httptest.ResponseRecorder {
		info := &request.RequestInfo{IsResourceRequest: true, APIGroup: group, APIVersion: "v1beta2", Resource: "etcdclusters", Verb: verb}
		r := httptest.NewRequestWithContext(request.WithRequestInfo(t.Context(), info), http.MethodPost, "/", nil)
		response := httptest.NewRecorder()
		handler.ServeHTTP(response, r)
		return response
	}
	for _, full = range []bool{false, true} {
		for verb, isWrite := range map[string]bool{
			"create": true, "update": true, "patch": true, "get": false, "list": false, "watch": false, "delete": false, "deletecollection": false,
		} {
			passed = 0
			response := send(etcd.GroupName, verb)
			if rejected := full && isWrite; (passed == 0) != rejected {
				t.Errorf("%s while full is %t: passed %d times", verb, full, passed)
			} else if rejected {
				status := metav1.Status{}
				if err := json.Unmarshal(response.Body.Bytes(), &status); err != nil || response.Code != http.StatusInsufficientStorage ||
					!strings.Contains(status.Message, "Delete EtcdBackups") || !strings.Contains(status.Message, "enlarge the volume") {
					t.Errorf("%s: status %d, %s", verb, response.Code, response.Body)
				}
			}
		}
	}
	passed = 0
	if send("authorization.k8s.io", "create"); passed == 0 {
		t.Error("a request of another group was rejected")
	}
}
