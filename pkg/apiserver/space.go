// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"net/http"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/endpoints/handlers/responsewriters"
	"k8s.io/apiserver/pkg/endpoints/request"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd"
	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
)

// errStorageFull is what a client gets while the storage takes no writes.
var errStorageFull = &apierrors.StatusError{ErrStatus: metav1.Status{
	Status: metav1.StatusFailure, Code: http.StatusInsufficientStorage, Reason: "StorageFull",
	Message: "the storage of the etcd-operator API server is full, so objects cannot be created or changed. " +
		"Delete EtcdBackups that are not needed and EtcdRestores that have ended, or enlarge the volume of the API server. " +
		"EtcdClusters and namespaces are deleted only once there is space. Etcd clusters go on without this",
}}

// withSpace rejects requests that create or change objects while the storage is full. Requests to
// delete pass.
func withSpace(isFull func() bool, serializer runtime.NegotiatedSerializer, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if info, ok := request.RequestInfoFrom(r.Context()); ok && isWrite(info) && isFull() {
			responsewriters.ErrorNegotiated(errStorageFull, serializer, v1beta2.SchemeGroupVersion, w, r)
			return
		}
		next.ServeHTTP(w, r)
	})
}

func isWrite(info *request.RequestInfo) bool {
	if !info.IsResourceRequest || info.APIGroup != etcd.GroupName {
		return false
	}
	return info.Verb == "create" || info.Verb == "update" || info.Verb == "patch"
}
