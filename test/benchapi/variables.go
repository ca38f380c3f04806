// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	"sigs.k8s.io/yaml"
)

// errNoVariable means that the manifest does not look as expected.
var errNoVariable = errors.New("the Deployment of the API server does not set it; name a value")

// variables are the environment variables of the API server by which Go collects garbage. The
// kube-apiserver has the defaults of Go.
type variables struct {
	memoryLimit string
	// gogc is empty for what the program sets itself.
	gogc string
}

func (v *variables) addFlags() {
	flag.StringVar(&v.memoryLimit, "memory-limit", "", "GOMEMLIMIT of the API server; empty for that of artifacts/install")
	flag.StringVar(&v.gogc, "gogc", "", "GOGC of the API server; empty for what it sets itself")
}

// complete sets GOMEMLIMIT to the value of artifacts/install if it is empty.
func (v *variables) complete(repository string) (err error) {
	if v.memoryLimit == "" {
		v.memoryLimit, err = installedVariable(repository, "GOMEMLIMIT")
	}
	return err
}

// list returns the variables as a process gets them.
func (v *variables) list() []string {
	all := []string{"GOMEMLIMIT=" + v.memoryLimit}
	if v.gogc != "" {
		all = append(all, "GOGC="+v.gogc)
	}
	return all
}

// installedVariable returns an environment variable of the API server in artifacts/install.
func installedVariable(repository, name string) (string, error) {
	content, err := os.ReadFile(filepath.Join(repository, "artifacts", "install", "20-apiserver.yaml"))
	if err != nil {
		return "", err
	}
	for document := range strings.SplitSeq(string(content), "\n---\n") {
		var deployment appsv1.Deployment
		if err := yaml.Unmarshal([]byte(document), &deployment); err != nil {
			return "", err
		}
		for _, container := range deployment.Spec.Template.Spec.Containers {
			for _, variable := range container.Env {
				if variable.Name == name {
					return variable.Value, nil
				}
			}
		}
	}
	return "", fmt.Errorf("%s: %w", name, errNoVariable)
}
