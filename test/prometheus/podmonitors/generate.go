// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"

	monitoringv1 "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	"github.com/prometheus-operator/prometheus-operator/pkg/assets"
	"github.com/prometheus-operator/prometheus-operator/pkg/operator"
	generator "github.com/prometheus-operator/prometheus-operator/pkg/prometheus"
	"github.com/prometheus/client_golang/prometheus"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/record"
	"sigs.k8s.io/yaml"
)

// options say what is generated.
type options struct{ kubeconfig, monitoring, namespace, interval string }

// namespaceOfPrometheus is the namespace of the PodMonitors, and of the Prometheus that selects them.
const namespaceOfPrometheus = "etcd-operator-system"

var errPodMonitors = errors.New("the PodMonitors cannot be used")

// generate returns the configuration of a Prometheus that selects all PodMonitors of the directory.
func generate(ctx context.Context, secrets interface {
	corev1client.ConfigMapsGetter
	corev1client.SecretsGetter
}, o options,
) ([]byte, error) {
	monitors, rules, err := readDirectory(o.monitoring)
	if err != nil {
		return nil, err
	}
	p := &monitoringv1.Prometheus{ObjectMeta: metav1.ObjectMeta{Name: "test", Namespace: namespaceOfPrometheus}}
	p.Spec.ScrapeInterval = monitoringv1.Duration(o.interval)
	p.Spec.ScrapeTimeout = monitoringv1.Duration(o.interval)
	p.Spec.EvaluationInterval = monitoringv1.Duration(o.interval)
	p.Spec.PodMonitorSelector = &metav1.LabelSelector{}

	var log bytes.Buffer
	logger := slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelWarn}))
	store := assets.NewStoreBuilder(secrets, secrets)
	selector, err := generator.NewResourceSelector(logger, p, store, nil, operator.NewMetrics(prometheus.NewRegistry()), record.NewFakeRecorder(len(monitors)))
	if err != nil {
		return nil, err
	}
	selected, err := selector.SelectPodMonitors(ctx, func(namespace string, _ labels.Selector, add cache.AppendFunc) error {
		for _, m := range monitors {
			if m.Namespace == namespace {
				add(m)
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	// The Prometheus Operator logs why it leaves a PodMonitor or a part of it out.
	if valid := selected.ValidResources(); len(valid) != len(monitors) || log.Len() > 0 {
		return nil, fmt.Errorf("%w: %d of %d are valid: %s", errPodMonitors, len(valid), len(monitors), log.String())
	}
	config, err := generator.NewConfigGenerator(logger, p, generator.WithInlineTLSConfig())
	if err != nil {
		return nil, err
	}
	text, err := config.GenerateServerConfiguration(p, nil, selected.ValidResources(), nil, nil, store, nil, nil, nil, nil)
	if err != nil {
		return nil, err
	}
	if log.Len() > 0 {
		return nil, fmt.Errorf("%w: %s", errPodMonitors, log.String())
	}
	return adapt(text, o, rules)
}

// environment are the variables that the config-reloader of the Prometheus Operator replaces in a pod.
var environment = strings.NewReplacer("$(POD_NAME)", "prometheus-test-0", "$(SHARD)", "0")

// adapt changes what is different outside of a pod: Prometheus reads a kubeconfig, and rules where they
// are. A limit of the namespaces leaves out clusters of other tests.
func adapt(text []byte, o options, rules []string) ([]byte, error) {
	text = []byte(environment.Replace(string(text)))
	if at := bytes.Index(text, []byte("$(")); at >= 0 {
		return nil, fmt.Errorf("%w: a variable has no value: %.40s", errPodMonitors, text[at:])
	}
	config := map[string]any{}
	if err := yaml.Unmarshal(text, &config); err != nil {
		return nil, fmt.Errorf("read the generated configuration: %w", err)
	}
	config["rule_files"] = rules
	jobs, _ := config["scrape_configs"].([]any)
	for _, job := range jobs {
		fields, _ := job.(map[string]any)
		discoveries, _ := fields["kubernetes_sd_configs"].([]any)
		for _, discovery := range discoveries {
			of, _ := discovery.(map[string]any)
			if of == nil {
				return nil, fmt.Errorf("%w: job %v finds no pods", errPodMonitors, fields["job_name"])
			}
			of["kubeconfig_file"] = o.kubeconfig
			if _, limited := of["namespaces"]; !limited && o.namespace != "" {
				of["namespaces"] = map[string]any{"names": []string{o.namespace}}
			}
		}
	}
	return yaml.Marshal(config)
}

// readDirectory returns the PodMonitors of a directory, and the paths of its files of rules. A field
// that the Prometheus Operator does not know is an error.
func readDirectory(dir string) (monitors []*monitoringv1.PodMonitor, rules []string, err error) {
	dir, err = filepath.Abs(dir)
	if err != nil {
		return nil, nil, err
	}
	files, err := filepath.Glob(filepath.Join(dir, "*.yaml"))
	if err != nil {
		return nil, nil, err
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return nil, nil, err
		}
		documents := utilyaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(text)))
		for {
			document, err := documents.Read()
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				return nil, nil, fmt.Errorf("read %s: %w", file, err)
			}
			var kind struct {
				Kind   string
				Groups []any
			}
			if err := yaml.Unmarshal(document, &kind); err != nil {
				return nil, nil, fmt.Errorf("read %s: %w", file, err)
			}
			if len(kind.Groups) > 0 {
				rules = append(rules, file)
			}
			if kind.Kind != monitoringv1.PodMonitorsKind {
				continue
			}
			monitor := &monitoringv1.PodMonitor{}
			if err := yaml.UnmarshalStrict(document, monitor); err != nil {
				return nil, nil, fmt.Errorf("read the PodMonitor of %s: %w", file, err)
			}
			monitors = append(monitors, monitor)
		}
	}
	if len(monitors) == 0 || len(rules) == 0 {
		return nil, nil, fmt.Errorf("%w: %s has %d PodMonitors and %d files of rules", errPodMonitors, dir, len(monitors), len(rules))
	}
	return monitors, rules, nil
}
