// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package charts

import (
	"strings"
	"testing"

	"helm.sh/helm/v4/pkg/chart/common"
	"helm.sh/helm/v4/pkg/chart/common/util"
	"helm.sh/helm/v4/pkg/engine"
)

// TestImageOfARelease renders a chart with the annotation that hack/release.sh adds. The digest belongs to the
// image of that release, so it applies to a mirror, and neither to another tag nor in the place of another digest.
func TestImageOfARelease(t *testing.T) {
	const released, other = "sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef", "sha256:abcdef0123456789abcdef0123456789abcdef0123456789abcdef0123456789"
	c := load(t, operator)
	c.Metadata.Annotations["etcd.database.coreos.com/image-digest"] = released
	for values, want := range map[string]string{
		"":                                 "quay.io/etcd-operator/etcd-operator:v0.1.0@" + released,
		"image: {repository: r.io/o}":      "r.io/o:v0.1.0@" + released,
		"image: {tag: v9}":                 "quay.io/etcd-operator/etcd-operator:v9",
		"image: {digest: '" + other + "'}": "quay.io/etcd-operator/etcd-operator:v0.1.0@" + other,
	} {
		options := common.ReleaseOptions{Name: operator, Namespace: namespace, IsInstall: true, Revision: 1}
		with, err := util.ToRenderValues(c, parse(t, values), options, nil)
		must(t, err, "values %q", values)
		files, err := engine.Render(c, with)
		must(t, err, "render with %q", values)
		for _, name := range []string{"apiserver", "controller"} {
			if file := files[operator+templatesDir+name+".yaml"]; !strings.Contains(file, " image: "+want+"\n") {
				t.Errorf("values %q: the %s does not run %s", values, name, want)
			}
		}
	}
}
