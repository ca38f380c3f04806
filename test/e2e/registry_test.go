// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/crypto/bcrypt"
	corev1 "k8s.io/api/core/v1"

	"github.com/etcd-operator/etcd-operator/pkg/resources"
	"github.com/etcd-operator/etcd-operator/test/harness"
)

const (
	// registryImage is the server of the registry; hack/local builds it.
	registryImage = "docker.io/library/registry:local"
	registryPort  = "5000"
	// mirror is the registry as nodes see it: on loopback, where they speak HTTP.
	mirror = "127.0.0.1:" + registryPort + "/mirror"
)

const registryManifest = `apiVersion: v1
kind: ConfigMap
metadata:
  name: registry
data:
  config.yml: |
    version: 0.1
    storage: {filesystem: {rootdirectory: /data}}
    http: {addr: ":%[1]s"}
    auth: {htpasswd: {realm: mirror, path: /auth/htpasswd}}
---
apiVersion: v1
kind: Pod
metadata:
  name: registry
spec:
  hostNetwork: true
  nodeName: %[2]s
  automountServiceAccountToken: false
  terminationGracePeriodSeconds: 0
  containers:
  - name: registry
    image: %[3]s
    imagePullPolicy: Never
    command: [/registry, serve, /config/config.yml]
    env: [{name: OTEL_TRACES_EXPORTER, value: none}]
    readinessProbe: {tcpSocket: {port: %[1]s}, periodSeconds: 1}
    volumeMounts: [{name: config, mountPath: /config}, {name: auth, mountPath: /auth}, {name: data, mountPath: /data}]
  volumes: [{name: config, configMap: {name: registry}}, {name: auth, secret: {secretName: htpasswd}}, {name: data, emptyDir: {}}]
`

// registry runs a registry that asks for a password on a node, in a namespace that lets it
// use the network of the node.
func (s *scenario) registry(node string) harness.Registry {
	s.Helper()
	archive := filepath.Join(s.TempDir(), "registry.tar")
	program := filepath.Join(env.Bin, "registry")
	for _, args := range [][]string{
		{"build", "registry"},
		{"image", "--ref", registryImage, "--out", archive, program + "=/registry"},
		{"load", archive},
	} {
		if args[0] == "image" {
			built, err := filepath.EvalSymlinks(program)
			s.must(err, "find the registry")
			args[len(args)-1] = built + "=/registry"
		}
		_, err := env.LocalTool(s.ctx(), args...)
		s.must(err, "bring the registry to the nodes")
	}
	other := s.another("registry")
	other.kubectl("label", "namespace", other.namespace, "--overwrite", podSecurity+"=privileged")
	r := harness.Registry{Username: "puller", Password: "secret-of-the-mirror"}
	hash, err := bcrypt.GenerateFromPassword([]byte(r.Password), bcrypt.MinCost)
	s.must(err, "hash the password")
	other.kubectl("create", "secret", "generic", "htpasswd", "--from-literal=htpasswd="+r.Username+":"+string(hash))
	other.apply(fmt.Sprintf(registryManifest, registryPort, node, registryImage))
	view, err := env.Pod(s.ctx(), other.namespace, "registry")
	s.must(err, "watch the registry")
	defer view.Close()
	s.must(view.Await(s.ctx(), harness.AllReady(1)), "the registry to be ready")
	r.Address = net.JoinHostPort(view.List()[0].Status.PodIP, registryPort)
	return r
}

// push puts the image of a version of etcd into the mirror, and that of the agent.
func (s *scenario) push(r harness.Registry, versions ...string) (digests map[string]string) {
	s.Helper()
	digests = map[string]string{}
	cache := os.Getenv("ETCD_OPERATOR_CACHE")
	for _, version := range versions {
		digest, err := r.Push(s.ctx(), filepath.Join(cache, "images", "etcd-"+version+".tar"), "mirror/coreos/etcd", "v"+version)
		s.must(err, "push etcd %s", version)
		digests[version] = digest
	}
	d, err := env.Program(s.ctx(), harness.Controller)
	s.must(err, "read the controller's deployment")
	_, tag, _ := strings.Cut(d.Spec.Template.Spec.Containers[0].Image, ":")
	digest, err := r.Push(s.ctx(), filepath.Join(env.Root, "dist", "etcd-operator.tar"), "mirror/etcd-operator/etcd-operator", tag)
	s.must(err, "push the agent")
	digests["agent"] = digest
	return digests
}

// logIn makes the pull secret.
func (s *scenario) logIn(r harness.Registry, name string) {
	s.Helper()
	s.kubectl("create", "secret", "docker-registry", name, "--docker-server=127.0.0.1:"+registryPort, "--docker-username="+r.Username, "--docker-password="+r.Password)
}

// remember watches the pods of the namespace and collects what is true of any of them.
func (s *scenario) remember(what func(*corev1.Pod) []string) (seen func() map[string]bool) {
	s.Helper()
	ctx, cancel := context.WithCancel(s.ctx())
	s.Cleanup(cancel)
	view, err := env.Pods(ctx, s.namespace, "")
	s.must(err, "watch pods")
	all, done := map[string]bool{}, make(chan struct{})
	go func() {
		defer close(done)
		_ = view.Await(ctx, func(pods []*corev1.Pod) bool { // it ends with ctx
			for _, p := range pods {
				for _, one := range what(p) {
					all[one] = true
				}
			}
			return false
		})
	}()
	return func() map[string]bool {
		cancel()
		<-done
		view.Close()
		return all
	}
}

// watchImages remembers the images of all pods that there ever are.
func (s *scenario) watchImages() (images func() map[string]bool) {
	s.Helper()
	return s.remember(func(p *corev1.Pod) (images []string) {
		for _, list := range [][]corev1.Container{p.Spec.InitContainers, p.Spec.Containers} {
			for i := range list {
				images = append(images, list[i].Image)
			}
		}
		return images
	})
}

// kubectlLater runs kubectl when the test has ended.
func (s *scenario) kubectlLater(args ...string) {
	ctx, cancel := context.WithTimeout(context.Background(), cleanupTimeout)
	defer cancel()
	if _, err := env.Kubectl(ctx, harness.Command{Args: args}); err != nil {
		s.Errorf("clean up: %v", err)
	}
}

// TestAirGapped has all images in one registry that asks for a password. A cluster, a
// backup that is proved, and a restore need no other one, and nothing without the pull
// secret. Another registry later restarts no member.
func TestAirGapped(t *testing.T) {
	env.RequireLocal(t, harness.NodeImages)
	s := startFor(t, 2*testTimeout)
	nodes, err := env.ReadyNodes(s.ctx())
	s.must(err, "list the nodes")
	r := s.registry(nodes[0])
	// Nodes reach the registry on their own loopback, so the pods of Jobs go to its node.
	if others := nodes[1:]; len(others) > 0 {
		s.uncordonLater(others...)
		s.kubectl(append([]string{"cordon"}, others...)...)
	}
	digests := s.push(r, etcdVersion)
	s.stopInstalledController()
	s.volume()
	onNode := "\n  pod: {nodeSelector: {kubernetes.io/hostname: " + nodes[0] + "}}"
	images := s.watchImages()
	first := s.controller("airgapped", "--image-registry="+mirror, "--image-pull-secrets=mirror",
		"--agent-image="+resources.DefaultAgentRepository+"@"+digests["agent"])

	s.apply(manifest("mirrored", 1, etcdVersion, onNode))
	c := s.cluster("mirrored")
	c.awaitWaiting("ImagePullBackOff", "ErrImagePull")
	s.logIn(r, "mirror")
	c.settle(1)
	data := c.fill()
	s.apply(backupManifest("saved", "  etcdCluster: {name: mirrored}\n  verify: Restore"+toVolume))
	s.awaitBackup(s.ctx(), "saved", "success", hasSucceeded)
	c.spoil(data)
	s.apply(restoreManifest("back", "mirrored", "  backup: {name: saved}"))
	s.restored("back")
	c.settle(1)
	c.holds(data)
	for image := range images() {
		if !strings.HasPrefix(image, mirror+"/") {
			t.Errorf("image %s is not from the mirror", image)
		}
	}

	pinned := s.create("pinned", 1, etcdVersion, onNode, "\n  imageDigest: "+digests[etcdVersion])
	if want, got := mirror+"/coreos/etcd:v"+etcdVersion+"@"+digests[etcdVersion], pinned.members.Live()[0].Spec.Containers[0].Image; got != want {
		t.Errorf("the image is %s, not %s", got, want)
	}
	s.contains(s.rejected("", "patch", "etcd", "pinned", "--type=merge", "-p", `{"spec":{"version":"3.6.17"}}`), "spec.imageDigest", "remove spec.imageDigest")

	pods := c.uids()
	first.kill()
	s.controller("airgapped-again", "--image-registry=elsewhere.example.com")
	s.apply(manifest("touched", 1, etcdVersion, onNode))
	other := s.cluster("touched")
	other.awaitWaiting("ImagePullBackOff", "ErrImagePull")
	c.same(c.ids(), pods, true)
	c.holds(data)
}

// awaitWaiting waits until a member does not start for one of these reasons.
func (c *cluster) awaitWaiting(reasons ...string) {
	c.Helper()
	c.must(c.members.Pods.Await(c.ctx(), func(pods []*corev1.Pod) bool {
		return slices.ContainsFunc(pods, func(p *corev1.Pod) bool {
			for i := range p.Status.ContainerStatuses {
				if w := p.Status.ContainerStatuses[i].State.Waiting; w != nil && slices.Contains(reasons, w.Reason) {
					return true
				}
			}
			return false
		})
	}), "a member of %s to wait for its image", c.name)
}
