// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package harness

import (
	"archive/tar"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
)

// Registry is an image registry that speaks HTTP.
type Registry struct {
	// Address is host and port.
	Address            string
	Username, Password string
}

const (
	mediaTypeManifest = "application/vnd.oci.image.manifest.v1+json"
	mediaTypeConfig   = "application/vnd.oci.image.config.v1+json"
	mediaTypeLayer    = "application/vnd.oci.image.layer.v1.tar"
)

type descriptor struct {
	MediaType string `json:"mediaType"`
	Digest    string `json:"digest"`
	Size      int    `json:"size"`
}

var errRegistry = errors.New("unexpected response of the registry")

// Push stores the one image of an archive that docker load could read, and returns the
// digest of its manifest.
func (r Registry) Push(ctx context.Context, archive, repository, tag string) (digest string, err error) {
	files, err := readTar(archive)
	if err != nil {
		return "", fmt.Errorf("read %s: %w", archive, err)
	}
	var images []struct {
		Config string
		Layers []string
	}
	if err := json.Unmarshal(files["manifest.json"], &images); err != nil || len(images) != 1 {
		return "", fmt.Errorf("read the manifest in %s: %d images, %w", archive, len(images), err)
	}
	manifest := struct {
		SchemaVersion int          `json:"schemaVersion"`
		MediaType     string       `json:"mediaType"`
		Config        descriptor   `json:"config"`
		Layers        []descriptor `json:"layers"`
	}{SchemaVersion: 2, MediaType: mediaTypeManifest}
	config, err := otherwise(files[images[0].Config])
	if err != nil {
		return "", err
	}
	if manifest.Config, err = r.pushBlob(ctx, repository, mediaTypeConfig, config); err != nil {
		return "", err
	}
	for _, layer := range images[0].Layers {
		pushed, err := r.pushBlob(ctx, repository, mediaTypeLayer, files[layer])
		if err != nil {
			return "", err
		}
		manifest.Layers = append(manifest.Layers, pushed)
	}
	raw, err := json.Marshal(manifest)
	if err != nil {
		return "", err
	}
	_, err = r.send(ctx, http.MethodPut, "http://"+r.Address+"/v2/"+repository+"/manifests/"+tag, mediaTypeManifest, raw, http.StatusCreated)
	return digestOf(raw), err
}

// otherwise returns the configuration of an image with another ID. A kubelet that has
// pulled an image with a secret asks every pod for it that uses an image of the same ID.
func otherwise(config []byte) ([]byte, error) {
	fields := map[string]any{}
	if err := json.Unmarshal(config, &fields); err != nil {
		return nil, fmt.Errorf("read the configuration of the image: %w", err)
	}
	fields["comment"] = "from a registry"
	return json.Marshal(fields)
}

func (r Registry) pushBlob(ctx context.Context, repository, mediaType string, raw []byte) (descriptor, error) {
	d := descriptor{MediaType: mediaType, Digest: digestOf(raw), Size: len(raw)}
	begun, err := r.send(ctx, http.MethodPost, "http://"+r.Address+"/v2/"+repository+"/blobs/uploads/", "", nil, http.StatusAccepted)
	if err != nil {
		return d, err
	}
	location, err := url.Parse(begun.Get("Location"))
	if err != nil {
		return d, fmt.Errorf("read where a blob goes: %w", err)
	}
	location.Scheme, location.Host = "http", r.Address
	query := location.Query()
	query.Set("digest", d.Digest)
	location.RawQuery = query.Encode()
	_, err = r.send(ctx, http.MethodPut, location.String(), "application/octet-stream", raw, http.StatusCreated)
	return d, err
}

func (r Registry) send(ctx context.Context, method, target, contentType string, body []byte, want int) (http.Header, error) {
	request, err := http.NewRequestWithContext(ctx, method, target, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	if contentType != "" {
		request.Header.Set("Content-Type", contentType)
	}
	request.SetBasicAuth(r.Username, r.Password)
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	if response.StatusCode != want {
		text, _ := io.ReadAll(io.LimitReader(response.Body, 1<<10)) // it is only shown
		return nil, fmt.Errorf("%w: %s %s: %s: %s", errRegistry, method, target, response.Status, text)
	}
	return response.Header, nil
}

func digestOf(raw []byte) string {
	sum := sha256.Sum256(raw)
	return "sha256:" + hex.EncodeToString(sum[:])
}

func readTar(name string) (map[string][]byte, error) {
	file, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	files := map[string][]byte{}
	for archive := tar.NewReader(file); ; {
		header, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return files, nil
		}
		if err != nil {
			return nil, err
		}
		if files[header.Name], err = io.ReadAll(archive); err != nil {
			return nil, err
		}
	}
}
