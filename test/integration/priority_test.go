// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"testing"

	flowcontrolv1 "k8s.io/api/flowcontrol/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/test/servers"
)

// TestPriorityAndFairness creates a FlowSchema for one user in the kube-apiserver. Our server finds
// it, and counts the requests of that user, and of no other user, at its priority level.
func TestPriorityAndFairness(t *testing.T) {
	t.Parallel()
	namespace := newNamespace(t)
	create(t, namespace, newCluster("a"))
	user, other := "limited-"+namespace, "unlimited-"+namespace
	grant(t, namespace, user, "get")
	grant(t, namespace, other, "get")
	limitUser(t, namespace, user)
	client, others := userClient(t, user).EtcdV1beta2().EtcdClusters(namespace), userClient(t, other).EtcdV1beta2().EtcdClusters(namespace)
	var before string
	eventually(t, func(ctx context.Context) error { // the server learns of the FlowSchema by a watch
		if _, err := client.Get(ctx, "a", metav1.GetOptions{}); err != nil {
			return err
		}
		if before = dispatched(t, namespace); before == "" {
			return errorf("no request was dispatched at the priority level %s", namespace)
		}
		return nil
	})
	if _, err := others.Get(t.Context(), "a", metav1.GetOptions{}); err != nil {
		t.Fatal(err)
	}
	if after := dispatched(t, namespace); after != before {
		t.Errorf("a request of another user was counted: %s, then %s", before, after)
	}
	if _, err := client.Get(t.Context(), "a", metav1.GetOptions{}); err != nil {
		t.Fatal(err)
	}
	if after := dispatched(t, namespace); after == before {
		t.Errorf("the request of the user was not counted: %s", after)
	}
}

// limitUser creates a priority level, and a FlowSchema that gives it the requests of a user for the group.
func limitUser(t *testing.T, name, user string) {
	t.Helper()
	client := env.client.FlowcontrolV1()
	shares := int32(5)
	if _, err := client.PriorityLevelConfigurations().Create(t.Context(), &flowcontrolv1.PriorityLevelConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: flowcontrolv1.PriorityLevelConfigurationSpec{
			Type: flowcontrolv1.PriorityLevelEnablementLimited,
			Limited: &flowcontrolv1.LimitedPriorityLevelConfiguration{
				NominalConcurrencyShares: &shares, LimitResponse: flowcontrolv1.LimitResponse{Type: flowcontrolv1.LimitResponseTypeReject},
			},
		},
	}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := client.FlowSchemas().Create(t.Context(), &flowcontrolv1.FlowSchema{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: flowcontrolv1.FlowSchemaSpec{
			PriorityLevelConfiguration: flowcontrolv1.PriorityLevelConfigurationReference{Name: name}, MatchingPrecedence: 500,
			Rules: []flowcontrolv1.PolicyRulesWithSubjects{{
				Subjects: []flowcontrolv1.Subject{{Kind: flowcontrolv1.SubjectKindUser, User: &flowcontrolv1.UserSubject{Name: user}}},
				ResourceRules: []flowcontrolv1.ResourcePolicyRule{{
					Verbs: []string{"*"}, APIGroups: []string{v1beta2.SchemeGroupVersion.Group}, Resources: []string{"*"}, Namespaces: []string{"*"},
				}},
			}},
		},
	}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx := context.WithoutCancel(t.Context())
		for _, remove := range []func(context.Context, string, metav1.DeleteOptions) error{client.FlowSchemas().Delete, client.PriorityLevelConfigurations().Delete} {
			if err := remove(ctx, name, metav1.DeleteOptions{}); err != nil {
				t.Error(err)
			}
		}
	})
}

// dispatched returns how many requests our server has dispatched at a priority level, for the
// FlowSchema of the same name. It is empty if there was none.
func dispatched(t *testing.T, name string) string {
	t.Helper()
	client := transportFor(t, keyPair(t, &servers.Pair{Cert: env.admin.CertData, Key: env.admin.KeyData}))
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, env.serverURL()+"/metrics", nil)
	if err != nil {
		t.Fatal(err)
	}
	response, err := client.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	metrics, err := io.ReadAll(response.Body)
	if err != nil || response.StatusCode != http.StatusOK {
		t.Fatalf("read the metrics: status %d, error %v", response.StatusCode, err)
	}
	counter := regexp.MustCompile(fmt.Sprintf(`(?m)^apiserver_flowcontrol_dispatched_requests_total\{flow_schema="%[1]s",priority_level="%[1]s"\} (\d+)$`, name))
	if found := counter.FindSubmatch(metrics); found != nil {
		return string(found[1])
	}
	return ""
}
