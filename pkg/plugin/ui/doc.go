// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package ui serves a page that shows clusters, with the rights of the user, to browsers of this
// machine. It writes nothing. The words are those of package render. A browser asks again and
// again; the API is read once for all of them, and only while a browser asks. The package imports
// connect, failure, render and report of the plugin. Start at Server.
package ui
