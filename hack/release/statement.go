// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"bytes"
	"context"
	"crypto"
	"crypto/ed25519"
	"crypto/sha256"
	"crypto/x509"
	"encoding/hex"
	"encoding/json"
	"encoding/pem"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"

	"github.com/secure-systems-lab/go-securesystemslib/dsse"
)

// The types of an in-toto statement about a build (in-toto attestation v1, SLSA provenance v1).
const (
	payloadType   = "application/vnd.in-toto+json"
	statementType = "https://in-toto.io/Statement/v1"
	predicateType = "https://slsa.dev/provenance/v1"
)

// errMismatch means that files are not those of a statement.
var errMismatch = errors.New("the statement is about other files")

// statement says which files were built from which commit.
type statement struct {
	Type          string    `json:"_type"`
	Subject       []subject `json:"subject"`
	PredicateType string    `json:"predicateType"`
	Predicate     predicate `json:"predicate"`
}

type subject struct {
	Name   string            `json:"name"`
	Digest map[string]string `json:"digest"`
}

type predicate struct {
	BuildDefinition struct {
		BuildType            string            `json:"buildType"`
		ExternalParameters   map[string]string `json:"externalParameters"`
		ResolvedDependencies []dependency      `json:"resolvedDependencies"`
	} `json:"buildDefinition"`
	RunDetails struct {
		Builder struct {
			ID string `json:"id"`
		} `json:"builder"`
	} `json:"runDetails"`
}

type dependency struct {
	URI    string            `json:"uri"`
	Digest map[string]string `json:"digest"`
}

func statementCommand(args []string) error {
	flags := flag.NewFlagSet("statement", flag.ContinueOnError)
	checksums, key, out := flags.String("checksums", "", ""), flags.String("key", "", ""), flags.String("out", "", "")
	source, commit, version := flags.String("source", "", ""), flags.String("commit", "", ""), flags.String("version", "", "")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if *checksums == "" || *key == "" || *out == "" || *source == "" || *commit == "" || *version == "" || flags.NArg() > 0 {
		return errUsage
	}
	subjects, err := readChecksums(*checksums)
	if err != nil {
		return err
	}
	private, err := readKey[ed25519.PrivateKey](*key, x509.ParsePKCS8PrivateKey)
	if err != nil {
		return err
	}
	s := statement{Type: statementType, PredicateType: predicateType, Subject: subjects}
	s.Predicate.BuildDefinition.BuildType = *source + "/hack/release.sh"
	s.Predicate.BuildDefinition.ExternalParameters = map[string]string{"version": *version}
	s.Predicate.BuildDefinition.ResolvedDependencies = []dependency{{URI: "git+" + *source, Digest: map[string]string{"gitCommit": *commit}}}
	s.Predicate.RunDetails.Builder.ID = *source
	envelope, err := sign(&s, private)
	if err != nil {
		return fmt.Errorf("sign the statement: %w", err)
	}
	return os.WriteFile(*out, envelope, modeFile)
}

func verifyCommand(args []string) error {
	flags := flag.NewFlagSet("verify", flag.ContinueOnError)
	checksums, key, file := flags.String("checksums", "", ""), flags.String("key", "", ""), flags.String("statement", "", "")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if *checksums == "" || *key == "" || *file == "" || flags.NArg() > 0 {
		return errUsage
	}
	public, err := readKey[ed25519.PublicKey](*key, x509.ParsePKIXPublicKey)
	if err != nil {
		return err
	}
	envelope, err := os.ReadFile(*file)
	if err != nil {
		return err
	}
	s, err := open(envelope, public)
	if err != nil {
		return fmt.Errorf("verify %s: %w", *file, err)
	}
	subjects, err := readChecksums(*checksums)
	if err != nil {
		return err
	}
	if !reflect.DeepEqual(subjects, s.Subject) {
		return fmt.Errorf("verify %s: %w than %s: download both again from one release", *file, errMismatch, *checksums)
	}
	if err := verifyFiles(filepath.Dir(*checksums), subjects); err != nil {
		return err
	}
	fmt.Printf("%d files are those that were built from commit %s\n", len(subjects), s.Predicate.BuildDefinition.ResolvedDependencies[0].Digest["gitCommit"])
	return nil
}

// verifyFiles compares files with their digests.
func verifyFiles(dir string, subjects []subject) error {
	for _, s := range subjects {
		content, err := os.ReadFile(filepath.Join(dir, filepath.FromSlash(s.Name)))
		if err != nil {
			return err
		}
		if sum := sha256.Sum256(content); hex.EncodeToString(sum[:]) != s.Digest["sha256"] {
			return fmt.Errorf("verify %s: %w: its digest differs, download it again", s.Name, errMismatch)
		}
	}
	return nil
}

// readChecksums reads what sha256sum writes.
func readChecksums(file string) ([]subject, error) {
	content, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	var subjects []subject
	for lines := bufio.NewScanner(bytes.NewReader(content)); lines.Scan(); {
		digest, name, ok := strings.Cut(lines.Text(), "  ")
		if raw, err := hex.DecodeString(digest); !ok || err != nil || len(raw) != sha256.Size || !filepath.IsLocal(name) {
			return nil, fmt.Errorf("read %s: %q is not a line of sha256sum", file, lines.Text())
		}
		subjects = append(subjects, subject{Name: name, Digest: map[string]string{"sha256": digest}})
	}
	if len(subjects) == 0 {
		return nil, fmt.Errorf("read %s: it names no file", file)
	}
	return subjects, nil
}

func readKey[K any](file string, parse func([]byte) (any, error)) (K, error) {
	var none K
	content, err := os.ReadFile(file)
	if err != nil {
		return none, err
	}
	block, _ := pem.Decode(content)
	if block == nil {
		return none, fmt.Errorf("read %s: it is not PEM", file)
	}
	parsed, err := parse(block.Bytes)
	if err != nil {
		return none, fmt.Errorf("read %s: %w", file, err)
	}
	key, ok := parsed.(K)
	if !ok {
		return none, fmt.Errorf("read %s: it is a %T, not a %T: make one with openssl genpkey -algorithm ed25519", file, parsed, none)
	}
	return key, nil
}

// signer is an Ed25519 key in the terms of DSSE.
type signer struct {
	private ed25519.PrivateKey
	public  ed25519.PublicKey
}

func (s signer) Sign(_ context.Context, data []byte) ([]byte, error) {
	return s.private.Sign(nil, data, crypto.Hash(0))
}

func (s signer) Verify(_ context.Context, data, signature []byte) error {
	if !ed25519.Verify(s.public, data, signature) {
		return errors.New("another key signed it, or it was changed")
	}
	return nil
}

// KeyID is the digest of the public key.
func (s signer) KeyID() (string, error) {
	sum := sha256.Sum256(s.public)
	return hex.EncodeToString(sum[:]), nil
}

func (s signer) Public() crypto.PublicKey { return s.public }

func sign(s *statement, private ed25519.PrivateKey) ([]byte, error) {
	payload, err := json.Marshal(s)
	if err != nil {
		return nil, err
	}
	public, _ := private.Public().(ed25519.PublicKey)
	signs, err := dsse.NewEnvelopeSigner(signer{private, public})
	if err != nil {
		return nil, err
	}
	envelope, err := signs.SignPayload(context.Background(), payloadType, payload)
	if err != nil {
		return nil, err
	}
	return json.MarshalIndent(envelope, "", "  ")
}

// open returns the statement in an envelope that a key has signed.
func open(raw []byte, public ed25519.PublicKey) (*statement, error) {
	envelope := &dsse.Envelope{}
	if err := json.Unmarshal(raw, envelope); err != nil {
		return nil, err
	}
	verifies, err := dsse.NewEnvelopeVerifier(signer{public: public})
	if err != nil {
		return nil, err
	}
	if _, err := verifies.Verify(context.Background(), envelope); err != nil {
		return nil, err
	}
	payload, err := envelope.DecodeB64Payload()
	if err != nil {
		return nil, err
	}
	s := &statement{}
	if err := json.Unmarshal(payload, s); err != nil {
		return nil, err
	}
	if envelope.PayloadType != payloadType || s.Type != statementType || len(s.Predicate.BuildDefinition.ResolvedDependencies) == 0 {
		return nil, fmt.Errorf("%w: it is a %s about %s", errMismatch, s.Type, s.PredicateType)
	}
	return s, nil
}
