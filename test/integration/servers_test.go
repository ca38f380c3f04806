// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/test/servers"
)

// kubeEtcd stores the objects of the kube-apiserver. It is removed after the tests.
type kubeEtcd struct {
	*servers.Process

	endpoint string
}

// startKubeEtcd starts a process of its own. The lock of a file outlives its descriptor until programs that
// were started meanwhile have begun, and an etcd that locks a file again within that time panics.
func (e *environment) startKubeEtcd(ctx context.Context) error {
	port, err := servers.FreePort()
	if err != nil {
		return err
	}
	endpoint, peers := fmt.Sprintf("http://127.0.0.1:%d", port), "unix://"+filepath.Join(e.dir, "kube-etcd.peers")
	process, err := servers.Start(e.dir, "kube-etcd", filepath.Join(e.bin, "etcd"),
		"--data-dir="+filepath.Join(e.dir, "kube-etcd"), "--log-level=fatal", "--unsafe-no-fsync", "--enable-grpc-gateway=false",
		"--listen-client-urls="+endpoint, "--advertise-client-urls="+endpoint,
		"--listen-peer-urls="+peers, "--watch-progress-notify-interval=5s")
	if err != nil {
		return err
	}
	e.kubeEtcd = kubeEtcd{Process: process, endpoint: endpoint}
	return process.WaitReady(ctx, endpoint+"/readyz", func(context.Context) ([]byte, error) { return nil, nil })
}

func (e *environment) startKube(ctx context.Context) error {
	port, err := servers.FreePort()
	if err != nil {
		return err
	}
	issued, err := e.pki.Client.Issue(e.dir, "admin", "admin", "system:masters")
	if err != nil {
		return err
	}
	e.kubePort = port
	e.admin = &rest.Config{
		Host:            fmt.Sprintf("https://127.0.0.1:%d", port),
		TLSClientConfig: rest.TLSClientConfig{CAData: e.pki.Serving.PEM, CertData: issued.Cert, KeyData: issued.Key},
		QPS:             -1,
	}
	return e.restartKube(ctx)
}

// restartKube starts the kube-apiserver where its clients look for it.
func (e *environment) restartKube(ctx context.Context) (err error) {
	args := append(e.pki.KubeAPIServerArgs(e.dir, e.kubePort, e.kubeEtcd.endpoint),
		"--profiling=false",
		"--audit-policy-file="+filepath.Join(e.dir, "audit-policy.yaml"),
		"--audit-log-path="+e.auditLog())
	e.kube, err = servers.Start(e.dir, "kube-apiserver", filepath.Join(e.bin, "kube-apiserver"), args...)
	if err != nil {
		return err
	}
	return e.kube.WaitReady(ctx, e.admin.Host+"/readyz", func(context.Context) ([]byte, error) { return e.pki.Serving.PEM, nil })
}

// install applies the manifests that users apply, but for those that need nodes: a
// Service by name stands for the one that selects pods.
func (e *environment) install(ctx context.Context) error {
	port, err := servers.FreePort()
	if err != nil {
		return err
	}
	e.serverPort = port
	for _, manifest := range []string{"00-namespace.yaml", "10-apiserver-rbac.yaml", "30-apiserver-registration.yaml", "40-user-roles.yaml"} {
		if _, err := e.kubectl(ctx, "apply", "-f", filepath.Join(e.repo, "artifacts", "install", manifest)); err != nil {
			return err
		}
	}
	_, err = e.client.CoreV1().Services(namespace).Create(ctx, &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: serviceName},
		Spec:       corev1.ServiceSpec{Type: corev1.ServiceTypeExternalName, ExternalName: "localhost"},
	}, metav1.CreateOptions{})
	if err != nil {
		return err
	}
	patch := fmt.Sprintf(`{"spec":{"service":{"port":%d}}}`, port)
	_, err = e.apiService.ApiregistrationV1().APIServices().Patch(ctx, apiServiceName, types.MergePatchType, []byte(patch), metav1.PatchOptions{})
	return err
}

func (e *environment) serverProgram() string { return filepath.Join(e.dir, "apiserver") }

func (e *environment) buildServer(ctx context.Context) error {
	// The version is stamped as in a release: see options.useKubernetesVersion.
	return e.build(ctx, "-o", e.serverProgram(), "-ldflags=-X k8s.io/component-base/version.gitVersion=v0.1.0", "./cmd/apiserver")
}

// build compiles a program as a release does. The tests themselves may run with the race
// detector, which needs cgo: with cgo, 2,000 packages would be compiled once more.
func (e *environment) build(ctx context.Context, args ...string) error {
	build := exec.CommandContext(ctx, "go", append([]string{"build"}, args...)...)
	build.Dir, build.Env = e.repo, append(os.Environ(), "CGO_ENABLED=0")
	if output, err := build.CombinedOutput(); err != nil {
		return fmt.Errorf("%w\n%s", err, output)
	}
	return nil
}

// startServer starts our server with an etcd of its own inside.
func (e *environment) startServer(ctx context.Context, args ...string) (err error) {
	e.server, err = e.launch("apiserver", e.serverPort,
		append([]string{"--embedded-etcd-dir=" + filepath.Join(e.dir, "server")}, args...)...)
	if err != nil {
		return err
	}
	return e.server.WaitReady(ctx, e.serverURL()+"/readyz", e.serverTrust)
}

// objectLimit is how many objects of one kind a tenant may have, so that a test reaches it soon.
const objectLimit = 200

// launch starts our program with the rights of its ServiceAccount and no more.
func (e *environment) launch(name string, port int, args ...string) (*servers.Process, error) {
	config, err := e.configFor(serverUser, "system:serviceaccounts", "system:serviceaccounts:"+namespace)
	if err != nil {
		return nil, err
	}
	kubeconfig, err := e.writeKubeconfig("server", config)
	if err != nil {
		return nil, err
	}
	return servers.Start(e.dir, name, e.serverProgram(), append([]string{
		"--bind-address=127.0.0.1",
		fmt.Sprintf("--secure-port=%d", port),
		"--serving-cert-namespace=" + namespace,
		"--kubeconfig=" + kubeconfig,
		"--authentication-kubeconfig=" + kubeconfig,
		"--authorization-kubeconfig=" + kubeconfig,
		"--shutdown-delay-duration=0s",
		"--namespace-object-limit=" + strconv.Itoa(objectLimit),
		"-v=2",
	}, args...)...)
}

func (e *environment) serverURL() string { return fmt.Sprintf("https://127.0.0.1:%d", e.serverPort) }

// serverTrust returns what the APIService says about our server's certificate.
func (e *environment) serverTrust(ctx context.Context) ([]byte, error) {
	registered, err := e.apiService.ApiregistrationV1().APIServices().Get(ctx, apiServiceName, metav1.GetOptions{})
	if err != nil {
		return nil, err
	}
	return registered.Spec.CABundle, nil
}

// killServer ends our server the hard way.
func (e *environment) killServer() error {
	return e.server.Stop(syscall.SIGKILL, 10*time.Second)
}

// waitRegistered returns when the kube-apiserver serves the group through us.
func (e *environment) waitRegistered(ctx context.Context) error {
	var last string
	err := wait.PollUntilContextCancel(ctx, servers.PollInterval, true, func(ctx context.Context) (bool, error) {
		registered, err := e.apiService.ApiregistrationV1().APIServices().Get(ctx, apiServiceName, metav1.GetOptions{})
		if err != nil {
			return false, err
		}
		for _, condition := range registered.Status.Conditions {
			if condition.Type == apiregistrationv1.Available {
				last = condition.Message
				if condition.Status != apiregistrationv1.ConditionTrue {
					return false, nil
				}
			}
		}
		_, err = e.etcd.EtcdV1beta2().EtcdClusters("default").List(ctx, metav1.ListOptions{Limit: 1})
		if apierrors.IsServiceUnavailable(err) || apierrors.IsNotFound(err) {
			return false, nil
		}
		if err != nil {
			return false, err
		}
		// An older kube-apiserver learns the schemas a moment later; kubectl needs them.
		last = "its schemas are not published"
		schemas, err := e.client.Discovery().OpenAPIV3().Paths()
		return schemas["apis/"+v1beta2.SchemeGroupVersion.String()] != nil, err
	})
	if err != nil {
		return fmt.Errorf("%w (last: %s)\n%s", err, last, e.server.Tail())
	}
	return nil
}

// kubectl runs kubectl as the administrator and returns what it prints.
func (e *environment) kubectl(ctx context.Context, args ...string) (string, error) {
	return e.kubectlWith(ctx, nil, "", args...)
}

func (e *environment) kubectlWith(ctx context.Context, environ []string, input string, args ...string) (string, error) {
	command := exec.CommandContext(ctx, filepath.Join(e.bin, "kubectl"), args...)
	command.Env = append(os.Environ(), "KUBECONFIG="+e.kubeconfig, "HOME="+e.dir)
	command.Env = append(command.Env, environ...)
	command.Stdin = bytes.NewBufferString(input)
	output, err := command.CombinedOutput()
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) {
		err = fmt.Errorf("kubectl %v: %w: %s", args, err, output)
	}
	return string(output), err
}
