// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package recording

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/rulefmt"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/rules"
	"github.com/prometheus/prometheus/storage"
	"sigs.k8s.io/yaml"
)

// Rules are the files of rules in a directory.
type Rules struct {
	Files []string
	All   []rulefmt.Rule
}

// ReadRules reads every file of rules in a directory, and leaves out manifests.
func ReadRules(dir string) (Rules, error) {
	var r Rules
	files, err := filepath.Glob(filepath.Join(dir, "*.yaml"))
	if err != nil {
		return r, err
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return r, err
		}
		var kind struct{ Groups []any }
		if err := yaml.Unmarshal(text, &kind); err != nil || len(kind.Groups) == 0 {
			continue // several documents, or a manifest
		}
		groups, errs := rulefmt.Parse(text, false, model.UTF8Validation, parser.NewParser(parser.Options{}), slog.New(slog.DiscardHandler))
		if len(errs) > 0 {
			return r, fmt.Errorf("read rules %s: %w", file, errors.Join(errs...))
		}
		r.Files = append(r.Files, file)
		for _, group := range groups.Groups {
			r.All = append(r.All, group.Rules...)
		}
	}
	if len(r.Files) == 0 {
		return r, fmt.Errorf("%w: %s has no rules", errFormat, dir)
	}
	return r, nil
}

// Exprs returns the expression of each rule.
func (r Rules) Exprs() []string {
	var exprs []string
	for _, rule := range r.All {
		exprs = append(exprs, rule.Expr)
	}
	return exprs
}

// Evaluate evaluates the rules at each step of the recording. The outcome goes to the storage:
// recorded series, and the series ALERTS.
func (r Rules) Evaluate(ctx context.Context, f File, on Engine, to storage.Appendable) error {
	manager := rules.NewManager(&rules.ManagerOptions{
		Context: ctx, Appendable: to, Queryable: on.Storage, QueryFunc: rules.EngineQueryFunc(on, on.Storage),
		NotifyFunc: func(context.Context, string, ...*rules.Alert) {}, NameValidationScheme: model.UTF8Validation,
		Logger: slog.New(slog.DiscardHandler), Parser: parser.NewParser(parser.Options{}),
	})
	groups, errs := manager.LoadGroups(f.Step.Duration, labels.EmptyLabels(), "", nil, false, r.Files...)
	if len(errs) > 0 {
		return errors.Join(errs...)
	}
	for _, group := range groups {
		for _, alert := range group.AlertingRules() {
			// There is no state of an earlier process, and without this mark no series ALERTS.
			alert.SetRestored(true)
		}
	}
	var failed []error
	for at := f.Start; !at.After(f.Run.Whole.To); at = at.Add(f.Step.Duration) {
		for _, group := range groups {
			group.Eval(ctx, at.Add(time.Millisecond))
			for _, rule := range group.Rules() {
				if err := rule.LastError(); err != nil {
					failed = append(failed, fmt.Errorf("rule %s at %v: %w", rule.Name(), at, err))
				}
			}
		}
	}
	return errors.Join(failed...)
}
