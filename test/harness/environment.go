// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package harness

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/etcd-operator/etcd-operator/pkg/generated/clientset/versioned"
)

// Where the installed programs run.
const (
	SystemNamespace = "etcd-operator-system"
	Controller      = "etcd-operator-controller"
	APIServer       = "etcd-operator-apiserver"
)

// Environment is the local Kubernetes that tests run on.
type Environment struct {
	// Kubeconfig of its administrator.
	Kubeconfig string
	// Bin is the directory of kubectl and etcdctl.
	Bin string
	// Local is the program that runs the local Kubernetes.
	Local string
	// Root of the repository.
	Root string

	Config *rest.Config
	Kube   kubernetes.Interface
	Etcd   versioned.Interface
}

// Load finds the environment that the make targets set up. Target is the one to
// name if there is none.
func Load(target string) (*Environment, error) {
	e := &Environment{}
	for _, v := range []struct {
		name string
		into *string
	}{
		{"KUBECONFIG", &e.Kubeconfig},
		{"ETCD_OPERATOR_BIN", &e.Bin},
		{"ETCD_OPERATOR_LOCAL", &e.Local},
	} {
		*v.into = os.Getenv(v.name)
		if *v.into == "" {
			return nil, fmt.Errorf("%s is not set: run `make %s`, which brings up a local Kubernetes and sets it", v.name, target)
		}
		if _, err := os.Stat(*v.into); err != nil {
			return nil, fmt.Errorf("%s: %w; run `make %s`, which brings up a local Kubernetes", v.name, err, target)
		}
	}
	var err error
	if e.Root, err = findRoot(); err != nil {
		return nil, err
	}
	if e.Config, err = clientcmd.BuildConfigFromFlags("", e.Kubeconfig); err != nil {
		return nil, fmt.Errorf("read KUBECONFIG: %w", err)
	}
	// Tests run side by side on one client; the server's own limits are enough.
	e.Config.QPS = -1
	if e.Kube, err = kubernetes.NewForConfig(e.Config); err != nil {
		return nil, fmt.Errorf("make a client: %w", err)
	}
	if e.Etcd, err = versioned.NewForConfig(e.Config); err != nil {
		return nil, fmt.Errorf("make a client: %w", err)
	}
	return e, nil
}

// Artifact returns the path of a file below artifacts/.
func (e *Environment) Artifact(parts ...string) string {
	return filepath.Join(append([]string{e.Root, "artifacts"}, parts...)...)
}

func findRoot() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", fmt.Errorf("find the repository: %w", err)
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "artifacts", "install")); err == nil {
			return dir, nil
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			return "", errors.New("find the repository: no directory above has artifacts/install")
		}
		dir = parent
	}
}
