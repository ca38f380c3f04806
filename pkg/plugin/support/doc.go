// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package support collects what a person who helps with a cluster needs, and writes it to an
// archive: objects, what members say, events and logs. Nothing in the archive is secret: package
// redact removes secrets before a file is written, and no Secret is read. The package imports
// connect, failure and redact of the plugin. Start at Collect.
package support
