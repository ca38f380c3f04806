// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package panels

import (
	"context"
	"errors"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/common/model"
)

// constant returns the same series for each expression.
type constant struct {
	matrix model.Matrix
	err    error
}

func (c constant) QueryRange(context.Context, string, Window, time.Duration) (model.Matrix, error) {
	return c.matrix, c.err
}

func (c constant) Query(context.Context, string, time.Time) (model.Vector, error) {
	return nil, c.err
}

func series(value float64, metric model.Metric) *model.SampleStream {
	return &model.SampleStream{Metric: metric, Values: []model.SamplePair{{Value: model.SampleValue(value)}}}
}

// TestCheck: what a dashboard must not do is a problem.
func TestCheck(t *testing.T) {
	t.Parallel()
	run := Run{Namespace: "n", Cluster: "c"}
	queries := []Query{{Dashboard: "d", Panel: "p", Legend: "{{pod}}", Expr: "e", Labels: []string{"pod"}}}
	for name, c := range map[string]struct {
		constant
		want string
	}{
		"good":                   {constant{matrix: model.Matrix{series(1, model.Metric{"pod": "a"}), series(0, model.Metric{"pod": "b"})}}, ""},
		"error":                  {constant{err: errors.New("bad")}, "bad"},
		"empty":                  {constant{}, "no data"},
		"not a number":           {constant{matrix: model.Matrix{series(math.NaN(), model.Metric{"pod": "a"})}}, "no data"},
		"of another cluster":     {constant{matrix: model.Matrix{series(1, model.Metric{"pod": "a", "namespace": "other"})}}, "no data"},
		"label is missing":       {constant{matrix: model.Matrix{series(1, model.Metric{"le": "1"})}}, "no label pod"},
		"same legend":            {constant{matrix: model.Matrix{series(1, model.Metric{"pod": "a", "x": "1"}), series(1, model.Metric{"pod": "a", "x": "2"})}}, "two series"},
		"of the operator itself": {constant{matrix: model.Matrix{series(1, model.Metric{"pod": "a", "namespace": SystemNamespace})}}, ""},
	} {
		var problems []string
		for _, p := range Check(t.Context(), c, run, queries, time.Second).Problems {
			if strings.HasPrefix(p, "d: p: ") { // the others are about the shipped dashboards
				problems = append(problems, p)
			}
		}
		if got := strings.Join(problems, "\n"); c.want == "" && got != "" || !strings.Contains(got, c.want) {
			t.Errorf("%s: problems %q, want %q", name, got, c.want)
		}
	}
}
