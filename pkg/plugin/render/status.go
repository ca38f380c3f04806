// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package render

import (
	"fmt"
	"io"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/plugin/progress"
	"github.com/etcd-operator/etcd-operator/pkg/plugin/report"
)

// labelWidth is the width of the labels of details.
const labelWidth = 13

// NotLive stands behind a verdict that the members have not given now.
const NotLive = "(by the status; the members were not probed)"

// Status draws clusters, each as a tree of its members.
func Status(w io.Writer, list []*report.Status, style Style) {
	for i, s := range list {
		if i > 0 {
			fmt.Fprintln(w)
		}
		drawStatus(w, s, style)
	}
}

func drawStatus(w io.Writer, s *report.Status, style Style) {
	fmt.Fprintf(w, "%s  %s", style.paint(bold, s.Namespace+"/"+s.Name), style.verdict(s.Verdict))
	if !s.Live {
		fmt.Fprint(w, "  "+style.paint(yellow, NotLive))
	}
	fmt.Fprintln(w)
	if s.Message != "" {
		fmt.Fprintln(w, style.wrap("  "+s.Message, "  "))
	}
	drawDetails(w, s, style)
	drawMembers(w, s, style)
	steps := report.Steps(s)
	drawSteps(w, steps, "  ", style, 1)
	if len(steps) > 1 {
		fmt.Fprintf(w, "  %s\n", style.paint(dim, fmt.Sprintf("%d more: kubectl etcd why %s -n %s", len(steps)-1, s.Name, s.Namespace)))
	}
}

func drawDetails(w io.Writer, s *report.Status, style Style) {
	indent := strings.Repeat(" ", labelWidth+3)
	for _, d := range Details(s, style) {
		text := fmt.Sprintf("  %-*s %s", labelWidth, d.Label, strings.ReplaceAll(d.Text, "\n", "\n"+indent))
		fmt.Fprintln(w, style.wrap(text, indent))
	}
}

// Labels of details that say what is wrong, and what is done.
const (
	LabelDeletion  = "deletion"
	LabelFault     = "fault"
	LabelUnknown   = "unknown"
	LabelUnderWay  = "under way"
	LabelOperation = "operation"
	LabelRecovery  = "recovery"
)

// Detail is a fact about a whole cluster.
type Detail struct {
	Label string `json:"label"`
	Text  string `json:"text"`
}

// Details returns the facts about a whole cluster, in the order in which they are shown.
func Details(s *report.Status, style Style) []Detail {
	var list []Detail
	line := func(label, text string) {
		if text != "" {
			list = append(list, Detail{label, text})
		}
	}
	status := &s.Cluster.Status
	if at := s.Cluster.DeletionTimestamp; at != nil {
		line(LabelDeletion, style.paint(red, "was requested "+Age(style.Now.Sub(at.Time))+" ago"))
	}
	line("etcd", versions(s))
	line("voters", voters(s))
	line("database", database(s))
	line("last backup", lastBackup(s.Cluster, style))
	line(LabelOperation, operation(status.Operation, style))
	if report.ConditionOf(s.Cluster, v1beta2.ClusterConditionRecovering).Status != corev1.ConditionTrue {
		line(LabelRecovery, recovery(status.Recovery)) // otherwise the condition says the same
	}
	for _, c := range report.Work(s.Cluster) {
		line(LabelUnderWay, condition(c, style))
	}
	for _, c := range report.Faults(s.Cluster) {
		line(LabelFault, style.paint(red, condition(c, style)))
	}
	if b := status.BlockedBy; b != nil {
		line("blocked by", blockedBy(s, style))
	}
	for _, p := range s.Problems {
		line(LabelUnknown, style.paint(yellow, p))
	}
	return list
}

// blockedBy says what the controller waits for, as status.blockedBy does. A message that another line shows is left out.
func blockedBy(s *report.Status, style Style) string {
	b := s.Cluster.Status.BlockedBy
	text := b.Reason
	if !b.Since.IsZero() {
		text += " for " + Age(style.Now.Sub(b.Since.Time))
	}
	for _, c := range slices.Concat(report.Work(s.Cluster), report.Faults(s.Cluster)) {
		if strings.Contains(c.Message, b.Message) {
			return text
		}
	}
	return text + ": " + b.Message
}

func versions(s *report.Status) string {
	current, target := s.Cluster.Status.CurrentVersion, strings.TrimPrefix(s.Cluster.Spec.Version, "v")
	if current == "" {
		return target
	}
	if current == target || target == "" {
		return current
	}
	release := v1beta2.EtcdRelease(target)
	if v1beta2.EtcdRelease(current) == release {
		return fmt.Sprintf("%s to %s", current, target) // members report the same in both images
	}
	done, all := 0, 0
	for _, m := range report.Members(s) {
		all++
		if v1beta2.EtcdRelease(m.Version) == release {
			done++
		}
	}
	return fmt.Sprintf("%s to %s, %d of %d members run it", current, target, done, all)
}

func voters(s *report.Status) string {
	leader, tolerance := s.Cluster.Status.Leader, s.Cluster.Status.Tolerance
	text := fmt.Sprintf("%d of %d are ready", len(s.Cluster.Status.Members.Ready), ptr.Deref(s.Cluster.Spec.Replicas, 0))
	if h := s.Health; h != nil {
		leader, tolerance = h.Leader, h.Tolerance
		if h.Verdict == v1beta2.VerdictHibernated {
			return "none: spec.size is 0"
		}
		text = fmt.Sprintf("%d of %d serve", h.Serving, h.Voters)
		if h.Voters != h.DesiredSize {
			text += fmt.Sprintf(", desired size %d", h.DesiredSize)
		}
	}
	if tolerance != nil && *tolerance < 0 {
		text += fmt.Sprintf(", %d too few for a quorum", -*tolerance)
	} else if tolerance != nil {
		text += fmt.Sprintf(", fault tolerance %d", *tolerance)
	}
	if leader != "" {
		text += ", leader " + leader
	}
	return text
}

func database(s *report.Status) string {
	var size, used, quota int64
	if s.Health != nil {
		for i := range s.Health.Members {
			if m := &s.Health.Members[i]; m.DBSize > size {
				size, used, quota = m.DBSize, m.DBSizeInUse, m.Quota
			}
		}
	} else {
		size = s.Cluster.Status.DBSize
	}
	if size == 0 {
		return ""
	}
	text := progress.Size(size)
	if quota > 0 {
		text += fmt.Sprintf(" of %s (%d%%)", progress.Size(quota), size*100/quota)
	}
	if used > 0 && used < size {
		text += ", unused " + progress.Size(size-used)
	}
	return text
}

func lastBackup(c *v1beta2.EtcdCluster, style Style) string {
	last := c.Status.LastBackup
	if last == nil {
		return style.paint(yellow, "none")
	}
	text := fmt.Sprintf("%s, %s ago, revision %d", last.Name, Age(style.Now.Sub(last.Time.Time)), last.Revision)
	if !last.Verified {
		return text + ", " + style.paint(yellow, "not verified")
	}
	text += ", verified"
	if last.VerifiedBy != "" {
		text += " by " + string(last.VerifiedBy)
	}
	if last.DataDiffers {
		text += ", " + style.paint(yellow, "may have the wrong data (alarm CORRUPT)")
	}
	return text
}

// operation shows one that runs, or one that failed.
func operation(op *v1beta2.ClusterOperation, style Style) string {
	if op == nil || op.Phase == v1beta2.OperationSucceeded {
		return ""
	}
	text := fmt.Sprintf("%s %s for %s: %s", op.Type, strings.ToLower(string(op.Phase)), Age(style.Now.Sub(op.RequestedAt.Time)), report.OperationAmount(op))
	if op.Phase == v1beta2.OperationFailed {
		text = style.paint(red, fmt.Sprintf("%s of %s ago failed: %s", op.Type, Age(style.Now.Sub(op.RequestedAt.Time)), op.Message))
	} else if op.Message != "" {
		text += "; " + op.Message
	}
	return text
}

// recovery shows one that is under way.
func recovery(r *v1beta2.RecoveryStatus) string {
	if !r.IsInProgress() {
		return ""
	}
	from := "member " + r.Source.Member
	if r.Source.Restore != "" {
		from = "EtcdRestore " + r.Source.Restore
	}
	text := fmt.Sprintf("from %s: %s", from, r.Phase)
	if r.Message != "" {
		text += ": " + r.Message
	}
	return text
}

func condition(c v1beta2.ClusterCondition, style Style) string {
	text := string(c.Type)
	if c.Status != "True" {
		text += "=" + string(c.Status)
	}
	if c.Reason != "" {
		text += " (" + c.Reason + ")"
	}
	text += style.since(c.LastTransitionTime)
	if c.Message != "" {
		text += ": " + c.Message
	}
	return text
}

func drawMembers(w io.Writer, s *report.Status, style Style) {
	members := report.Members(s)
	if len(members) == 0 {
		return
	}
	t := &table{}
	head := MemberColumns(style)
	head[0] = "    " + head[0]
	for i := range head {
		head[i] = style.paint(dim, head[i])
	}
	t.add(head...)
	for i := range members {
		m := &members[i]
		branch, _ := style.branch(i == len(members)-1)
		row := MemberRow(m, style)
		row[0] = branch + " " + style.mark(m.Healthy, m.Fault != "") + " " + row[0]
		t.add(row...)
	}
	for i, line := range t.lines() {
		fmt.Fprintln(w, "  "+line)
		if i == 0 {
			continue
		}
		if m := &members[i-1]; m.Fault != "" {
			_, rest := style.branch(i == len(members))
			fmt.Fprintln(w, style.wrap("  "+rest+"    "+style.paint(red, m.Fault), "  "+rest+"    "))
		}
	}
}

// MemberColumns returns the names of the columns of a table of members.
func MemberColumns(style Style) []string {
	head := []string{"MEMBER", "ROLE", "HEALTH", "VERSION", "DB", "POD", "NODE"}
	if style.Wide {
		head = append(head, "ID", "TERM", "LAG", "CERTIFICATE", "PVC")
	}
	return head
}

// MemberRow returns the cells of a member.
func MemberRow(m *report.Member, style Style) []string {
	row := []string{m.Name, m.Role, m.State, dash(m.Version), size(m.DBSize), dash(m.PodState), dash(m.Node)}
	if style.Wide {
		row = append(row, dash(m.ID), number(m.Term), lag(m), expiry(m, style), dash(strings.TrimSpace(m.PVC+" "+m.PVCState)))
	}
	return row
}

func size(bytes int64) string {
	if bytes == 0 {
		return "-"
	}
	return progress.Size(bytes)
}

func number(n int64) string {
	if n == 0 {
		return "-"
	}
	return fmt.Sprint(n)
}

func lag(m *report.Member) string {
	if !m.LagKnown {
		return "-"
	}
	return fmt.Sprint(m.Lag)
}

func expiry(m *report.Member, style Style) string {
	if m.CertificateExpiry == nil {
		return "-"
	}
	return Age(m.CertificateExpiry.Sub(style.Now))
}

// drawSteps writes what to do; at most some of the steps if most is not 0.
func drawSteps(w io.Writer, steps []v1beta2.NextStep, indent string, style Style, most int) {
	for i, step := range steps {
		if most > 0 && i == most {
			return
		}
		label := fmt.Sprintf("%d.", i+1)
		if most == 1 {
			label = style.paint(bold, "Next:")
		}
		fmt.Fprintln(w, style.wrap(indent+label+" "+step.Why, indent+strings.Repeat(" ", width(label)+1)))
		if step.Command != "" {
			fmt.Fprintf(w, "%s     %s\n", indent, style.paint(bold, step.Command))
		}
	}
}

// Summary says in one line what is known of a cluster.
func Summary(s *report.Status) string {
	parts := []string{s.Namespace + "/" + s.Name, string(s.Verdict), "etcd " + versions(s), "voters: " + voters(s)}
	if op := s.Cluster.Status.Operation; !op.IsOver() {
		parts = append(parts, fmt.Sprintf("%s %s: %s", op.Type, strings.ToLower(string(op.Phase)), report.OperationAmount(op)))
	}
	if r := recovery(s.Cluster.Status.Recovery); r != "" {
		parts = append(parts, "recovery "+r)
	}
	if s.Verdict != v1beta2.VerdictHealthy && s.Message != "" {
		parts = append(parts, s.Message)
	}
	return strings.Join(parts, "  ")
}
