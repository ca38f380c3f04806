// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"

	"github.com/sigstore/sigstore/pkg/signature"
	"github.com/sigstore/sigstore/pkg/signature/dsse"
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
	private, err := readPrivateKey(*key)
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
	public, err := readPublicKey(*key)
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

func sign(s *statement, private signature.SignerVerifier) ([]byte, error) {
	raw, err := json.Marshal(s)
	if err != nil {
		return nil, err
	}
	return dsse.WrapSigner(private, payloadType).SignMessage(bytes.NewReader(raw))
}

// open returns the statement in an envelope that a key has signed.
func open(envelope []byte, public signature.Verifier) (*statement, error) {
	var raw []byte
	verifier := dsse.WrapVerifier(public, dsse.WithExpectedPayloadType(payloadType), dsse.WithDecodedPayload(&raw))
	if err := verifier.VerifySignature(bytes.NewReader(envelope), nil); err != nil {
		return nil, err
	}
	s := &statement{}
	if err := json.Unmarshal(raw, s); err != nil {
		return nil, err
	}
	if s.Type != statementType || len(s.Predicate.BuildDefinition.ResolvedDependencies) == 0 {
		return nil, fmt.Errorf("%w: it is a %s about %s", errMismatch, s.Type, s.PredicateType)
	}
	return s, nil
}
