// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/etcd-operator/etcd-operator/pkg/plugin/failure"
)

// danger is a command of etcdctl that asks first.
type danger struct {
	words []string
	// consequence says what the command does that a user may not expect.
	consequence string
}

var dangers = []danger{
	{[]string{"auth", "enable"}, "etcd then rejects every request without a user and a role: those of applications, of backups and of the operator."},
	{[]string{"member", "remove"}, "the member loses its vote at once. The controller creates a new member in its place. Use kubectl etcd replace: it keeps the quorum."},
	{[]string{"compaction"}, "etcd deletes the history before the revision. Watches that start there fail, and a Kubernetes that keeps its objects here lists them again."},
}

// withoutValue are the flags of etcdctl itself that take no value. Every other flag takes the next
// word as its value, unless it has one behind "=".
var withoutValue = []string{"--debug", "--hex", "--help", "-h", "--insecure-discovery", "--insecure-skip-tls-verify", "--insecure-transport"}

// dangerOf returns what is dangerous about a command line of etcdctl; nil if nothing is.
func dangerOf(args []string) *danger {
	words := commandWords(args)
	for i := range dangers {
		if names := dangers[i].words; len(words) >= len(names) && slices.EqualFunc(names, words[:len(names)], strings.HasPrefix) {
			return &dangers[i]
		}
	}
	return nil
}

// commandWords returns the words of a command line that are no flags and no values of flags, as
// etcdctl looks for its command. It accepts the beginning of a name, so "comp" is compaction.
func commandWords(args []string) []string {
	var words []string
	for i := 0; i < len(args); i++ {
		arg := args[i]
		isLong, isShort := strings.HasPrefix(arg, "--"), strings.HasPrefix(arg, "-")
		switch {
		case arg == "--":
			return words
		case arg == "":
		case !isShort:
			words = append(words, arg)
		case slices.Contains(withoutValue, arg):
		case isLong && !strings.Contains(arg, "="), !isLong && len(arg) == 2:
			i++
		}
	}
	return words
}

// confirmDanger asks before a dangerous command. Without a terminal only --yes confirms.
func (a *app) confirmDanger(ctx context.Context, o *ctlOptions, args []string, ask func(ctx context.Context, question string) (string, error)) error {
	d := dangerOf(args)
	if d == nil || o.yes {
		return nil
	}
	name := strings.Join(d.words, " ")
	if !a.InTerminal {
		return failure.Usage(fmt.Sprintf("%s: %s The input is no terminal, so this cannot be confirmed; add --yes to run it", name, d.consequence))
	}
	fmt.Fprintf(a.Err, "%s: %s\n", name, d.consequence)
	reply, err := ask(ctx, "Run it? [y/N] ")
	if err != nil {
		return err
	}
	if !isYes(reply) {
		return errDeclined
	}
	return nil
}

// askOnce asks a question of a command that asks no other.
func (a *app) askOnce(ctx context.Context, question string) (string, error) {
	fmt.Fprint(a.Err, question)
	return a.readReply(ctx)
}

func isYes(reply string) bool {
	return strings.EqualFold(reply, "y") || strings.EqualFold(reply, "yes")
}
