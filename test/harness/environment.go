// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package harness

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/generated/clientset/versioned"
)

// Where the installed programs run.
const (
	SystemNamespace = "etcd-operator-system"
	Controller      = "etcd-operator-controller"
	APIServer       = "etcd-operator-apiserver"
)

// Environment is the Kubernetes that tests run on: the local one, or any other.
type Environment struct {
	// Kubeconfig of its administrator.
	Kubeconfig string
	// Bin is the directory of kubectl and etcdctl; without it they are found on the PATH.
	Bin string
	// Local is the program that runs the local Kubernetes; "" on any other cluster.
	Local string
	// Root of the repository.
	Root string

	Config *rest.Config
	Kube   kubernetes.Interface
	Etcd   versioned.Interface

	forwards forwards
	plugin   pluginBuild
}

// LoadLocal is Load for a program that needs the local Kubernetes. Target is the make target
// that brings it up and runs the program.
func LoadLocal(target string) (*Environment, error) {
	e, err := Load()
	if err == nil && !e.IsLocal() {
		err = fmt.Errorf("ETCD_OPERATOR_LOCAL is not set: run `make %s`, which brings up a local Kubernetes and sets it", target)
	}
	return e, err
}

// Load reads which cluster to use from the environment: KUBECONFIG names any cluster. The
// make targets set ETCD_OPERATOR_LOCAL if that is the local Kubernetes, and ETCD_OPERATOR_BIN
// to the folder of its programs.
func Load() (*Environment, error) {
	e := &Environment{}
	for _, v := range []struct {
		name string
		into *string
		must bool
	}{
		{"KUBECONFIG", &e.Kubeconfig, true},
		{"ETCD_OPERATOR_BIN", &e.Bin, false},
		{"ETCD_OPERATOR_LOCAL", &e.Local, false},
	} {
		*v.into = os.Getenv(v.name)
		if *v.into == "" && !v.must {
			continue
		}
		if *v.into == "" {
			return nil, fmt.Errorf("%s is not set: set it to the kubeconfig of a cluster for tests, or run `make e2e`, which brings up a local Kubernetes", v.name)
		}
		if _, err := os.Stat(*v.into); err != nil {
			return nil, fmt.Errorf("read %s: %w", v.name, err)
		}
	}
	if _, err := exec.LookPath(e.program("kubectl")); err != nil {
		return nil, fmt.Errorf("find kubectl: %w; install it, or set ETCD_OPERATOR_BIN to its directory", err)
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

// program returns how to call a program: its path in Bin, or its name.
func (e *Environment) program(name string) string {
	if e.Bin == "" {
		return name
	}
	return filepath.Join(e.Bin, name)
}

// IsInstalled returns an error unless the cluster serves the API of the operator.
func (e *Environment) IsInstalled() error {
	if _, err := e.Etcd.Discovery().ServerResourcesForGroupVersion(v1beta2.SchemeGroupVersion.String()); err != nil {
		return fmt.Errorf("the cluster does not serve %s: %w; install the operator first: kubectl apply -k artifacts/install", v1beta2.SchemeGroupVersion, err)
	}
	return nil
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
