// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/blang/semver/v4"
	"github.com/operator-framework/api/pkg/manifests"
	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/operator-framework/api/pkg/validation"
	validationerrors "github.com/operator-framework/api/pkg/validation/errors"
	validator "github.com/operator-framework/api/pkg/validation/interfaces"
	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/yaml"
)

const (
	root      = "../.."
	csvFile   = "manifests/etcd-operator.clusterserviceversion.yaml"
	apiServer = "etcd-operator-apiserver"
)

var tested = release{
	version:       semver.MustParse("1.2.3"),
	image:         "quay.io/etcd-operator/etcd-operator@sha256:" + strings.Repeat("0", 64),
	created:       time.Unix(0, 0),
	architectures: []string{"amd64", "arm64"},
}

var madeOnce = sync.OnceValues(func() (map[string][]byte, error) { return bundle(root, tested) })

func made(t *testing.T) map[string][]byte {
	t.Helper()
	files, err := madeOnce()
	if err != nil {
		t.Fatal(err)
	}
	return maps.Clone(files)
}

// validators are those of OLM and of OperatorHub. Left out are those for other formats, deprecated ones, and the one that
// pulls images.
var validators = validator.Validators{
	validation.ClusterServiceVersionValidator, validation.CustomResourceDefinitionValidator, validation.BundleValidator,
	validation.ObjectValidator, validation.OperatorHubV2Validator, validation.StandardCategoriesValidator,
	validation.StandardCapabilitiesValidator, validation.AlphaDeprecatedAPIsValidator, validation.GoodPracticesValidator,
}

func parse[T any](t *testing.T, files map[string][]byte, name string) *T {
	t.Helper()
	object := new(T)
	if err := yaml.UnmarshalStrict(files[name], object); err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return object
}

// findings returns what the validators report.
func findings(t *testing.T, files map[string][]byte) []validationerrors.Error {
	t.Helper()
	directory := t.TempDir()
	if err := write(directory, files); err != nil {
		t.Fatal(err)
	}
	loaded, err := manifests.GetBundleFromDir(filepath.Join(directory, "manifests"))
	if err != nil {
		t.Fatal(err)
	}
	loaded.Channels = []string{annotations(tested.version)["operators.operatorframework.io.bundle.channels.v1"]}
	var found []validationerrors.Error
	for _, result := range validators.Validate(loaded.ObjectsToValidate()...) {
		found = append(append(found, result.Errors...), result.Warnings...)
	}
	return found
}

func TestValidators(t *testing.T) {
	t.Parallel()
	for _, found := range findings(t, made(t)) {
		// The project has no icon.
		if found.Level != validationerrors.LevelWarn || !strings.HasSuffix(found.Error(), "csv.Spec.Icon not specified") {
			t.Errorf("%s: %v", found.Level, found)
		}
	}
}

// TestValidatorsFindMistakes changes the ClusterServiceVersion so that each change is a mistake.
func TestValidatorsFindMistakes(t *testing.T) {
	t.Parallel()
	for name, mistake := range map[string]struct{ old, new string }{
		"no supported install mode": {"supported: true", "supported: false"},
		"example of another kind":   {`"kind": "EtcdBackup"`, `"kind": "EtcdBackups"`},
		"unknown capability":        {"capabilities: Deep Insights", "capabilities: All"},
		"no version":                {"version: 1.2.3", "version: 0.0.0"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			files := made(t)
			changed := bytes.ReplaceAll(files[csvFile], []byte(mistake.old), []byte(mistake.new))
			if bytes.Equal(changed, files[csvFile]) {
				t.Fatalf("the ClusterServiceVersion has no %q", mistake.old)
			}
			files[csvFile] = changed
			if !slices.ContainsFunc(findings(t, files), func(e validationerrors.Error) bool { return e.Level == validationerrors.LevelError }) {
				t.Error("no validator reports an error")
			}
		})
	}
}

// TestFiles names the files of a bundle, so that a change of artifacts shows what it changes for OLM.
func TestFiles(t *testing.T) {
	t.Parallel()
	want := []string{
		"bundle.Dockerfile",
		"manifests/etcd-operator-apiserver-read-tls_rbac.authorization.k8s.io_v1_clusterrole.yaml",
		"manifests/etcd-operator-apiserver_policy_v1_poddisruptionbudget.yaml",
		"manifests/etcd-operator-controller-lease_rbac.authorization.k8s.io_v1_role.yaml",
		"manifests/etcd-operator-controller-lease_rbac.authorization.k8s.io_v1_rolebinding.yaml",
		"manifests/etcd-operator-controller_policy_v1_poddisruptionbudget.yaml",
		"manifests/etcd-operator-edit_rbac.authorization.k8s.io_v1_clusterrole.yaml",
		"manifests/etcd-operator-exceed-rate_rbac.authorization.k8s.io_v1_clusterrole.yaml",
		"manifests/etcd-operator-exceed_rbac.authorization.k8s.io_v1_clusterrole.yaml",
		"manifests/etcd-operator-recover_rbac.authorization.k8s.io_v1_clusterrole.yaml",
		"manifests/etcd-operator-restore_rbac.authorization.k8s.io_v1_clusterrole.yaml",
		"manifests/etcd-operator-snapshot_rbac.authorization.k8s.io_v1_clusterrole.yaml",
		"manifests/etcd-operator-view_rbac.authorization.k8s.io_v1_clusterrole.yaml",
		csvFile,
		"manifests/etcd-operator_scheduling.k8s.io_v1_priorityclass.yaml",
		"metadata/annotations.yaml",
	}
	files := made(t)
	if got := slices.Sorted(maps.Keys(files)); !slices.Equal(got, want) {
		t.Errorf("files:\n%s\nwant:\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	second, err := bundle(root, tested)
	if err != nil {
		t.Fatal(err)
	}
	for name, again := range second {
		if !bytes.Equal(files[name], again) {
			t.Errorf("%s differs between two runs", name)
		}
	}
	binding := parse[rbacv1.RoleBinding](t, files, "manifests/etcd-operator-controller-lease_rbac.authorization.k8s.io_v1_rolebinding.yaml")
	if binding.Namespace != "" || binding.Subjects[0].Namespace != "" {
		t.Errorf("the binding is for one namespace, and OLM may install into another: %+v", binding)
	}
}

// TestServedAPI checks what OLM needs in order to create the Service, the certificate and the APIService.
func TestServedAPI(t *testing.T) {
	t.Parallel()
	files := made(t)
	csv := parse[v1alpha1.ClusterServiceVersion](t, files, csvFile)
	var served []string
	for _, owned := range csv.Spec.APIServiceDefinitions.Owned {
		if owned.GetName() != "v1beta2.etcd.database.coreos.com" || owned.DeploymentName != apiServer || owned.ContainerPort != 8443 {
			t.Errorf("owned: %+v", owned)
		}
		served = append(served, owned.Name)
	}
	view := parse[rbacv1.ClusterRole](t, files, "manifests/etcd-operator-view_rbac.authorization.k8s.io_v1_clusterrole.yaml")
	if slices.Sort(served); !slices.Equal(served, slices.Sorted(slices.Values(view.Rules[0].Resources))) {
		t.Errorf("owned are %v, and the role view has %v", served, view.Rules[0].Resources)
	}
}

// TestPrograms checks that both programs run with rights, with the image of the release, with flags that exist, and as
// the user that OpenShift chooses.
func TestPrograms(t *testing.T) {
	t.Parallel()
	reference, err := os.ReadFile(filepath.Join(root, "docs", "reference", "flags.md"))
	if err != nil {
		t.Fatal(err)
	}
	strategy := parse[v1alpha1.ClusterServiceVersion](t, made(t), csvFile).Spec.InstallStrategy.StrategySpec
	if len(strategy.DeploymentSpecs) != 2 || len(strategy.ClusterPermissions) != 2 || len(strategy.Permissions) != 0 {
		t.Fatalf("%d Deployments, %d and %d permissions", len(strategy.DeploymentSpecs), len(strategy.ClusterPermissions), len(strategy.Permissions))
	}
	for _, d := range strategy.DeploymentSpecs {
		pod := d.Spec.Template.Spec
		if !slices.ContainsFunc(strategy.ClusterPermissions, func(p v1alpha1.StrategyDeploymentPermissions) bool {
			return p.ServiceAccountName == pod.ServiceAccountName && len(p.Rules) > 0
		}) {
			t.Errorf("%s: ServiceAccount %q has no rights", d.Name, pod.ServiceAccountName)
		}
		if s := pod.SecurityContext; s.RunAsUser != nil || s.RunAsGroup != nil || s.FSGroup != nil || !*s.RunAsNonRoot {
			t.Errorf("%s: %+v", d.Name, s)
		}
		if *d.Spec.Replicas != 2 || pod.Containers[0].Image != tested.image {
			t.Errorf("%s: %d of %s", d.Name, *d.Spec.Replicas, pod.Containers[0].Image)
		}
		for _, argument := range pod.Containers[0].Args {
			flag, _, _ := strings.Cut(argument, "=")
			if !bytes.Contains(reference, []byte("| `"+flag+"` |")) {
				t.Errorf("%s: the reference has no flag %s", d.Name, flag)
			}
		}
		if has := slices.Contains(pod.Containers[0].Args, "--tls-cert-file=/apiserver.local.config/certificates/apiserver.crt"); has != (d.Name == apiServer) {
			t.Errorf("%s: %v", d.Name, pod.Containers[0].Args)
		}
	}
	for _, p := range strategy.ClusterPermissions {
		for _, rule := range p.Rules {
			if slices.Contains(rule.APIGroups, "apiregistration.k8s.io") {
				t.Errorf("%s may change APIServices: %v", p.ServiceAccountName, rule)
			}
		}
	}
}

func TestAnnotations(t *testing.T) {
	t.Parallel()
	files := made(t)
	metadata := parse[struct {
		Annotations map[string]string `json:"annotations"`
	}](t, files, "metadata/annotations.yaml").Annotations
	for key, value := range metadata {
		if !bytes.Contains(files["bundle.Dockerfile"], []byte("LABEL "+key+"="+value+"\n")) {
			t.Errorf("bundle.Dockerfile has no label %s=%s", key, value)
		}
	}
	if channel := annotations(semver.MustParse("1.2.0-rc.1"))["operators.operatorframework.io.bundle.channels.v1"]; channel != "preview" {
		t.Errorf("a release candidate is in the channel %s", channel)
	}
	csv := parse[v1alpha1.ClusterServiceVersion](t, files, csvFile)
	if csv.Spec.MinKubeVersion != "1.32.0" || !regexp.MustCompile(`etcd:v\d+\.\d+\.\d+$`).MatchString(csv.Spec.RelatedImages[1].Image) {
		t.Errorf("read from the chart: Kubernetes %s, %s", csv.Spec.MinKubeVersion, csv.Spec.RelatedImages[1].Image)
	}
}

func TestSkipRange(t *testing.T) {
	t.Parallel()
	for version, want := range map[string]string{
		"0.1.0": ">=0.0.0 <0.1.0", "0.3.2": ">=0.2.0 <0.3.2", "1.2.0-rc.1": ">=1.1.0 <1.2.0-rc.1",
	} {
		if got, err := skipRange(semver.MustParse(version)); err != nil || got != want {
			t.Errorf("%s: %s, %v; want %s", version, got, err, want)
		}
	}
	if got, err := skipRange(semver.MustParse("1.0.1")); !errors.Is(err, errMajor) {
		t.Errorf("1.0.1: %s, %v", got, err)
	}
}

// TestWhatOLMCannotInstall adds objects to the kustomization.
func TestWhatOLMCannotInstall(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		object string
		want   error
	}{
		"kind":            {"apiVersion: apps/v1\nkind: StatefulSet\nmetadata: {name: x, namespace: etcd-operator-system}\n", errKind},
		"other namespace": {"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: x, namespace: kube-system}\n", errBinding},
		"role of Kubernetes": {"apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRoleBinding\nmetadata: {name: x}\n" +
			"roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: view}\n" +
			"subjects: [{kind: ServiceAccount, name: etcd-operator-controller, namespace: etcd-operator-system}]\n", errBinding},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			own, err := filepath.EvalSymlinks(t.TempDir())
			if err != nil {
				t.Fatal(err)
			}
			here, err := filepath.Abs(".")
			if err != nil {
				t.Fatal(err)
			}
			relative, err := filepath.Rel(own, here)
			if err != nil {
				t.Fatal(err)
			}
			if err := write(filepath.Join(own, "more"), map[string][]byte{
				"kustomization.yaml": []byte("resources: [../" + relative + ", more.yaml]\n"), "more.yaml": []byte(test.object),
			}); err != nil {
				t.Fatal(err)
			}
			if _, err := read(filepath.Join(own, "more")); !errors.Is(err, test.want) {
				t.Errorf("%v, want %v", err, test.want)
			}
		})
	}
}
