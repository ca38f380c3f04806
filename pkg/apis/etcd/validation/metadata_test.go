// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package validation

import (
	"fmt"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
)

func TestObjectsMetadata(t *testing.T) {
	t.Parallel()
	many := map[string]string{}
	for i := range maxObjectLabels + 1 {
		many[fmt.Sprint("label-", i)] = "x"
	}
	for name, test := range map[string]struct {
		labels map[string]string
		want   string
	}{
		"labels that a policy requires":     {map[string]string{"team": "data", "app.kubernetes.io/part-of": "shop", "example.com/cost-center": "7"}, ""},
		"the controller's own":              {map[string]string{"etcd_cluster": "other"}, "belong to the controller"},
		"deletion protection":               {map[string]string{"etcd.database.coreos.com/deletion-protection": "true"}, "reserved"},
		"what Kubernetes acts on":           {map[string]string{"service.kubernetes.io/headless": ""}, "reserved"},
		"what Kubernetes acts on, any part": {map[string]string{"node.k8s.io/x": ""}, "reserved"},
		"what Argo CD prunes by":            {map[string]string{"argocd.argoproj.io/instance": "app"}, "reserved"},
		"what Argo CD prunes by, too":       {map[string]string{"app.kubernetes.io/instance": "app"}, "would delete the PVCs"},
		"no label value":                    {map[string]string{"team": "a b"}, "a valid label must"},
		"the pod has it, too":               {map[string]string{"tier": "x"}, "spec.pod.labels has this key, too"},
		"the Service has it, too":           {map[string]string{"zone": "x"}, "spec.services.client.labels has this key, too"},
		"too many":                          {many, "Too many"},
	} {
		spec := &v1beta2.ClusterSpec{
			Metadata: &v1beta2.ObjectsMetadata{Labels: test.labels}, Pod: &v1beta2.PodPolicy{Labels: map[string]string{"tier": "db"}},
			Services: &v1beta2.ServicesPolicy{Client: &v1beta2.ServiceTemplate{Labels: map[string]string{"zone": "a"}}},
		}
		errs := validateObjectsMetadata(spec, field.NewPath("spec"))
		if (test.want == "") != (len(errs) == 0) || test.want != "" && !strings.Contains(errs.ToAggregate().Error(), test.want) {
			t.Errorf("%s: %v", name, errs)
		}
	}
}
