// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package pages reads the commands of the documentation that run as tests: which blocks a page
// marks, what stands for values of the reader, and what the page shows as output. It runs
// nothing; TestDocs of test/e2e does. docs/contributing/README.md describes the marks. The
// package imports the standard library only. Start at Read.
package pages
