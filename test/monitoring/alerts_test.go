// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package monitoring

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

const root = "../.."

// runbooks is the page with a section for each alert.
const runbooks = "https://github.com/etcd-operator/etcd-operator/blob/main/docs/reference/alerts.md"

const (
	alertsFile = "artifacts/monitoring/alerts.yaml"
	alertsPage = "docs/reference/alerts.md"
)

// rule and rules are the part of a file of rules that is looked at.
type rule struct {
	Alert, Expr, For    string
	Labels, Annotations map[string]string
}

type rules struct {
	Groups []struct {
		Name  string
		Rules []rule
	}
}

var (
	metricName = regexp.MustCompile(`\b[a-zA-Z_:][a-zA-Z0-9_:]*\b`)
	// What stands in an expression and is no name of a metric: strings, the labels in
	// braces and after by, on and similar words, and ranges of time.
	inStrings = regexp.MustCompile(`"(\\.|[^"\\])*"`)
	inBraces  = regexp.MustCompile(`\{[^}]*\}`)
	grouping  = regexp.MustCompile(`\b(by|on|without|ignoring|group_left|group_right)\s*\([^)]*\)`)
	called    = regexp.MustCompile(`\b[a-z_]+\s*\(`)
	ranges    = regexp.MustCompile(`\[[^]]*\]|\b\d[a-z0-9.]*\b`)
	operators = []string{"and", "or", "unless", "bool", "offset"}
	aggregate = regexp.MustCompile(`\b(sum|max|min|count|avg)\b`)
	template  = regexp.MustCompile(`\{\{\s*\$labels\.(\w+)\s*\}\}`)
	section   = regexp.MustCompile(`(?m)^## (.+)$`)
	replaced  = regexp.MustCompile(`label_replace\(\w+, "(\w+)"`)
	equals    = regexp.MustCompile(`(\w+)\s*(=|!=|=~|!~)\s*"`)
)

// names returns the metrics in an expression.
func names(expr string) []string {
	for _, no := range []*regexp.Regexp{inStrings, inBraces, grouping, ranges, aggregate, called} {
		expr = no.ReplaceAllStringFunc(expr, func(found string) string {
			if no == called {
				return "(" // a function, whose arguments are looked at
			}
			return " "
		})
	}
	var list []string
	for _, name := range metricName.FindAllString(expr, -1) {
		if !slices.Contains(operators, name) {
			list = append(list, name)
		}
	}
	return list
}

func TestNames(t *testing.T) {
	t.Parallel()
	for expr, want := range map[string]string{
		`a_b{c="d",e!="f g"} == 1`:   "a_b",
		`time() - x > 900`:           "x",
		`(sum(up) or vector(0)) < 1`: "up",
		`sum by (kind) (rate(n_count{outcome="error"}[10m])) > 0.1`: "n_count",
		`a == 0 and on (namespace, name) b{p=~"x|y"} > 2`:           "a b",
		`max by (a) (b) == 1`: "b",
	} {
		if got := strings.Join(names(expr), " "); got != want {
			t.Errorf("%s: %q, want %q", expr, got, want)
		}
	}
}

// alertsByName reads the alerts.
func alertsByName(t *testing.T) map[string]rule {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, alertsFile))
	if err != nil {
		t.Fatal(err)
	}
	var file rules
	if err := yaml.UnmarshalStrict(text, &file); err != nil {
		t.Fatal(err)
	}
	alerts := map[string]rule{}
	for _, group := range file.Groups {
		for _, rule := range group.Rules {
			if _, twice := alerts[rule.Alert]; twice || rule.Alert == "" {
				t.Errorf("group %s has an alert without a name, or alert %q twice", group.Name, rule.Alert)
			}
			alerts[rule.Alert] = rule
		}
	}
	if len(alerts) == 0 {
		t.Fatalf("%s has no alerts", alertsFile)
	}
	return alerts
}

// TestAlertsAreAboutWhatIsExported reads every alert and looks for its metrics in the
// programs, and for its labels in the metrics.
func TestAlertsAreAboutWhatIsExported(t *testing.T) {
	t.Parallel()
	known := exported(t)
	addOthers(known)
	for name, rule := range alertsByName(t) {
		if severity := rule.Labels["severity"]; severity != "critical" && severity != "warning" {
			t.Errorf("alert %s has the severity %q", name, severity)
		}
		if rule.Annotations["summary"] == "" || rule.Annotations["description"] == "" {
			t.Errorf("alert %s has no summary or no description", name)
		}
		checkRule(t, name, rule.Expr, rule.Annotations["summary"]+rule.Annotations["description"], known)
	}
}

// TestEachAlertHasARunbook: each alert has one section of the page and each section an alert.
// The annotation runbook_url leads to the section.
func TestEachAlertHasARunbook(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile(filepath.Join(root, alertsPage))
	if err != nil {
		t.Fatal(err)
	}
	alerts := alertsByName(t)
	sections := map[string]int{}
	for _, match := range section.FindAllStringSubmatch(string(page), -1) {
		sections[match[1]]++
		if _, ok := alerts[match[1]]; !ok {
			t.Errorf("%s has a section %s; there is no such alert", alertsPage, match[1])
		}
	}
	for name, rule := range alerts {
		if sections[name] != 1 {
			t.Errorf("%s has %d sections %s, want 1", alertsPage, sections[name], name)
		}
		if want := runbooks + "#" + strings.ToLower(name); rule.Annotations["runbook_url"] != want {
			t.Errorf("the runbook of alert %s is %q, want %q", name, rule.Annotations["runbook_url"], want)
		}
	}
}

func checkRule(t *testing.T, alert, expr, text string, known map[string][]string) {
	t.Helper()
	used := names(expr)
	if len(used) == 0 {
		t.Errorf("%s: no metric in %s", alert, expr)
	}
	var labels []string
	for _, name := range used {
		has, found := known[strings.TrimSuffix(strings.TrimSuffix(strings.TrimSuffix(name, "_count"), "_sum"), "_bucket")]
		if !found {
			has, found = known[name]
		}
		if !found {
			t.Errorf("%s: no program exports %s", alert, name)
		}
		labels = append(labels, has...)
	}
	for _, match := range replaced.FindAllStringSubmatch(expr, -1) {
		labels = append(labels, match[1])
	}
	var expected []string
	for _, selector := range inBraces.FindAllString(expr, -1) {
		for _, match := range equals.FindAllStringSubmatch(selector, -1) {
			expected = append(expected, match[1])
		}
	}
	for _, match := range template.FindAllStringSubmatch(text, -1) {
		expected = append(expected, match[1])
	}
	for _, label := range expected {
		if !slices.Contains(labels, label) {
			t.Errorf("%s: no metric of it has label %s, only %q", alert, label, labels)
		}
	}
}

// TestDocumented: every metric of ours, and each that is used of etcd, is in the documentation.
func TestDocumented(t *testing.T) {
	t.Parallel()
	var docs strings.Builder
	pages, err := filepath.Glob(filepath.Join(root, "docs/*/*.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, page := range pages {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		docs.Write(text)
	}
	for name := range ofEtcd {
		if !strings.Contains(docs.String(), "`"+name+"`") {
			t.Errorf("metric %s of etcd is not in docs/", name)
		}
	}
	for name := range exported(t) {
		// Series of one kind are listed as `first_one`, `…_another`.
		short := name[strings.LastIndex(name, "_")+1:]
		if !strings.Contains(docs.String(), name) && !strings.Contains(docs.String(), "_"+short+"`") && !strings.Contains(docs.String(), "_"+short+"{") {
			t.Errorf("metric %s is not in docs/", name)
		}
	}
}

// exported returns the metrics that the programs make, each with its labels: what is
// given to the constructors of metrics in the source.
func exported(t *testing.T) map[string][]string {
	t.Helper()
	found := map[string][]string{}
	err := filepath.WalkDir(filepath.Join(root, "pkg"), func(path string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && entry.Name() == "generated":
			return filepath.SkipDir
		case !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go"):
			return nil
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
		if err != nil {
			return err
		}
		ast.Inspect(file, func(n ast.Node) bool {
			if call, ok := n.(*ast.CallExpr); ok {
				if name, labels := metric(file, call); name != "" {
					found[name] = labels
				}
			}
			return true
		})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(found) < 20 {
		t.Errorf("only %d metrics were found: %v", len(found), found)
	}
	return found
}

// metric returns the name and the labels of what a call makes; "" if that is no metric.
func metric(file *ast.File, call *ast.CallExpr) (name string, labels []string) {
	maker := ""
	switch f := call.Fun.(type) {
	case *ast.Ident:
		maker = f.Name
	case *ast.SelectorExpr:
		maker = f.Sel.Name
	}
	if len(call.Args) == 0 {
		return "", nil
	}
	switch maker {
	case "gauge", "counter": // of the collector of clusters
		labels = []string{"namespace", "name"}
		for _, arg := range call.Args[1:] {
			if text := literal(file, arg); text != "" && !strings.Contains(text, " ") {
				labels = append(labels, text)
			}
		}
		return "etcd_operator_cluster_" + literal(file, call.Args[0]), labels
	case "NewDesc":
		if name = literal(file, call.Args[0]); !strings.HasPrefix(name, "etcd_operator_") || strings.HasSuffix(name, "_") {
			return "", nil
		}
	case "NewGauge", "NewGaugeVec", "NewCounter", "NewCounterVec", "NewHistogram", "NewHistogramVec":
		if name = fullName(file, call.Args[0]); name == "" {
			return "", nil
		}
	default:
		return "", nil
	}
	for _, arg := range call.Args[1:] {
		ast.Inspect(arg, func(n ast.Node) bool {
			if e, ok := n.(ast.Expr); ok {
				if text := literal(file, e); text != "" && !strings.Contains(text, " ") {
					labels = append(labels, text)
				}
			}
			return true
		})
	}
	return name, labels
}

// fullName joins what the options of a metric say.
func fullName(file *ast.File, options ast.Expr) string {
	var parts [3]string
	ast.Inspect(options, func(n ast.Node) bool {
		field, ok := n.(*ast.KeyValueExpr)
		if !ok {
			return true
		}
		if key, ok := field.Key.(*ast.Ident); ok {
			if i := slices.Index([]string{"Namespace", "Subsystem", "Name"}, key.Name); i >= 0 {
				parts[i] = literal(file, field.Value)
			}
		}
		return false
	})
	return strings.Join(slices.DeleteFunc(parts[:], func(part string) bool { return part == "" }), "_")
}

// literal returns the string that an expression is, if it is one or the name of one in
// the same file.
func literal(file *ast.File, e ast.Expr) string {
	switch e := e.(type) {
	case *ast.BasicLit:
		if text, err := strconv.Unquote(e.Value); err == nil && e.Kind == token.STRING {
			return text
		}
	case *ast.Ident:
		for _, decl := range file.Decls {
			general, ok := decl.(*ast.GenDecl)
			if !ok {
				continue
			}
			for _, spec := range general.Specs {
				value, ok := spec.(*ast.ValueSpec)
				if ok && len(value.Names) == 1 && len(value.Values) == 1 && value.Names[0].Name == e.Name {
					return literal(file, value.Values[0])
				}
			}
		}
	}
	return ""
}
