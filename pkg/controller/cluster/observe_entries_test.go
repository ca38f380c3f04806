// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"maps"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/certificates"
	certplanner "github.com/etcd-operator/etcd-operator/pkg/planner/certificates"
	"github.com/etcd-operator/etcd-operator/pkg/resources"
)

// staticWorld is a world with the Secrets of a user, all with the names of etcd-operator and all with one certificate.
func staticWorld(t *testing.T) *certWorld {
	t.Helper()
	w := newCertWorld(t, v1beta2.TLSPolicy{Static: &v1beta2.StaticTLS{
		Member: &v1beta2.MemberSecret{PeerSecret: "peer", ServerSecret: "server"}, OperatorSecret: "operator",
	}})
	chain, key, err := w.issuer.Issue(certificates.Template{Name: "m", Hosts: hosts(w.cluster), Server: true, Client: true}, w.clock.Now())
	if err != nil {
		t.Fatal(err)
	}
	for name, use := range map[string]resources.SecretUse{"peer": resources.UsePeer, "server": resources.UseServer, "operator": resources.UseOperator, "other": resources.UsePeer} {
		f := resources.Files(use, resources.FormatNamed)
		secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "n"},
			Data: map[string][]byte{f.Cert: chain, f.Key: key, f.CA: certificates.PEM(w.issuer.Certificate)}}
		if _, err := w.kube.CoreV1().Secrets("n").Create(t.Context(), secret, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	return w
}

// rename gives a Secret the names of Kubernetes, beside those of etcd-operator or instead of them.
func (w *certWorld) rename(name string, use resources.SecretUse, keep bool) {
	w.Helper()
	secret := w.secret(name)
	old, next := resources.Files(use, resources.FormatNamed), resources.Files(use, resources.FormatKubernetes)
	data := map[string][]byte{next.Cert: secret.Data[old.Cert], next.Key: secret.Data[old.Key], next.CA: secret.Data[old.CA]}
	if keep {
		maps.Copy(data, secret.Data)
	}
	secret.Data = data
	w.put(secret)
}

// TestEntriesOfPods: a Secret must have the entries that the flags of the living pods name.
func TestEntriesOfPods(t *testing.T) {
	named := resources.MemberPod{Name: "c-a"}
	kubernetes := resources.MemberPod{Name: "c-b", PeerFormat: resources.FormatKubernetes, ServerFormat: resources.FormatKubernetes}
	renamed := func(name string, use resources.SecretUse) func(*certWorld) {
		return func(w *certWorld) { w.rename(name, use, false) }
	}
	onPod := func(change func(*corev1.Pod)) func(*certWorld) {
		return func(w *certWorld) { w.rename("peer", resources.UsePeer, false); change(w.mounting[0]) }
	}
	for name, test := range map[string]struct {
		pods   []resources.MemberPod
		change func(*certWorld)
		secret string // the one that the status says to correct; empty for none
		says   string
	}{
		"nothing changed":          {[]resources.MemberPod{named}, func(*certWorld) {}, "", ""},
		"peer entries renamed":     {[]resources.MemberPod{named}, renamed("peer", resources.UsePeer), "peer", "it lacks peer.crt, peer.key, peer-ca.crt, which the flags of pod c-a name."},
		"server entries renamed":   {[]resources.MemberPod{named}, renamed("server", resources.UseServer), "server", "it lacks server.crt, server.key, server-ca.crt, which the flags of pod c-a name."},
		"operator entries renamed": {[]resources.MemberPod{named}, renamed("operator", resources.UseOperator), "", ""},
		"renamed back":             {[]resources.MemberPod{kubernetes}, func(*certWorld) {}, "peer", "it lacks tls.crt, tls.key, ca.crt, which the flags of pod c-b name."},
		"both sets":                {[]resources.MemberPod{named}, func(w *certWorld) { w.rename("peer", resources.UsePeer, true) }, "", ""},
		"pods of both formats": {[]resources.MemberPod{kubernetes, named}, func(w *certWorld) {
			w.rename("peer", resources.UsePeer, false)
			w.rename("server", resources.UseServer, true)
		}, "peer", "pod c-a "},
		"both sets and formats": {[]resources.MemberPod{named, kubernetes}, func(w *certWorld) {
			w.rename("peer", resources.UsePeer, true)
			w.rename("server", resources.UseServer, true)
		}, "", ""},
		"no pods":                  {nil, renamed("peer", resources.UsePeer), "", ""},
		"the pod has finished":     {[]resources.MemberPod{named}, onPod(func(p *corev1.Pod) { p.Status.Phase = corev1.PodFailed }), "", ""},
		"the pod is being deleted": {[]resources.MemberPod{named}, onPod(func(p *corev1.Pod) { p.DeletionTimestamp = &metav1.Time{} }), "", ""},
		"the pod of another owner": {[]resources.MemberPod{named}, onPod(func(p *corev1.Pod) { p.OwnerReferences[0].UID = "other" }), "", ""},
		"the pod of a recovery member": {[]resources.MemberPod{named}, func(w *certWorld) {
			w.mounting, w.hidden = nil, w.mounting
			w.rename("peer", resources.UsePeer, false)
		}, "peer", "pod c-a "},
		"another Secret is named":  {[]resources.MemberPod{named}, nameOther, "", ""},
		"another, old one renamed": {[]resources.MemberPod{named}, func(w *certWorld) { nameOther(w); w.rename("peer", resources.UsePeer, false) }, "peer", "it lacks peer.crt"},
		"another, old one deleted": {[]resources.MemberPod{named}, func(w *certWorld) { nameOther(w); w.lose("peer") }, "", ""},
		"another with other names": {[]resources.MemberPod{named}, func(w *certWorld) { nameOther(w); w.rename("other", resources.UsePeer, false) }, "", ""},
		"one entry of a set is left": {[]resources.MemberPod{named}, func(w *certWorld) {
			w.rename("peer", resources.UsePeer, true)
			secret := w.secret("peer")
			delete(secret.Data, "peer.key")
			w.put(secret)
		}, "peer", "it lacks peer.key, which"},
	} {
		t.Run(name, func(t *testing.T) {
			w := staticWorld(t)
			for _, m := range test.pods {
				w.mounting = append(w.mounting, resources.Pod(w.cluster, m))
			}
			test.change(w)
			s := w.step()
			facts := certplanner.Observed{Now: s.Now, Certificates: s.Certificates}
			got := facts.Condition()
			if test.secret == "" {
				if got.Status != corev1.ConditionTrue || got.Reason != certplanner.ReasonAllUsable || facts.FirstBlocking() != nil {
					t.Errorf("the Secrets are usable, and the condition is %+v", got)
				}
				return
			}
			if got.Status != corev1.ConditionFalse || got.Reason != certplanner.ReasonSecretIncomplete || !strings.HasPrefix(got.Message, "secret "+test.secret+" (") ||
				!strings.Contains(got.Message, test.says) || !strings.Contains(got.Message, "Add these entries again") {
				t.Errorf("Secret %s lacks entries, and the condition is %+v", test.secret, got)
			}
			if c := facts.FirstBlocking(); c == nil || c.Secret != test.secret {
				t.Errorf("%+v keeps members from being restarted", c)
			}
		})
	}
}

// nameOther has the spec name another Secret for peers; pods were created with the one before.
func nameOther(w *certWorld) { w.cluster.Spec.TLS.Static.Member.PeerSecret = "other" }
