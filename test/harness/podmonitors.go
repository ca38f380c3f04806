// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package harness

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"
)

const (
	podMonitorKind = "PodMonitor"
	// metricsAccount is the account of artifacts/monitoring with which Prometheus reads the API server.
	metricsAccount = "etcd-operator-metrics"
)

// podMonitor is the part of a PodMonitor that says which pods it selects.
type podMonitor struct {
	Kind     string
	Metadata metav1.ObjectMeta
	Spec     struct {
		NamespaceSelector   struct{ Any bool }
		Selector            metav1.LabelSelector
		PodMetricsEndpoints []struct{ Port string }
	}
}

// monitoringManifests returns the manifests of artifacts/monitoring: PodMonitors, and everything else.
func (e *Environment) monitoringManifests() (monitors []podMonitor, others []string, err error) {
	files, err := filepath.Glob(e.Artifact("monitoring", "*.yaml"))
	if err != nil {
		return nil, nil, err
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return nil, nil, err
		}
		for _, document := range bytes.Split(text, []byte("\n---\n")) {
			var m podMonitor
			if err := yaml.Unmarshal(document, &m); err != nil {
				return nil, nil, fmt.Errorf("read %s: %w", file, err)
			}
			switch m.Kind {
			case podMonitorKind:
				monitors = append(monitors, m)
			case "": // rules
			default:
				others = append(others, string(document))
			}
		}
	}
	return monitors, others, nil
}

// InstallMetricsAccount installs what artifacts/monitoring has beside PodMonitors, and waits for the
// token of the account. Remove removes it.
func (e *Environment) InstallMetricsAccount(ctx context.Context) (remove func(context.Context) error, err error) {
	_, others, err := e.monitoringManifests()
	if err != nil {
		return nil, err
	}
	manifests := strings.Join(others, "\n---\n")
	remove = func(ctx context.Context) error {
		_, err := e.Kubectl(ctx, Command{Args: []string{"delete", "--ignore-not-found", "--wait=false", "-f", "-"}, Stdin: manifests})
		return err
	}
	if _, err := e.Kubectl(ctx, Command{Args: []string{"apply", "-f", "-"}, Stdin: manifests}); err != nil {
		return nil, errors.Join(err, remove(ctx))
	}
	view, err := e.Secret(ctx, SystemNamespace, metricsAccount)
	if err == nil {
		defer view.Close()
		err = view.Await(ctx, func(list []*corev1.Secret) bool { return len(list) == 1 && len(list[0].Data["token"]) > 0 })
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("wait for the token of %s: %w", metricsAccount, err), remove(ctx))
	}
	return remove, nil
}

// MonitoredPods returns the pods of the operator and of a namespace that the PodMonitors select: the
// name of the PodMonitor and the name of the pod, sorted.
func (e *Environment) MonitoredPods(ctx context.Context, namespace string) ([]string, error) {
	monitors, _, err := e.monitoringManifests()
	if err != nil {
		return nil, err
	}
	var selected []string
	for i := range monitors {
		m := &monitors[i]
		in := m.Metadata.Namespace
		if m.Spec.NamespaceSelector.Any {
			in = namespace
		}
		pods, err := e.Kube.CoreV1().Pods(in).List(ctx, metav1.ListOptions{LabelSelector: metav1.FormatLabelSelector(&m.Spec.Selector)})
		if err != nil {
			return nil, fmt.Errorf("list the pods of PodMonitor %s: %w", m.Metadata.Name, err)
		}
		for j := range pods.Items {
			for _, endpoint := range m.Spec.PodMetricsEndpoints {
				if hasPort(&pods.Items[j], endpoint.Port) {
					selected = append(selected, m.Metadata.Name+" "+pods.Items[j].Name)
				}
			}
		}
	}
	slices.Sort(selected)
	return selected, nil
}

func hasPort(pod *corev1.Pod, name string) bool {
	return slices.ContainsFunc(pod.Spec.Containers, func(c corev1.Container) bool {
		return slices.ContainsFunc(c.Ports, func(p corev1.ContainerPort) bool { return p.Name == name })
	})
}
