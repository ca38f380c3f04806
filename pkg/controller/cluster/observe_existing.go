// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"k8s.io/klog/v2"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/certificates"
	"github.com/etcd-operator/etcd-operator/pkg/etcd"
	planner "github.com/etcd-operator/etcd-operator/pkg/planner/cluster"
	"github.com/etcd-operator/etcd-operator/pkg/resources"
)

// certificateUseExisting is the use of the certificate for the etcd that a cluster takes over.
const certificateUseExisting v1beta2.CertificateUse = "Existing"

// observeExisting fills in where the etcd that the cluster takes over listens for clients. It does
// so only while that etcd may have members that are not of this cluster.
func observeExisting(ctx context.Context, r *run) {
	existing := r.seen.Cluster.Existing()
	if existing == nil || !r.seen.Cluster.MayHaveOldMembers() {
		r.existing.forget(r.key)
		return
	}
	if lack := r.existing.begin(r.key); lack != "" && !hasBegun(r.seen.Cluster) {
		r.seen.Etcd.NoPlace, r.seen.Etcd.Err = lack, lack
		return
	}
	var template etcd.Endpoint
	if strings.HasPrefix(existing.ClientEndpoints[0], "https://") {
		if err := certify(ctx, r, existing.TLSSecret, &template); err != nil {
			r.secrets.invalidate(r.key)
			r.seen.Etcd.Err = err.Error()
			return
		}
	}
	for _, endpoint := range existing.ClientEndpoints {
		r.seen.existing.Endpoints = append(r.seen.existing.Endpoints, at(template, endpoint, r.seen.Cluster.Namespace))
	}
}

// at returns the endpoint for a URL. A short name, such as that of a Service, means what it means to pods of the cluster's
// namespace. To the controller NAME.SERVICE would be a Service in the namespace SERVICE, whose users could respond as the
// etcd that the cluster takes over.
func at(template etcd.Endpoint, text, namespace string) etcd.Endpoint {
	e := template
	e.Name, e.URL = text, text
	u, err := url.Parse(text)
	if err != nil || strings.Count(u.Hostname(), ".") > 1 || u.Hostname() == "localhost" {
		return e
	}
	if _, err := netip.ParseAddr(u.Hostname()); err != nil {
		e.Address = net.JoinHostPort(u.Hostname()+"."+namespace+".svc", u.Port())
	}
	return e
}

// certify gives an endpoint the client certificate of a Secret.
func certify(ctx context.Context, r *run, name string, e *etcd.Endpoint) error {
	set := r.secrets.of(r.key, r.seen.Cluster, r.seen.Now)
	defer set.release()
	secret, err := readSecret(ctx, r, set, r.seen.Cluster.Namespace, name)
	if err != nil {
		return err
	}
	if secret == nil {
		return fmt.Errorf("secret %s of spec.bootstrap.existing.tlsSecret: %w", name, errMissing)
	}
	parsed := set.parsed.of(certificateUseExisting, secret, func() parsedSecret {
		pair, err := certificates.Read(resources.UseOperator, secret)
		return parsedSecret{pair: pair, err: err}
	})
	if parsed.err != nil {
		return fmt.Errorf("secret %s of spec.bootstrap.existing.tlsSecret: %w", name, parsed.err)
	}
	e.TLS, e.TLSIdentity = parsed.pair.ClientConfig()
	return nil
}

// useExisting adds the old members that responded to the voters that may return the member list.
// A member of another etcd than that of the record does not count while a member of this cluster
// responds. While a member of the cluster votes, its old members are a last resort; see readThroughOldMembers.
func (s *seen) useExisting(statuses map[string]etcd.StatusResult) {
	ids := map[uint64]bool{}
	for _, e := range s.existing.Endpoints {
		a, asked := statuses[e.Name]
		switch {
		case !asked:
		case a.Err != nil:
			s.Etcd.Err = a.Err.Error()
		case len(s.target.Endpoints) == 0 || s.isRecorded(a.Health.ClusterID):
			ids[a.Health.ClusterID] = true
		}
	}
	own := s.ownVoters(statuses)
	if len(ids) > 1 && len(own) == 0 {
		s.Etcd.Err = "the endpoints in spec.bootstrap.existing.clientEndpoints belong to different etcd clusters"
		return
	}
	for _, e := range s.existing.Endpoints {
		if a, asked := statuses[e.Name]; asked && a.Err == nil && ids[a.Health.ClusterID] {
			if e, votes := asVoter(e, a.Health); votes && len(own) > 0 {
				s.lastResort = append(s.lastResort, e)
			} else if votes {
				s.voters.Endpoints = append(s.voters.Endpoints, e)
			}
		}
	}
}

// readThroughOldMembers reads the member list through old members although a member of the cluster votes, for a
// cluster whose own voters are all lost while its old members are the quorum. Old members that start again without their
// data form another etcd with the same IDs. Their list has none of the members that hold the data. No list has these
// under the IDs of before: etcd derives the ID of a member that joins from the time. So the list counts only
// if it has the recorded cluster ID and each voter of the cluster as a voter with its ID.
func readThroughOldMembers(ctx context.Context, r *run, statuses map[string]etcd.StatusResult) {
	if len(r.seen.lastResort) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, membersTimeout)
	defer cancel()
	membership, err := r.Etcd.Members(ctx, r.seen.to(r.seen.lastResort...))
	if err == nil {
		err = r.seen.requireOwnVoters(membership, r.seen.ownVoters(statuses))
	}
	if err != nil {
		r.seen.lastResort = nil
		klog.FromContext(ctx).V(2).Info("The member list of the old members does not count", "err", err)
		r.seen.Etcd.Err, r.seen.Etcd.ListTooLarge = err.Error(), errors.Is(err, etcd.ErrTooLarge)
		return
	}
	r.seen.useMembership(membership)
}

// requireOwnVoters returns an error unless a list has each voter of the cluster: these, those of the last status, and
// those that have a PVC.
func (s *seen) requireOwnVoters(list etcd.Membership, names []string) error {
	if !slices.Contains(recordedClusterIDs(s.Record), list.ClusterID) {
		return fmt.Errorf("the old members list the members of cluster %x, and this is another cluster", list.ClusterID)
	}
	ids, learns := map[string]uint64{}, map[string]bool{}
	for _, m := range s.lastKnown() {
		if !m.Unmanaged {
			ids[m.Name], learns[m.Name] = m.ID, m.Learner || !m.Started
		}
		if !m.Unmanaged && !learns[m.Name] {
			names = append(names, m.Name)
		}
	}
	for _, p := range s.PVCs {
		if p.Owned && !learns[p.Name] && !slices.Contains(s.Record.Removed, p.Name) {
			names = append(names, p.Name)
		}
	}
	for _, name := range names {
		id, known := ids[name]
		if !known || !slices.ContainsFunc(list.Members, func(m etcd.Member) bool { return m.ID == id && !m.Learner && member(s.Cluster, m).Name == name }) {
			return fmt.Errorf("the old members do not list member %s of this cluster as a voter with the ID of the last status: they may have started again without their data", name)
		}
	}
	return nil
}

// ownVoters returns the names of members of the cluster that vote, or may vote. They respond so, or the last status or
// the label of their pods says so, and their pods or their PVCs may hold their data. Then only members of the
// cluster return the member list, or a list that names them all.
func (s *seen) ownVoters(statuses map[string]etcd.StatusResult) []string {
	var names []string
	for _, e := range s.target.Endpoints {
		if a, asked := statuses[e.Name]; asked && a.Err == nil && !a.Health.Learner {
			names = append(names, e.Name)
		}
	}
	for i := range s.Cluster.Status.MemberStatuses {
		m := &s.Cluster.Status.MemberStatuses[i]
		if !m.Unmanaged && (m.Role == v1beta2.MemberRoleLeader || m.Role == v1beta2.MemberRoleFollower) && s.hasPodOrPVC(m.Name) {
			names = append(names, m.Name)
		}
	}
	for i := range s.Pods {
		if p := &s.Pods[i]; p.Owned && !p.Finished && (p.Role == planner.PodVoter || p.Role == planner.PodDraining) {
			names = append(names, p.Name)
		}
	}
	return names
}

// hasPodOrPVC is true while a pod that has not ended, or a PVC, may hold the data of a member.
func (s *seen) hasPodOrPVC(name string) bool {
	pod := s.podOf(name)
	return pod != nil && !pod.Finished || slices.ContainsFunc(s.PVCs, func(p planner.PVC) bool { return p.Owned && p.Name == name })
}

// isRecorded is true for the cluster ID of the record, and for any while the record has none.
func (s *seen) isRecorded(id uint64) bool {
	recorded, err := strconv.ParseUint(s.Record.ClusterID, 16, 64)
	return err != nil || recorded == id
}

// asVoter returns an endpoint with its status, and whether the member there votes and follows a leader.
func asVoter(e etcd.Endpoint, health etcd.MemberHealth) (etcd.Endpoint, bool) {
	e.Status = &health
	return e, !health.Learner && health.Leader != 0
}

// observeOldMembers finds the endpoint of each old member by the ID that responds there: among the
// endpoints of the spec, and otherwise at the client URLs that the member advertises. The members of
// one Service, for example, are found at the latter. From then on an old member is in the target of
// requests under its name, as the members of this cluster are.
func observeOldMembers(ctx context.Context, r *run, statuses map[string]etcd.StatusResult) {
	if len(r.seen.existing.Endpoints) == 0 {
		return
	}
	given := r.seen.existing.Endpoints
	isGiven := func(e etcd.Endpoint) bool {
		return slices.ContainsFunc(given, func(g etcd.Endpoint) bool { return g.Name == e.Name })
	}
	r.seen.voters.Endpoints = slices.DeleteFunc(r.seen.voters.Endpoints, isGiven)
	r.seen.existing = etcd.Target{}
	responded := map[uint64]etcd.Endpoint{}
	results := map[uint64]etcd.StatusResult{}
	note := func(e etcd.Endpoint, a etcd.StatusResult) {
		if _, known := results[a.Health.ID]; a.Err == nil && !known && (r.seen.Etcd.ClusterID == 0 || a.Health.ClusterID == r.seen.Etcd.ClusterID) {
			responded[a.Health.ID], results[a.Health.ID] = e, a
		}
	}
	for _, e := range given {
		note(e, statuses[e.Name])
	}
	if advertised := r.seen.advertised(given[0], results); len(advertised) > 0 {
		statusCtx, cancel := context.WithTimeout(ctx, statusTimeout) // it lasts until the slowest responds
		said := r.Etcd.Statuses(statusCtx, r.seen.to(advertised...))
		cancel()
		for _, e := range leaveOthers(ctx, r, advertised, said) {
			if a, asked := said[e.Name]; asked {
				note(e, a)
			}
		}
	}
	leaders := r.seen.leadersOfVoters()
	for i := range r.seen.Etcd.Members {
		m := &r.seen.Etcd.Members[i]
		e, found := responded[m.ID]
		if !m.Unmanaged || !found || len(leaders) > 0 && !leaders[results[m.ID].Health.Leader] {
			continue
		}
		e.Name = m.Name
		statuses[m.Name] = results[m.ID]
		r.seen.existing.Endpoints = append(r.seen.existing.Endpoints, e)
		r.seen.target.Endpoints = append(r.seen.target.Endpoints, e)
		if e, votes := asVoter(e, results[m.ID].Health); votes {
			r.seen.voters.Endpoints = append(r.seen.voters.Endpoints, e)
		}
	}
}

// leadersOfVoters returns the leaders that members of the cluster follow which vote. An old member that
// follows another leader belongs to another etcd, or an election is under way. If the list was read through old members,
// their leader counts: a member of the cluster that did not return it may follow a leader from before.
func (s *seen) leadersOfVoters() map[uint64]bool {
	leaders, voters := map[uint64]bool{}, s.voters.Endpoints
	if len(s.lastResort) > 0 {
		voters = s.lastResort
	}
	for _, e := range voters {
		if e.Status != nil {
			leaders[e.Status.Leader] = true
		}
	}
	return leaders
}

// maxAdvertised bounds the URLs of a member list that are followed. The user that runs an endpoint chooses them.
const maxAdvertised = 64

// advertised returns the client URLs of old members that have not responded. Their scheme must be
// that of the endpoints of the spec.
func (s *seen) advertised(given etcd.Endpoint, results map[uint64]etcd.StatusResult) []etcd.Endpoint {
	scheme, _, _ := strings.Cut(given.URL, "://")
	var list []etcd.Endpoint
	for _, m := range s.listed {
		if _, found := results[m.ID]; found || !s.isUnmanaged(m.ID) {
			continue
		}
		for _, text := range m.ClientURLs {
			u, err := url.Parse(text)
			if err != nil || u.Scheme != scheme || u.Port() == "" || !isReachable(u.Hostname()) {
				continue
			}
			template := etcd.Endpoint{TLS: given.TLS, TLSIdentity: given.TLSIdentity}
			list = append(list, at(template, u.Scheme+"://"+net.JoinHostPort(u.Hostname(), u.Port()), s.Cluster.Namespace))
		}
	}
	return list[:min(len(list), maxAdvertised)]
}

func (s *seen) isUnmanaged(id uint64) bool {
	return slices.ContainsFunc(s.Etcd.Members, func(m planner.Member) bool { return m.ID == id && m.Unmanaged })
}

// isReachable is false for hosts that name the machine of the controller itself, and for others
// that are no address of a member.
func isReachable(host string) bool {
	if host == "" || host == "localhost" {
		return false
	}
	addr, err := netip.ParseAddr(host)
	return err != nil || !addr.IsLoopback() && !addr.IsUnspecified() && !addr.IsLinkLocalUnicast() && !addr.IsMulticast()
}

// safeName is a name that can stand in the initial cluster of a member that joins.
var safeName = regexp.MustCompile(`^[A-Za-z0-9._-]+$`)

// maxOwnName is how many bytes the name of an old member may have to be used here.
const maxOwnName = 253

// nameOldMembers gives old members their own names, where these can stand in a command line and are
// those of no other object. etcd takes any name, and the same name twice.
func (s *seen) nameOldMembers() {
	count := map[string]int{}
	for i := range s.Etcd.Members {
		m := &s.Etcd.Members[i]
		count[m.Name]++
		if m.Unmanaged && m.OwnName != m.Name {
			count[m.OwnName]++
		}
	}
	for _, p := range slices.Concat(s.Pods, s.Prepared) {
		count[p.Name]++
	}
	for _, c := range slices.Concat(s.PVCs, s.PreparedPVCs) {
		count[c.Name]++
	}
	for i := range s.Etcd.Members {
		if m := &s.Etcd.Members[i]; m.Unmanaged && len(m.OwnName) <= maxOwnName && safeName.MatchString(m.OwnName) && count[m.OwnName] == 1 {
			m.Name = m.OwnName
		}
	}
}
