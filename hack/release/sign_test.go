// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"github.com/sigstore/sigstore/pkg/cryptoutils"
)

// kinds has the kinds of keys that users make, and how the format of cosign defines a signature of each. It
// needs none of the libraries that sign.
var kinds = map[string]struct {
	key    func() (crypto.Signer, error)
	verify func(public any, message, signature []byte) bool
}{
	"ECDSA": {
		key: func() (crypto.Signer, error) { return ecdsa.GenerateKey(elliptic.P256(), rand.Reader) },
		verify: func(public any, message, signature []byte) bool {
			key, ok := public.(*ecdsa.PublicKey)
			sum := sha256.Sum256(message)
			return ok && ecdsa.VerifyASN1(key, sum[:], signature)
		},
	},
	"Ed25519": {
		key: func() (crypto.Signer, error) {
			_, private, err := ed25519.GenerateKey(rand.Reader)
			return private, err
		},
		verify: func(public any, message, signature []byte) bool {
			key, ok := public.(ed25519.PublicKey)
			return ok && ed25519.Verify(key, message, signature)
		},
	},
}

// keys writes a new pair of keys as openssl does.
func keys(t *testing.T, kind string) (private, public string) {
	t.Helper()
	dir := t.TempDir()
	key, err := kinds[kind].key()
	if err != nil {
		t.Fatal(err)
	}
	raw, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	private = write(t, filepath.Join(dir, "release.pem"), string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: raw})), 0o600)
	if raw, err = x509.MarshalPKIXPublicKey(key.Public()); err != nil {
		t.Fatal(err)
	}
	return private, write(t, filepath.Join(dir, "release.pub"), string(pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: raw})), 0o600)
}

// verifies tells whether base64 text is the signature of a message by a key.
func verifies(t *testing.T, kind, public string, message []byte, text string) bool {
	t.Helper()
	block, _ := pem.Decode(read(t, public))
	key, err := x509.ParsePKIXPublicKey(block.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	signature, err := base64.StdEncoding.DecodeString(text)
	if err != nil {
		t.Fatalf("%q: %v", text, err)
	}
	return kinds[kind].verify(key, message, signature)
}

// signatures returns the images of an archive by their references.
func signatures(t *testing.T, file string) map[string]v1.Image {
	t.Helper()
	dir := t.TempDir()
	if err := readArchive(file, dir); err != nil {
		t.Fatal(err)
	}
	index, err := layout.ImageIndexFromPath(dir)
	if err != nil {
		t.Fatal(err)
	}
	manifest, err := index.IndexManifest()
	if err != nil {
		t.Fatal(err)
	}
	images := map[string]v1.Image{}
	for _, d := range manifest.Manifests {
		image, err := index.Image(d.Digest)
		if err != nil || d.MediaType != types.OCIManifestSchema1 {
			t.Fatalf("%s, %v", d.MediaType, err)
		}
		images[d.Annotations[annotationRef]] = image
	}
	return images
}

// messageOf returns what an image says that cosign reads as a signature, and the signature.
func messageOf(t *testing.T, image v1.Image) (message []byte, signature string) {
	t.Helper()
	manifest, err := image.Manifest()
	if err != nil || len(manifest.Layers) != 1 || manifest.Config.MediaType != types.OCIConfigJSON {
		t.Fatalf("%+v, %v", manifest, err)
	}
	if layer := manifest.Layers[0]; layer.MediaType != "application/vnd.dev.cosign.simplesigning.v1+json" || len(layer.Annotations) != 1 {
		t.Errorf("the layer is %+v", layer)
	}
	layer, err := image.LayerByDigest(manifest.Layers[0].Digest)
	if err != nil {
		t.Fatal(err)
	}
	// A layer that was compressed would have another digest than the message.
	content, err := layer.Compressed()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = content.Close() }()
	var raw bytes.Buffer
	if _, err := raw.ReadFrom(content); err != nil {
		t.Fatal(err)
	}
	return raw.Bytes(), manifest.Layers[0].Annotations["dev.cosignproject.cosign/signature"]
}

// TestSign compares what the program writes with the format of cosign.
func TestSign(t *testing.T) {
	dir := t.TempDir()
	license := write(t, filepath.Join(dir, "LICENSE"), "text", 0o600)
	archive, signed := filepath.Join(dir, "image.tar"), filepath.Join(dir, "signatures.tar")
	chart := write(t, filepath.Join(dir, "chart.tgz"), "a chart", 0o600)
	arguments := []string{"image", "--ref", "example.com/a/b:v1.2.3", "--out", archive, "--entrypoint", "/controller", "--license", license}
	for _, arch := range []string{"amd64", "arm64"} {
		write(t, filepath.Join(dir, arch, "controller"), "controller for "+arch, 0o700)
		arguments = append(arguments, "linux/"+arch+"="+filepath.Join(dir, arch))
	}
	if err := run(arguments); err != nil {
		t.Fatal(err)
	}
	before := read(t, archive)
	tag, digests, err := imagesOf(archive)
	if err != nil || tag.Name() != "example.com/a/b:v1.2.3" || len(digests) != 3 {
		t.Fatalf("%s has the images %v, %v", tag, digests, err)
	}
	for kind := range kinds {
		t.Run(kind, func(t *testing.T) {
			private, public := keys(t, kind)
			_, other := keys(t, kind)
			if err := run([]string{"sign", "--image", archive, "--out", signed, "--key", private, chart}); err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(before, read(t, archive)) {
				t.Error("the archive with the image has changed")
			}
			images := signatures(t, signed)
			if len(images) != len(digests) {
				t.Errorf("signatures are at %v", slices.Sorted(maps.Keys(images)))
			}
			for _, digest := range digests {
				image := images["example.com/a/b:sha256-"+digest.Hex+".sig"]
				if image == nil {
					t.Fatalf("no signature for %s: %v", digest, slices.Sorted(maps.Keys(images)))
				}
				message, text := messageOf(t, image)
				want := `{"critical":{"identity":{"docker-reference":"example.com/a/b:v1.2.3"},"image":{"docker-manifest-digest":"` + digest.String() +
					`"},"type":"cosign container image signature"},"optional":null}`
				if string(message) != want {
					t.Errorf("the key signed %s", message)
				}
				if !verifies(t, kind, public, message, text) || verifies(t, kind, other, message, text) || verifies(t, kind, public, append(message, ' '), text) {
					t.Errorf("%s is not the signature of this message by this key only", text)
				}
			}
			text := strings.TrimSuffix(string(read(t, chart+".sig")), "\n")
			if !verifies(t, kind, public, read(t, chart), text) || verifies(t, kind, other, read(t, chart), text) {
				t.Errorf("%s is not the signature of the file by this key only", text)
			}
		})
	}
}

func TestSignRejects(t *testing.T) {
	dir := t.TempDir()
	private, _ := keys(t, "ECDSA")
	notAnArchive := write(t, filepath.Join(dir, "image.tar"), "text", 0o600)
	if err := run([]string{"sign", "--image", notAnArchive, "--out", filepath.Join(dir, "out"), "--key", private}); err == nil {
		t.Error("a file that is no archive was signed")
	}
	empty := filepath.Join(dir, "empty.tar")
	write(t, filepath.Join(dir, "layout", "oci-layout"), `{"imageLayoutVersion":"1.0.0"}`, 0o600)
	write(t, filepath.Join(dir, "layout", "index.json"), `{"schemaVersion":2,"manifests":[]}`, 0o600)
	if err := writeArchive(filepath.Join(dir, "layout"), empty); err != nil {
		t.Fatal(err)
	}
	if err := run([]string{"sign", "--image", empty, "--out", filepath.Join(dir, "out"), "--key", private}); !errors.Is(err, errArchive) {
		t.Errorf("an archive without an image: %v", err)
	}
}

// TestEncryptedKey reads a key that cosign generate-key-pair has written.
func TestEncryptedKey(t *testing.T) {
	private, _, err := cryptoutils.GeneratePEMEncodedECDSAKeyPair(elliptic.P256(), cryptoutils.StaticPasswordFunc([]byte("secret")))
	if err != nil {
		t.Fatal(err)
	}
	file := write(t, filepath.Join(t.TempDir(), "release.key"), string(private), 0o600)
	for password, accepted := range map[string]bool{"secret": true, "another": false, "": false} {
		t.Setenv(passwordVariable, password)
		if _, err := readPrivateKey(file); (err == nil) != accepted {
			t.Errorf("with the password %q: %v", password, err)
		}
	}
}
