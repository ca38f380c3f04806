// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"encoding/base64"
	"net/url"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/etcd-operator/etcd-operator/test/harness"
)

// canary is a secret that must turn up nowhere.
const canary = "canary-7f3a91c2d8"

// noCanary looks for the planted secret, and for every private key and identity in a Secret
// of the test, wherever a user may read without a right to Secrets. It reads objects and
// their status, pods with their arguments, environment and termination messages, and events.
// It also reads the logs of all programs but the servers of stores.
func (s *scenario) noCanary() {
	s.Helper()
	secrets := s.planted()
	for _, args := range [][]string{
		{"get", "etcdclusters,etcdbackups,etcdrestores,jobs,pods,events,services,configmaps,pvc,pdb", "-o", "yaml"},
		{"logs", "-l", "name!=store", "--all-containers", "--prefix", "--tail=-1", "--ignore-errors"},
		{"logs", "-n", harness.SystemNamespace, "deployment/" + harness.Controller, "--tail=-1"},
		{"logs", "-n", harness.SystemNamespace, "deployment/" + harness.APIServer, "--tail=-1"},
	} {
		out, err := env.Kubectl(s.ctx(), harness.Command{Args: append([]string{"-n", s.namespace}, args...)})
		s.must(err, "look for secrets")
		for where, secret := range secrets {
			for _, form := range forms(secret) {
				if strings.Contains(out, form) {
					s.Errorf("%s is in kubectl %s", where, strings.Join(args, " "))
				}
			}
		}
	}
}

// planted returns what must turn up nowhere, by where it is.
func (s *scenario) planted() map[string]string {
	s.Helper()
	list, err := env.Kube.CoreV1().Secrets(s.namespace).List(s.ctx(), metav1.ListOptions{})
	s.must(err, "list secrets")
	secrets := map[string]string{"the canary": canary}
	for _, secret := range list.Items {
		for entry, value := range secret.Data {
			key := false
			for line := range strings.Lines(string(value)) {
				line = strings.TrimSpace(line)
				switch {
				case strings.HasPrefix(line, "-----"):
					key = strings.HasPrefix(line, "-----BEGIN ") && strings.HasSuffix(line, "PRIVATE KEY-----")
				case strings.HasPrefix(line, "AGE-SECRET-KEY-1"), key && secrets[secret.Name+"/"+entry] == "":
					secrets[secret.Name+"/"+entry] = line
				}
			}
		}
	}
	return secrets
}

// forms are how a secret may be written: as it is, in a URL, and in Base64, where it
// depends on what stands before it and not on what follows.
func forms(secret string) []string {
	list := []string{secret, url.QueryEscape(secret)}
	for before := range 3 {
		encoded := base64.StdEncoding.EncodeToString([]byte(strings.Repeat("x", before) + secret))
		whole := (before + len(secret)) / 3 * 4
		first := (before + 2) / 3 * 4
		list = append(list, encoded[first:whole])
	}
	return list
}
