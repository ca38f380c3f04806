// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Command reference writes the generated pages of docs/reference: the API, conditions and
// reasons, events and annotations. It reads the Go sources with go/ast, so that every row names
// the file that decides it. With -check it checks pages.
//
// hack/update-docs.sh runs it, and the command flags below it. It imports nothing of the
// module. Start at main.go; source.go resolves constants, find.go finds the
// places where a reason is chosen.
package main
