// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package support

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/etcd-operator/etcd-operator/pkg/plugin/connect"
	"github.com/etcd-operator/etcd-operator/pkg/plugin/failure"
	"github.com/etcd-operator/etcd-operator/pkg/plugin/support/redact"
)

const (
	// APIVersion of the manifest.
	APIVersion = "kubectl.etcd.database.coreos.com/v1"
	// partTimeout is how long one request may take. A node that does not respond must not
	// keep the rest out of the archive.
	partTimeout = 20 * time.Second
	// ManifestFile is the file that says what the archive holds and what is missing.
	ManifestFile = "manifest.yaml"
)

// Request says what to collect.
type Request struct {
	Namespace, Name string
	// Plugin is the version of the plugin.
	Plugin string
	// Now is the time of the report.
	Now time.Time
	// Show is called with the name of each part.
	Show func(part string)
}

// Manifest says what an archive holds.
type Manifest struct {
	metav1.TypeMeta `json:",inline"`

	Cluster string      `json:"cluster"`
	Time    metav1.Time `json:"time"`
	// Plugin and Kubernetes are versions.
	Plugin     string `json:"plugin"`
	Kubernetes string `json:"kubernetes,omitempty"`
	// Redacted says what takes the place of what was removed.
	Redacted string   `json:"redacted"`
	Files    []string `json:"files"`
	// Missing is what could not be read, or not as a whole.
	Missing []Missing `json:"missing,omitempty"`
}

// Missing is a part that could not be read.
type Missing struct {
	Part string `json:"part"`
	Why  string `json:"why"`
}

// collector collects one report.
type collector struct {
	Request

	clients  *connect.Clients
	archive  *Archive
	manifest Manifest
}

// Collect writes everything that the rights of the user allow to the archive. An error means
// that the archive could not be written, or would be empty.
func Collect(ctx context.Context, clients *connect.Clients, archive *Archive, r Request) (*Manifest, error) {
	c := &collector{Request: r, clients: clients, archive: archive, manifest: Manifest{
		TypeMeta: metav1.TypeMeta{APIVersion: APIVersion, Kind: "SupportReport"},
		Cluster:  r.Namespace + "/" + r.Name, Time: metav1.NewTime(r.Now), Plugin: r.Plugin, Redacted: redact.Mark,
	}}
	for _, step := range []func(context.Context) error{c.cluster, c.versions, c.operator} {
		if err := step(ctx); err != nil {
			return nil, err
		}
	}
	c.manifest.Files = append(archive.Files(), ManifestFile)
	return &c.manifest, c.write(ManifestFile, &c.manifest)
}

// versions reads the version of Kubernetes. Those of the operator are the images of its pods.
func (c *collector) versions(context.Context) error {
	c.Show("versions")
	server, err := c.clients.Kube.Discovery().ServerVersion()
	if err != nil {
		c.missing("version of Kubernetes", err)
		return nil
	}
	c.manifest.Kubernetes = server.GitVersion
	return nil
}

// missing records a part that could not be read.
func (c *collector) missing(part string, err error) {
	c.manifest.Missing = append(c.manifest.Missing, Missing{Part: part, Why: redact.Text(err.Error())})
}

// write adds a file with a value as YAML.
func (c *collector) write(file string, value any) error {
	content, err := yaml.Marshal(value)
	if err != nil {
		return fmt.Errorf("write %s: %w", file, err)
	}
	return c.archive.Add(file, content)
}

// source is where objects come from.
type source struct {
	// part names it for people.
	part string
	// kind of the items of a list, and version of their API: the items of a list have none.
	kind, apiVersion string
	// resource and namespace name the right.
	resource, namespace string
	path                string
	query               map[string]string
	// belongs chooses the items of a list; nil keeps all.
	belongs func(*unstructured.Unstructured) bool
}

// get reads what a path of the API returns.
func (c *collector) get(ctx context.Context, verb string, s source) (map[string]any, error) {
	ctx, cancel := context.WithTimeout(ctx, partTimeout)
	defer cancel()
	request := c.clients.Kube.CoreV1().RESTClient().Verb(http.MethodGet).AbsPath(s.path).SetHeader("Accept", "application/json")
	for name, value := range s.query {
		request = request.Param(name, value)
	}
	result := request.Do(ctx)
	if err := result.Error(); err != nil { // Raw does not read what the server says about an error
		return nil, failure.With(err, failure.Right{Verb: verb, Resource: s.resource, Namespace: s.namespace})
	}
	text, err := result.Raw()
	if err != nil {
		return nil, fmt.Errorf("read the response: %w", err)
	}
	object := map[string]any{}
	if err := yaml.Unmarshal(text, &object); err != nil {
		return nil, fmt.Errorf("the response is no JSON object: %w", err)
	}
	return object, nil
}

// errNoList means that a response is not what the API says.
var errNoList = errors.New("the response is no list")

// object adds one object as a file.
func (c *collector) object(ctx context.Context, file string, s source) (*unstructured.Unstructured, error) {
	c.Show(s.part)
	object, err := c.get(ctx, "get", s)
	if err != nil {
		return nil, err
	}
	original := &unstructured.Unstructured{Object: object}
	return original, c.write(file, redacted(original))
}

// list adds the items of a list that belong to the cluster as a file, and returns them. A list
// that cannot be read is recorded as missing.
func (c *collector) list(ctx context.Context, file string, s source) ([]unstructured.Unstructured, error) {
	c.Show(s.part)
	object, err := c.get(ctx, "list", s)
	if err != nil {
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		c.missing(s.part, err)
		return nil, nil
	}
	items, ok := object["items"].([]any)
	if !ok && object["items"] != nil {
		c.missing(s.part, errNoList)
		return nil, nil
	}
	if rest, _, _ := unstructured.NestedString(object, "metadata", "continue"); rest != "" {
		c.missing(s.part, fmt.Errorf("the list goes on after %d items", len(items)))
	}
	var found []unstructured.Unstructured
	shown := []any{}
	for _, item := range items {
		fields, ok := item.(map[string]any)
		if !ok {
			continue
		}
		one := unstructured.Unstructured{Object: fields}
		one.SetKind(s.kind)
		one.SetAPIVersion(s.apiVersion)
		if s.belongs == nil || s.belongs(&one) {
			found = append(found, one)
			shown = append(shown, redacted(&one))
		}
	}
	return found, c.write(file, map[string]any{"apiVersion": "v1", "kind": "List", "items": shown})
}

// redacted returns a copy without secrets.
func redacted(object *unstructured.Unstructured) map[string]any {
	copied := object.DeepCopy().Object
	redact.Object(copied)
	return copied
}
