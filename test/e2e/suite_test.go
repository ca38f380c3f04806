// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/etcd-operator/etcd-operator/test/harness"
)

const (
	// etcdVersion is what the tests run unless they are about versions.
	etcdVersion = "3.6.16"
	// testTimeout bounds one test; a wait that takes longer has failed.
	testTimeout = 12 * time.Minute
	// cleanupTimeout bounds the removal of all that the tests made.
	cleanupTimeout = 2 * time.Minute
	// podSecurity is the label of a namespace that takes only restricted pods.
	podSecurity = "pod-security.kubernetes.io/enforce"
	// suiteLabel marks the namespaces of the tests.
	suiteLabel = "etcd-operator-e2e"
)

// env is the Kubernetes that the tests run on; TestMain sets it.
var env *harness.Environment

var (
	coreOnly   = flag.Bool("core", false, "run the core suite only")
	rest       = flag.Bool("rest", false, "run what is not in the core suite")
	budget     = flag.Duration("budget", 0, "begin no test after this time; 0: begin all of them")
	oldestOnly = flag.Bool("oldest", false, "run only what runs on the oldest supported Kubernetes")
)

func TestMain(m *testing.M) {
	flag.Parse()
	var err error
	switch {
	case *coreOnly:
		err = flag.Set("test.run", "^("+strings.Join(Core(), "|")+")$")
	case *rest:
		err = flag.Set("test.skip", "^("+strings.Join(Core(), "|")+")$")
	case *oldestOnly:
		err = flag.Set("test.run", "^("+strings.Join(Oldest(), "|")+")$")
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "end-to-end tests:", err)
		os.Exit(1)
	}
	if env, err = harness.Load(); err == nil {
		err = env.IsInstalled()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "end-to-end tests:", err)
		os.Exit(1)
	}
	code := m.Run()
	if err := errors.Join(awaitNoNamespaces(), unusedRights(), env.Close()); err != nil {
		fmt.Fprintln(os.Stderr, "end-to-end tests:", err)
		code = 1
	}
	os.Exit(code)
}

// awaitNoNamespaces waits until the namespaces of the tests no longer exist, which each test
// deletes when it ends: a cluster that cannot be removed is a failure, too.
func awaitNoNamespaces() error {
	ctx, cancel := context.WithTimeout(context.Background(), cleanupTimeout)
	defer cancel()
	selector := suiteLabel + "=" + runName
	list, err := env.Kube.CoreV1().Namespaces().List(ctx, metav1.ListOptions{LabelSelector: selector})
	if err != nil {
		return fmt.Errorf("list what the tests left: %w", err)
	}
	if len(list.Items) == 0 {
		return nil
	}
	_, err = env.Kubectl(ctx, harness.Command{Args: []string{
		"wait", "--for=delete", "namespace", "--selector=" + selector, "--timeout=" + cleanupTimeout.String(),
	}})
	if err != nil {
		return fmt.Errorf("the namespaces of the tests do not go away: %w", err)
	}
	return nil
}

// runName tells the namespaces of this run from those of another run.
var runName = fmt.Sprintf("run-%d", time.Now().Unix())

// scenario is one test in its own namespace.
type scenario struct {
	*testing.T
	// ctx returns the context that ends with the test, or when it takes too long.
	ctx       func() context.Context
	namespace string
}

var notInNames = regexp.MustCompile(`[^a-z0-9]+`)

// start makes the namespace of a test. What is in it is shown if the test fails, and
// then removed.
func start(t *testing.T) *scenario {
	t.Helper()
	return startFor(t, testTimeout)
}

// begun is when this run began.
var begun = time.Now()

// startFor is start for a test that takes longer than others.
func startFor(t *testing.T, timeout time.Duration) *scenario {
	t.Helper()
	if *budget > 0 && time.Since(begun) > *budget {
		t.Skipf("the %v of these tests are over; E2E_BUDGET=0 begins all of them", *budget)
	}
	ctx, cancel := context.WithTimeoutCause(t.Context(), timeout, fmt.Errorf("the test took longer than %v", timeout))
	t.Cleanup(cancel)
	name := strings.Trim(notInNames.ReplaceAllString(strings.ToLower(strings.TrimPrefix(t.Name(), "Test")), "-"), "-")
	return &scenario{T: t, ctx: func() context.Context { return ctx }, namespace: newNamespace(t, "e2e-"+name)}
}

// another returns the same scenario in a second namespace.
func (s *scenario) another(suffix string) *scenario {
	s.Helper()
	return &scenario{T: s.T, ctx: s.ctx, namespace: newNamespace(s.T, strings.TrimSuffix(s.namespace[:min(len(s.namespace), 40)], "-")+"-"+suffix)}
}

// in returns the same scenario for a subtest.
func (s *scenario) in(t *testing.T) *scenario {
	t.Helper()
	return &scenario{T: t, ctx: s.ctx, namespace: s.namespace}
}

func newNamespace(t *testing.T, prefix string) string {
	t.Helper()
	created, err := env.Kube.CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
		GenerateName: prefix[:min(len(prefix), 50)] + "-",
		Labels:       map[string]string{podSecurity: "restricted", suiteLabel: runName},
	}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatalf("make a namespace: %v", err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), cleanupTimeout)
		defer cancel()
		if t.Failed() {
			dump(ctx, t, created.Name)
		}
		if err := env.Kube.CoreV1().Namespaces().Delete(ctx, created.Name, metav1.DeleteOptions{}); err != nil && !apierrors.IsNotFound(err) {
			t.Errorf("delete namespace %s: %v", created.Name, err)
		}
	})
	return created.Name
}

// dump writes what is needed to understand a failure to one file, and shows the end of it.
func dump(ctx context.Context, t *testing.T, namespace string) {
	t.Helper()
	file := filepath.Join(env.Root, "dist", "failures", strings.ReplaceAll(t.Name(), "/", "-")+".txt")
	excerpt, err := env.Dump(ctx, namespace, file)
	if err != nil {
		t.Errorf("write what explains the failure: %v", err)
	}
	t.Logf("objects, events, logs and the timeline are in %s\n%s", file, excerpt)
}

// must ends the test if err is set.
func (s *scenario) must(err error, doing string, args ...any) {
	s.Helper()
	if err != nil {
		s.Fatalf("%s: %v", fmt.Sprintf(doing, args...), err)
	}
}

// kubectl runs kubectl in the namespace of the test; it must succeed.
func (s *scenario) kubectl(args ...string) string {
	s.Helper()
	out, err := env.Kubectl(s.ctx(), harness.Command{Args: append([]string{"-n", s.namespace}, args...)})
	s.must(err, "a user's command")
	return out
}

// rejected runs kubectl, which must fail, and returns its output.
func (s *scenario) rejected(stdin string, args ...string) string {
	s.Helper()
	out, err := env.Kubectl(s.ctx(), harness.Command{Args: append([]string{"-n", s.namespace}, args...), Stdin: stdin})
	if err == nil {
		s.Fatalf("kubectl %s was not rejected: %s", strings.Join(args, " "), out)
	}
	return err.Error()
}

// apply applies a manifest.
func (s *scenario) apply(manifest string) string {
	s.Helper()
	out, err := env.Kubectl(s.ctx(), harness.Command{Args: []string{"-n", s.namespace, "apply", "-f", "-"}, Stdin: manifest})
	s.must(err, "apply\n%s", manifest)
	return out
}

// within returns a context for something that must happen soon.
func (s *scenario) within(d time.Duration) context.Context {
	s.Helper()
	ctx, cancel := context.WithTimeoutCause(s.ctx(), d, fmt.Errorf("not within %v", d))
	s.Cleanup(cancel)
	return ctx
}

// contains fails the test for every one of want that is not in text.
func (s *scenario) contains(text string, want ...string) {
	s.Helper()
	for _, w := range want {
		if !strings.Contains(text, w) {
			s.Errorf("%q is missing in:\n%s", w, text)
		}
	}
}
