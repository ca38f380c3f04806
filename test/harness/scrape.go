// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package harness

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// ErrScrapeForbidden means that the caller may not read the metrics.
var ErrScrapeForbidden = errors.New("this account may not read the metrics")

// Samples are the lines of a scrape, each with its value, as they were served.
type Samples map[string]float64

// Value returns the sum of the samples of a metric that have all of some labels, each
// written as name="value", and how many there are.
func (s Samples) Value(metric string, labels ...string) (sum float64, n int) {
	for line, value := range s {
		name, _, _ := strings.Cut(line, "{")
		if name == metric && hasAll(line, labels) {
			sum += value
			n++
		}
	}
	return sum, n
}

func hasAll(line string, labels []string) bool {
	for _, l := range labels {
		if !strings.Contains(line, "{"+l) && !strings.Contains(line, ","+l) {
			return false
		}
	}
	return true
}

// Mention returns a sample that has a label of some value, or "".
func (s Samples) Mention(value string) string {
	for line := range s {
		if strings.Contains(line, `="`+value+`"`) {
			return line
		}
	}
	return ""
}

// ScrapeTLS is the configuration to read the metrics of the API server and to check
// its certificate.
func (e *Environment) ScrapeTLS(ctx context.Context) (*tls.Config, error) {
	out, err := e.Kubectl(ctx, Command{Args: []string{
		"get", "apiservice", "v1beta2.etcd.database.coreos.com", "-o", "jsonpath={.spec.service.name}.{.spec.service.namespace}.svc {.spec.caBundle}",
	}})
	if err != nil {
		return nil, err
	}
	host, bundle, _ := strings.Cut(strings.TrimSpace(out), " ")
	pem, err := base64.StdEncoding.DecodeString(bundle)
	if err != nil {
		return nil, fmt.Errorf("decode the CA of the API server: %w", err)
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(pem) {
		return nil, errors.New("the APIService names no CA")
	}
	return &tls.Config{RootCAs: roots, ServerName: host, MinVersion: tls.VersionTLS12}, nil
}

// Scrape reads the metrics of a pod where its annotations say, as Prometheus does. The token
// may be empty, and config is for those who serve them over https.
func (e *Environment) Scrape(ctx context.Context, pod *corev1.Pod, token string, config *tls.Config) (Samples, error) {
	a := pod.Annotations
	if a["prometheus.io/scrape"] != "true" {
		return nil, fmt.Errorf("pod %s says that it has no metrics", pod.Name)
	}
	url := a["prometheus.io/scheme"] + "://" + net.JoinHostPort(pod.Status.PodIP, a["prometheus.io/port"]) + a["prometheus.io/path"]
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return nil, err
	}
	if token != "" {
		request.Header.Set("Authorization", "Bearer "+token)
	}
	transport := &http.Transport{DialContext: e.Dial, TLSClientConfig: config, DisableKeepAlives: true}
	response, err := transport.RoundTrip(request)
	if err != nil {
		return nil, fmt.Errorf("scrape pod %s: %w", pod.Name, err)
	}
	defer func() { _ = response.Body.Close() }()
	switch response.StatusCode {
	case http.StatusOK:
		return readSamples(response.Body)
	case http.StatusUnauthorized, http.StatusForbidden:
		return nil, fmt.Errorf("scrape pod %s: %s: %w", pod.Name, response.Status, ErrScrapeForbidden)
	default:
		return nil, fmt.Errorf("scrape pod %s: %s", pod.Name, response.Status)
	}
}

func readSamples(body io.Reader) (Samples, error) {
	samples := Samples{}
	lines := bufio.NewScanner(body)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		line := lines.Text()
		at := strings.LastIndexByte(line, ' ')
		if line == "" || line[0] == '#' || at < 0 {
			continue
		}
		value, err := strconv.ParseFloat(line[at+1:], 64)
		if err != nil {
			return nil, fmt.Errorf("sample %q: %w", line, err)
		}
		samples[line[:at]] = value
	}
	return samples, lines.Err()
}
