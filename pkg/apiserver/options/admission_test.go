// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package options

import (
	"net/http"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/server/healthz"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
)

// TestParametersDoNotCountForReadiness: a policy of the cluster whose parameters the server
// may not read does not make it unready.
func TestParametersDoNotCountForReadiness(t *testing.T) {
	client := fake.NewClientset()
	asked := make(chan struct{}, 100)
	client.PrependReactor("list", "configmaps", func(clienttesting.Action) (bool, runtime.Object, error) {
		asked <- struct{}{}
		return true, nil, apierrors.NewForbidden(corev1.Resource("configmaps"), "", nil)
	})
	shared := informers.NewSharedInformerFactory(client, 0)
	apart := &admissionInformers{SharedInformerFactory: shared, parameters: informers.NewSharedInformerFactory(client, 0)}
	parameters, err := apart.ForResource(corev1.SchemeGroupVersion.WithResource("configmaps"))
	if err != nil {
		t.Fatal(err)
	}
	parameters.Informer()
	shared.Core().V1().Namespaces().Informer()
	apart.Start(t.Context().Done())
	select {
	case <-asked:
	case <-time.After(time.Minute):
		t.Fatal("the parameters were not asked for: nothing was tested")
	}
	for informer, synced := range shared.WaitForCacheSync(t.Context().Done()) {
		if !synced {
			t.Errorf("%v is not there", informer)
		}
	}
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "/readyz", http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	if err := healthz.NewInformerSyncHealthz(shared).Check(request); err != nil {
		t.Errorf("the server is not ready: %v", err)
	}
	if parameters.Informer().HasSynced() {
		t.Error("the parameters were read: nothing was tested")
	}
}
