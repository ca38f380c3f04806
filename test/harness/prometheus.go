// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package harness

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
)

// Prometheus is a Prometheus on this machine that scrapes what the shipped PodMonitors select,
// and evaluates the shipped rules.
type Prometheus struct {
	URL string

	env *Environment
	dir string
	cmd *exec.Cmd
	// drained is closed when the server has closed its log.
	drained chan struct{}
}

// prometheusInterval is the time between two scrapes, and between two evaluations of the rules.
const prometheusInterval = "2s"

var (
	listening = regexp.MustCompile(`msg="Listening on" .*address=(\S+)`)

	errPrometheus = errors.New("unexpected response of Prometheus")
)

// BuildPrometheus builds the programs that are not up to date: the server and those that make its
// configuration and evaluate the dashboards.
func (e *Environment) BuildPrometheus(ctx context.Context) error {
	_, _, err := run(exec.CommandContext(ctx, filepath.Join(e.Root, "hack", "prometheus.sh")), "hack/prometheus.sh")
	return err
}

// monitoringProgram returns the path of a program that hack/prometheus.sh builds.
func monitoringProgram(name string) string {
	home, _ := os.UserHomeDir()
	return filepath.Join(cmp.Or(os.Getenv("ETCD_OPERATOR_CACHE"), filepath.Join(home, ".cache/etcd-operator")), "tools", name)
}

// StartPrometheus starts a Prometheus for the programs of the operator and the clusters of one
// namespace. The account of the shipped PodMonitors must exist.
func (e *Environment) StartPrometheus(ctx context.Context, namespace string) (_ *Prometheus, err error) {
	p := &Prometheus{env: e, drained: make(chan struct{})}
	if p.dir, err = os.MkdirTemp("", "prometheus-"); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.RemoveAll(p.dir))
		}
	}()
	config := filepath.Join(p.dir, "prometheus.yaml")
	generate := exec.CommandContext(ctx, monitoringProgram("podmonitors"), "-kubeconfig="+e.Kubeconfig, "-monitoring="+e.Artifact("monitoring"),
		"-namespace="+namespace, "-interval="+prometheusInterval, "-out="+config)
	if _, _, err := run(generate, "podmonitors"); err != nil {
		return nil, err
	}
	// Stop ends it, and not the context: it has to close its storage first.
	p.cmd = exec.CommandContext(context.WithoutCancel(ctx), monitoringProgram("prometheus"),
		"--config.file="+config, "--storage.tsdb.path="+filepath.Join(p.dir, "data"), "--web.listen-address=127.0.0.1:0")
	log, err := p.cmd.StderrPipe()
	if err != nil {
		return nil, err
	}
	if err := p.cmd.Start(); err != nil {
		return nil, fmt.Errorf("start Prometheus: %w", err)
	}
	var said []string
	for lines := bufio.NewScanner(log); lines.Scan(); {
		said = append(said, lines.Text())
		if match := listening.FindStringSubmatch(lines.Text()); match != nil {
			p.URL = "http://" + match[1]
			go func() {
				defer close(p.drained)
				_, _ = io.Copy(io.Discard, log)
			}()
			return p, nil
		}
	}
	return nil, fmt.Errorf("start Prometheus: %w: %s", errors.Join(errPrometheus, p.cmd.Wait()), strings.Join(said, "\n"))
}

// Stop ends the server and removes its data.
func (p *Prometheus) Stop() error {
	signaled := p.cmd.Process.Signal(syscall.SIGTERM)
	<-p.drained
	return errors.Join(signaled, p.cmd.Wait(), os.RemoveAll(p.dir))
}

// Query returns the series of an instant query, each with its labels.
func (p *Prometheus) Query(ctx context.Context, expr string) ([]map[string]string, error) {
	var data struct {
		Result []struct{ Metric map[string]string }
	}
	if err := p.get(ctx, "query?query="+url.QueryEscape(expr), &data); err != nil {
		return nil, fmt.Errorf("evaluate %s: %w", expr, err)
	}
	list := []map[string]string{}
	for _, series := range data.Result {
		list = append(list, series.Metric)
	}
	return list, nil
}

// Target is a pod that Prometheus scrapes.
type Target struct {
	Labels            map[string]string
	Health, LastError string
}

// Targets returns what Prometheus scrapes now.
func (p *Prometheus) Targets(ctx context.Context) ([]Target, error) {
	var data struct{ ActiveTargets []Target }
	if err := p.get(ctx, "targets?state=active", &data); err != nil {
		return nil, fmt.Errorf("list targets: %w", err)
	}
	return data.ActiveTargets, nil
}

// get calls the API of Prometheus.
func (p *Prometheus) get(ctx context.Context, path string, data any) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, p.URL+"/api/v1/"+path, nil)
	if err != nil {
		return err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	defer func() { _ = response.Body.Close() }()
	var envelope struct {
		Status, Error string
		Data          json.RawMessage
	}
	if err := json.NewDecoder(response.Body).Decode(&envelope); err != nil {
		return fmt.Errorf("%w: %s: %w", errPrometheus, response.Status, err)
	}
	if envelope.Status != "success" {
		return fmt.Errorf("%w: %s: %s", errPrometheus, response.Status, envelope.Error)
	}
	return json.Unmarshal(envelope.Data, data)
}

// CheckDashboards evaluates every query of the shipped dashboards on what Prometheus saw. The run
// says what happened when, in JSON. With a file in record the series are kept there.
func (p *Prometheus) CheckDashboards(ctx context.Context, run any, record string) (report string, err error) {
	text, err := json.Marshal(run)
	if err != nil {
		return "", err
	}
	file := filepath.Join(p.dir, "run.json")
	if err := os.WriteFile(file, text, 0o600); err != nil {
		return "", err
	}
	var out bytes.Buffer
	check := exec.CommandContext(ctx, monitoringProgram("dashboards"), "-url="+p.URL, "-run="+file, "-monitoring="+p.env.Artifact("monitoring"), "-record="+record)
	check.Stdout, check.Stderr = &out, &out
	err = check.Run()
	return out.String(), err
}
