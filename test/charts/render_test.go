// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package charts

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"helm.sh/helm/v4/pkg/chart/common"
	"helm.sh/helm/v4/pkg/chart/common/util"
	chart "helm.sh/helm/v4/pkg/chart/v2"
	"helm.sh/helm/v4/pkg/chart/v2/loader"
	"helm.sh/helm/v4/pkg/engine"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

const (
	root         = "../.."
	operator     = "etcd-operator"
	cluster      = "etcd-cluster"
	namespace    = "etcd-operator-system"
	apiServer    = "Deployment/etcd-operator-system/etcd-operator-apiserver"
	controller   = "Deployment/etcd-operator-system/etcd-operator-controller"
	notes        = "NOTES.txt"
	hookKey      = "helm.sh/hook"
	keepKey      = "helm.sh/resource-policy"
	checksumKey  = "checksum/storage"
	errorPrefix  = "execution error at "
	templatesDir = "/templates/"
)

// objects are rendered objects by kind, namespace and name.
type objects map[string]unstructured.Unstructured

// release is what is rendered, and how.
type release struct {
	chart, name, namespace string
	values                 string // YAML
	lookup                 engine.ClientProvider
}

func chartDir(name string) string { return filepath.Join(root, "charts", name) }

func load(t *testing.T, name string) *chart.Chart {
	t.Helper()
	c, err := loader.LoadDir(chartDir(name))
	must(t, err, "load chart %s", name)
	return c
}

func must(t *testing.T, err error, format string, args ...any) {
	t.Helper()
	if err != nil {
		t.Fatalf("%s: %v", fmt.Sprintf(format, args...), err)
	}
}

func read(t *testing.T, path ...string) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(append([]string{root}, path...)...))
	must(t, err, "read a file of the project")
	return string(data)
}

// parse reads values.
func parse(t *testing.T, values string) map[string]any {
	t.Helper()
	parsed := map[string]any{}
	must(t, yaml.Unmarshal([]byte(values), &parsed), "parse values %s", values)
	return parsed
}

// files renders the templates of a release with Helm 4, by file name.
func (r release) files(t *testing.T) (map[string]string, error) {
	t.Helper()
	c := load(t, r.chart)
	options := common.ReleaseOptions{Name: r.name, Namespace: r.namespace, IsInstall: true, Revision: 1}
	values, err := util.ToRenderValues(c, parse(t, r.values), options, nil)
	if err != nil {
		return nil, err
	}
	var files map[string]string
	if r.lookup == nil {
		files, err = engine.Render(c, values)
	} else {
		files, err = engine.RenderWithClientProvider(c, values, r.lookup)
	}
	if err != nil {
		return nil, err
	}
	short := map[string]string{}
	for name, text := range files {
		short[strings.TrimPrefix(name, r.chart+templatesDir)] = text
	}
	return short, nil
}

// defaults is the release that the documentation tells users to install.
func defaults(chart, values string) release {
	if chart == cluster {
		return release{chart: cluster, name: "example", namespace: "default", values: values}
	}
	return release{chart: operator, name: operator, namespace: namespace, values: values}
}

// render returns the objects of a release.
func (r release) render(t *testing.T) objects {
	t.Helper()
	files, err := r.files(t)
	must(t, err, "render chart %s with values %q", r.chart, r.values)
	found := objects{}
	for name, text := range files {
		if name != notes && !strings.HasSuffix(name, ".tpl") {
			found.add(t, name, text)
		}
	}
	return found
}

// add parses the documents of a file.
func (o objects) add(t *testing.T, name, text string) {
	t.Helper()
	for document := range strings.SplitSeq("\n"+text, "\n---") {
		object := unstructured.Unstructured{}
		must(t, yaml.UnmarshalStrict([]byte(document), &object.Object), "parse %s:\n%s", name, document)
		if len(object.Object) == 0 {
			continue
		}
		key := fmt.Sprintf("%s/%s/%s", object.GetKind(), object.GetNamespace(), object.GetName())
		if _, twice := o[key]; twice {
			t.Errorf("%s: %s exists twice", name, key)
		}
		o[key] = object
	}
}

// field returns a field of an object: names and indices with dots between them. A key that
// contains dots is in brackets. It returns nil for what does not exist.
func (o objects) field(key, path string) any {
	object, ok := o[key]
	if !ok {
		return nil
	}
	var value any = object.Object
	for _, name := range steps(path) {
		switch at := value.(type) {
		case map[string]any:
			value = at[name]
		case []any:
			i, err := strconv.Atoi(name)
			if err != nil || i >= len(at) {
				return nil
			}
			value = at[i]
		default:
			return nil
		}
	}
	return value
}

func steps(path string) []string {
	var list []string
	for path != "" {
		if rest, ok := strings.CutPrefix(path, "["); ok {
			name, after, _ := strings.Cut(rest, "]")
			list, path = append(list, name), strings.TrimPrefix(after, ".")
			continue
		}
		end := strings.IndexAny(path, ".[")
		if end < 0 {
			return append(list, path)
		}
		list = append(list, path[:end])
		path = strings.TrimPrefix(path[end:], ".")
	}
	return list
}
