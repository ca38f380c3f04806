// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Command flags writes the page with the flags of the programs. It imports the packages that
// define them, so that building it takes longer than the other pages.
package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/pflag"
	cliflag "k8s.io/component-base/cli/flag"
	logsapi "k8s.io/component-base/logs/api/v1"
	"k8s.io/component-base/version/verflag"

	"github.com/etcd-operator/etcd-operator/pkg/apiserver/options"
	"github.com/etcd-operator/etcd-operator/pkg/controller/manager"
)

// generated is the first line of the page.
const generated = "<!-- Written by hack/update-docs.sh from the Go sources. Do not edit. -->\n"

// longest is how much of the help of a flag a table shows, in characters.
const longest = 400

func main() {
	out := flag.String("out", "docs/reference", "directory to write the page to")
	flag.Parse()
	text, err := flagsPage()
	if err == nil {
		err = os.WriteFile(filepath.Join(*out, "flags.md"), []byte(text), 0o644)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "flags:", err)
		os.Exit(1)
	}
}

// flagsPage lists the flags of the programs.
func flagsPage() (string, error) {
	var b strings.Builder
	b.WriteString(generated + `
# Flags

The programs are ` + "`/controller` and `/apiserver`" + ` of the image; their flags are arguments in ` + "`artifacts/install`" + `. The agent and the launcher
run in pods that the controller creates and have no flags for users. ` + "`kubectl etcd COMMAND --help`" + ` lists
those of the plugin. Texts in quotation marks are those of the Kubernetes libraries.

## Controller

| flag | default | meaning |
|---|---|---|
`)
	flags := pflag.NewFlagSet("controller", pflag.ContinueOnError)
	manager.NewOptions().AddFlags(flags)
	library := libraryFlags()
	addLibraryFlags(flags)
	writeFlags(&b, flags, library)

	server, err := options.New()
	if err != nil {
		return "", err
	}
	sets := cliflag.NamedFlagSets{}
	server.AddFlags(&sets)
	server.Recommended.AddFlags(library)
	server.ServerRun.AddUniversalFlags(library)
	logsapi.AddFlags(logsapi.NewLoggingConfiguration(), sets.FlagSet("logs"))
	verflag.AddFlags(sets.FlagSet("global"))
	b.WriteString("\n## API server\n")
	for _, name := range sets.Order {
		fmt.Fprintf(&b, "\n### API server: %s\n\n| flag | default | meaning |\n|---|---|---|\n", name)
		writeFlags(&b, sets.FlagSets[name], library)
	}
	return b.String(), nil
}

// libraryFlags returns the flags that the Kubernetes libraries define for every program.
func libraryFlags() *pflag.FlagSet {
	flags := pflag.NewFlagSet("library", pflag.ContinueOnError)
	addLibraryFlags(flags)
	return flags
}

func addLibraryFlags(flags *pflag.FlagSet) {
	logsapi.AddFlags(logsapi.NewLoggingConfiguration(), flags)
	verflag.AddFlags(flags)
}

// writeFlags writes one row for each flag. The help of library flags is a quotation.
func writeFlags(b *strings.Builder, flags, library *pflag.FlagSet) {
	flags.SortFlags = true
	flags.VisitAll(func(f *pflag.Flag) {
		if f.Hidden || f.Deprecated != "" {
			return
		}
		usage, _, _ := strings.Cut(f.Usage, "\n")
		if runes := []rune(usage); len(runes) > longest {
			usage = string(runes[:longest]) + " …"
		}
		text := cell(usage)
		if library.Lookup(f.Name) != nil {
			text = "<q>" + text + "</q>"
		}
		fmt.Fprintf(b, "| `--%s` | %s | %s |\n", f.Name, code(f.DefValue), text)
	})
}

// code marks a text as code.
func code(text string) string {
	if text == "" {
		return ""
	}
	return "`" + strings.ReplaceAll(text, "|", "\\|") + "`"
}

// cell makes a text fit into a table.
func cell(text string) string {
	return strings.NewReplacer("|", "\\|", "<", "&lt;", ">", "&gt;", "*", "\\*").Replace(strings.Join(strings.Fields(text), " "))
}
