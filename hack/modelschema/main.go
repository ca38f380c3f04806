// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Command modelschema prints the OpenAPI v2 schema of the API types, which the
// generator of apply configurations needs for their Extract functions.
package main

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"

	"k8s.io/kube-openapi/pkg/common"
	"k8s.io/kube-openapi/pkg/validation/spec"

	"github.com/etcd-operator/etcd-operator/pkg/generated/openapi"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run() error {
	definitions := openapi.GetOpenAPIDefinitions(func(path string) spec.Ref {
		return spec.MustCreateRef("#/definitions/" + friendlyName(path))
	})
	schemas := make(map[string]spec.Schema, len(definitions))
	for path, d := range definitions {
		// A type that is a string in one API version and an integer in another has
		// a second schema for v2 consumers.
		if v2, ok := d.Schema.Extensions[common.ExtensionV2Schema].(spec.Schema); ok {
			d.Schema = v2
		}
		schemas[friendlyName(path)] = d.Schema
	}
	document := spec.Swagger{SwaggerProps: spec.SwaggerProps{
		Swagger:     "2.0",
		Definitions: schemas,
		Info:        &spec.Info{InfoProps: spec.InfoProps{Title: "etcd.database.coreos.com", Version: "v1beta2"}},
		Paths:       &spec.Paths{},
	}}
	return json.NewEncoder(os.Stdout).Encode(document)
}

// friendlyName turns the path of a Go type into the name of its model: its host
// is written backwards, as in io.k8s.api.core.v1.Pod.
func friendlyName(path string) string {
	host, rest, found := strings.Cut(path, "/")
	if !found {
		return path
	}
	labels := strings.Split(host, ".")
	for i, j := 0, len(labels)-1; i < j; i, j = i+1, j-1 {
		labels[i], labels[j] = labels[j], labels[i]
	}
	return strings.Join(labels, ".") + "." + strings.ReplaceAll(rest, "/", ".")
}
