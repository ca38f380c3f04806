// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"math/big"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"
	"sigs.k8s.io/yaml"
)

const shipped = "../../../artifacts/monitoring"

func secret(name, key, value string) *corev1.Secret {
	return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespaceOfPrometheus, Name: name}, Data: map[string][]byte{key: []byte(value)}}
}

// testCA makes a certificate: the Prometheus Operator takes nothing else as a CA.
func testCA(t *testing.T) string {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true}
	raw, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: raw}))
}

// job is the part of a scrape configuration that the tests read.
type job struct {
	JobName       string `json:"job_name"`
	HonorLabels   bool   `json:"honor_labels"`
	MetricsPath   string `json:"metrics_path"`
	Scheme        string
	Authorization struct{ Type, Credentials string }
	TLSConfig     struct {
		CA                 string `json:"ca"`
		ServerName         string `json:"server_name"`
		InsecureSkipVerify bool   `json:"insecure_skip_verify"`
	} `json:"tls_config"`
	KubernetesSDConfigs []struct {
		Role           string
		KubeconfigFile string `json:"kubeconfig_file"`
		Namespaces     struct{ Names []string }
	} `json:"kubernetes_sd_configs"`
}

type configuration struct {
	Global        struct{ ScrapeInterval, EvaluationInterval string }
	RuleFiles     []string `json:"rule_files"`
	ScrapeConfigs []job    `json:"scrape_configs"`
}

func generated(t *testing.T, monitoring string, objects ...*corev1.Secret) (configuration, error) {
	t.Helper()
	client := fake.NewClientset()
	for _, o := range objects {
		if err := client.Tracker().Add(o); err != nil {
			t.Fatal(err)
		}
	}
	var c configuration
	text, err := generate(t.Context(), client.CoreV1(), options{kubeconfig: "/k", monitoring: monitoring, namespace: "mine", interval: "1s"})
	if err != nil {
		return c, err
	}
	if err := yaml.Unmarshal(text, &c); err != nil {
		t.Fatal(err)
	}
	return c, nil
}

// TestShippedPodMonitors: the Prometheus Operator takes the shipped PodMonitors, and makes of them
// what docs/how-to/monitoring.md says.
func TestShippedPodMonitors(t *testing.T) {
	t.Parallel()
	ca := testCA(t)
	c, err := generated(t, shipped, secret("etcd-operator-metrics", "token", "the token"), secret("etcd-operator-apiserver-tls", "ca.crt", ca))
	if err != nil {
		t.Fatal(err)
	}
	jobs := map[string]job{}
	for _, j := range c.ScrapeConfigs {
		jobs[j.JobName] = j
		if len(j.KubernetesSDConfigs) != 1 || j.KubernetesSDConfigs[0].Role != "pod" || j.KubernetesSDConfigs[0].KubeconfigFile != "/k" {
			t.Errorf("%s finds pods with %+v", j.JobName, j.KubernetesSDConfigs)
		}
	}
	namespaces := func(name string) string { return strings.Join(jobs[name].KubernetesSDConfigs[0].Namespaces.Names, " ") }
	const prefix = "podMonitor/etcd-operator-system/etcd-operator-"
	for name, want := range map[string]string{"controller": namespaceOfPrometheus, "apiserver": namespaceOfPrometheus, "members": "mine"} {
		if len(jobs[prefix+name+"/0"].KubernetesSDConfigs) == 0 {
			t.Fatalf("there is no job of the %s: %v", name, c.ScrapeConfigs)
		}
		if got := namespaces(prefix + name + "/0"); got != want {
			t.Errorf("the job of the %s looks in %q, want %q", name, got, want)
		}
	}
	if !jobs[prefix+"controller/0"].HonorLabels || jobs[prefix+"members/0"].HonorLabels {
		t.Error("the labels namespace and name are not those of clusters")
	}
	api := jobs[prefix+"apiserver/0"]
	if api.Scheme != "https" || api.TLSConfig.CA != ca || api.TLSConfig.InsecureSkipVerify ||
		api.TLSConfig.ServerName != "etcd-operator-apiserver.etcd-operator-system.svc" || api.Authorization.Credentials != "the token" {
		t.Errorf("the API server is scraped with %+v", api)
	}
	if len(c.RuleFiles) == 0 || filepath.Base(c.RuleFiles[0]) != "alerts.yaml" {
		t.Errorf("the rules are %q", c.RuleFiles)
	}
}

// TestPodMonitorsThatCannotBeUsed: a PodMonitor that the Prometheus Operator would leave out is an error.
func TestPodMonitorsThatCannotBeUsed(t *testing.T) {
	t.Parallel()
	if _, err := generated(t, shipped); err == nil || !strings.Contains(err.Error(), "etcd-operator-metrics") && !strings.Contains(err.Error(), "etcd-operator-apiserver-tls") {
		t.Errorf("without the Secrets: %v", err)
	}
	dir := t.TempDir()
	for name, text := range map[string]string{
		"rules.yaml":   "groups:\n- name: a\n  rules: []\n",
		"monitor.yaml": "apiVersion: monitoring.coreos.com/v1\nkind: PodMonitor\nmetadata: {name: a, namespace: etcd-operator-system}\nspec: {selector: {}, podMetricsEndpoints: [{prot: http}]}\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := generated(t, dir); err == nil || !strings.Contains(err.Error(), "prot") {
		t.Errorf("with an unknown field: %v", err)
	}
}
