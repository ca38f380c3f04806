// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package options

import (
	"context"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apiserver/pkg/admission"
	mutatingpolicy "k8s.io/apiserver/pkg/admission/plugin/policy/mutating"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"k8s.io/component-base/metrics/testutil"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/etcd-operator/etcd-operator/test/oldest"
)

// TestDeferredPluginBecomesActive upgrades Kubernetes while the server runs: the inactive plugin
// then watches its policies and handles requests.
func TestDeferredPluginBecomesActive(t *testing.T) {
	document, err := oldest.Load()
	if err != nil {
		t.Fatal(err)
	}
	kubernetes := oldest.NewServer(document)
	options, clock := optionsFor(t, kubernetes)
	if err := options.checkRequiredAPIs(t.Context()); err != nil {
		t.Fatal(err)
	}
	var plugin admission.Interface
	options.Recommended.Admission.Decorators = append(options.Recommended.Admission.Decorators,
		admission.DecoratorFunc(func(handler admission.Interface, name string) admission.Interface {
			if name == mutatingpolicy.PluginName {
				plugin = handler
			}
			return handler
		}))
	config, err := options.Config(nil)
	if err != nil {
		t.Fatal(err)
	}
	config.Generic.SharedInformerFactory.Start(t.Context().Done())
	config.Generic.SharedInformerFactory.WaitForCacheSync(t.Context().Done())
	policies := admissionregistrationv1.SchemeGroupVersion.WithResource("mutatingadmissionpolicies")
	if plugin.Handles(admission.Create) || kubernetes.Watched().Has(policies) {
		t.Fatal("the plugin is active although its API is not served")
	}
	checkEnforced(t, 0)

	step(t, clock)
	awaitWaiter(t, clock) // the API is not served yet
	kubernetes.Serve(admissionregistrationv1.SchemeGroupVersion, map[string]string{
		"mutatingadmissionpolicies": "MutatingAdmissionPolicy", "mutatingadmissionpolicybindings": "MutatingAdmissionPolicyBinding",
	})
	if plugin.Handles(admission.Create) {
		t.Fatal("the plugin is active before its policies are read")
	}
	step(t, clock)
	err = wait.PollUntilContextTimeout(t.Context(), 10*time.Millisecond, time.Minute, true, func(context.Context) (bool, error) {
		return plugin.Handles(admission.Create), nil
	})
	if err != nil {
		t.Fatal("the plugin does not become active")
	}
	// An informer has synced before its watch begins.
	err = wait.PollUntilContextTimeout(t.Context(), 10*time.Millisecond, time.Minute, true, func(context.Context) (bool, error) {
		return kubernetes.Watched().Has(policies), nil
	})
	if err != nil {
		t.Error("the active plugin does not watch its policies")
	}
	if unserved := kubernetes.Unserved(); len(unserved) > 0 {
		t.Errorf("requests for APIs that are not served: %v", unserved)
	}
	checkEnforced(t, 1)
}

// optionsFor returns the options of a server on that Kubernetes, and its clock.
func optionsFor(t *testing.T, kubernetes *oldest.Server) (*Options, *clocktesting.FakeClock) {
	t.Helper()
	listener := httptest.NewServer(kubernetes)
	t.Cleanup(func() {
		listener.CloseClientConnections()
		listener.Close()
	})
	config := clientcmdapi.NewConfig()
	config.Clusters["test"] = &clientcmdapi.Cluster{Server: listener.URL}
	config.Contexts["test"] = &clientcmdapi.Context{Cluster: "test"}
	config.CurrentContext = "test"
	kubeconfig := filepath.Join(t.TempDir(), "kubeconfig")
	if err := clientcmd.WriteToFile(*config, kubeconfig); err != nil {
		t.Fatal(err)
	}
	options := parse(t, "--kubeconfig="+kubeconfig, "--authorization-kubeconfig="+kubeconfig, "--etcd-servers=http://localhost:1")
	options.Recommended.Authentication = nil
	if err := options.Recommended.SecureServing.MaybeDefaultWithSelfSignedCerts("localhost", nil, nil); err != nil {
		t.Fatal(err)
	}
	options.Recommended.SecureServing.BindPort = 0
	clock := clocktesting.NewFakeClock(time.Unix(0, 0))
	options.clock = clock
	return options, clock
}

// step moves the clock to the next check of the kube-apiserver.
func step(t *testing.T, clock *clocktesting.FakeClock) {
	t.Helper()
	awaitWaiter(t, clock)
	clock.Step(servedCheckPeriod)
}

func awaitWaiter(t *testing.T, clock *clocktesting.FakeClock) {
	t.Helper()
	err := wait.PollUntilContextTimeout(t.Context(), time.Millisecond, time.Minute, true, func(context.Context) (bool, error) {
		return clock.HasWaiters(), nil
	})
	if err != nil {
		t.Fatal("the server does not check the kube-apiserver again")
	}
}

func checkEnforced(t *testing.T, want int) {
	t.Helper()
	expected := `# HELP etcd_operator_apiserver_admission_plugin_enforced [ALPHA] 1 if the admission plugin is active for the objects of this server; 0 while the kube-apiserver does not serve its API.
# TYPE etcd_operator_apiserver_admission_plugin_enforced gauge
etcd_operator_apiserver_admission_plugin_enforced{plugin="MutatingAdmissionPolicy"} ` + string(rune('0'+want)) + "\n"
	if err := testutil.CollectAndCompare(enforced, strings.NewReader(expected)); err != nil {
		t.Error(err)
	}
}
