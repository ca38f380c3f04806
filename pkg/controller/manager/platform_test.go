// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"errors"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/pflag"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/etcd-operator/etcd-operator/pkg/resources"
)

// groups are the API groups that are served.
type groups struct {
	names []string
	err   error
}

func (g groups) ServerGroups() (*metav1.APIGroupList, error) {
	list := &metav1.APIGroupList{}
	for _, name := range g.names {
		list.Groups = append(list.Groups, metav1.APIGroup{Name: name})
	}
	return list, g.err
}

func parsed(t *testing.T, args ...string) *Options {
	t.Helper()
	o := NewOptions()
	flags := pflag.NewFlagSet("", pflag.ContinueOnError)
	o.AddFlags(flags)
	if err := flags.Parse(args); err != nil {
		t.Fatal(err)
	}
	return o
}

func TestUserOfPods(t *testing.T) {
	t.Parallel()
	openShift, plain, down := groups{names: []string{"apps", openShiftSecurity}}, groups{names: []string{"apps", "route.openshift.io"}}, groups{err: errors.New("down")}
	for _, test := range []struct {
		user       string
		api        groups
		namespaced bool
		fails      bool
	}{
		{"auto", openShift, true, false},
		{"auto", plain, false, false},
		{"auto", down, false, true},
		{"fixed", openShift, false, false},
		{"fixed", down, false, false},
		{"namespace", plain, true, false},
		{"namespace", down, true, false},
	} {
		p, err := parsed(t, "--pod-user="+test.user).platform(test.api)
		if p.UserOfNamespace != test.namespaced && !test.fails || (err != nil) != test.fails {
			t.Errorf("--pod-user=%s with %v: %t, %v", test.user, test.api, p.UserOfNamespace, err)
		}
	}
}

func TestPlatformFlags(t *testing.T) {
	t.Parallel()
	o := parsed(t, "--image-registry=registry.example.com:5000/mirror", "--image-pull-secrets=a,b", "--image-architectures=s390x")
	if err := o.Complete(); err != nil {
		t.Fatal(err)
	}
	want := resources.Platform{ImageRegistry: "registry.example.com:5000/mirror", ImagePullSecrets: []string{"a", "b"}, Architectures: []string{"s390x"}}
	if diff := cmp.Diff(want, o.Platform); diff != "" {
		t.Error(diff)
	}
	if built := parsed(t).Platform.Architectures; !slices.Contains(built, runtime.GOARCH) {
		t.Errorf("the agent's own architecture is not among %v", built)
	}
	if all := parsed(t, "--image-architectures=").Platform.Architectures; len(all) != 0 {
		t.Errorf("every architecture is %q", all)
	}
	for _, right := range []string{"registry.example.com", "127.0.0.1:5000/mirror", "[fd00::1]:5000/a/b-c", "r/a.b_c/"} {
		if err := parsed(t, "--image-registry="+right).Complete(); err != nil {
			t.Errorf("%s: %v", right, err)
		}
	}
	for _, wrong := range []string{
		"--image-registry=https://registry.example.com", "--image-registry=registry.example.com/a:tag", "--image-registry=/a", "--image-registry=r/A",
		"--image-registry=r/a@sha256:1", "--image-pull-secrets=a_b", "--image-pull-secrets=a,,b", "--image-architectures=amd64, arm64", "--pod-user=root",
	} {
		name, _, _ := strings.Cut(wrong, "=")
		if err := parsed(t, wrong).Complete(); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v", wrong, err)
		}
	}
}
