// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package etcd

import (
	"errors"
	"slices"
	"strings"
	"testing"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"

	"github.com/etcd-operator/etcd-operator/pkg/untrusted"
)

// TestMemberListIsBounded: any program can serve the client port, and what it lists must not cost
// other clusters connections and memory.
func TestMemberListIsBounded(t *testing.T) {
	t.Parallel()
	members := func(n int) []*pb.Member {
		list := make([]*pb.Member, n)
		for i := range list {
			list[i] = &pb.Member{ID: uint64(i + 1), Name: "m", PeerURLs: []string{"http://m:2380"}}
		}
		return list
	}
	large := members(3_500)
	for _, m := range large {
		m.Name = strings.Repeat("n", maxMemberString)
	}
	for name, test := range map[string]struct {
		members []*pb.Member
		want    error
	}{
		"as many members as allowed":    {members(maxMembers), nil},
		"one member too many":           {members(maxMembers + 1), ErrTooLarge},
		"almost 4 MiB of members":       {large, ErrTooLarge},
		"as many URLs as allowed":       {[]*pb.Member{{ID: 1, ClientURLs: slices.Repeat([]string{"u"}, maxURLs)}}, nil},
		"one peer URL too many":         {[]*pb.Member{{ID: 1, PeerURLs: slices.Repeat([]string{"u"}, maxURLs+1)}}, ErrTooLarge},
		"one client URL too many":       {[]*pb.Member{{ID: 1, ClientURLs: slices.Repeat([]string{"u"}, maxURLs+1)}}, ErrTooLarge},
		"a name that is too long":       {[]*pb.Member{{ID: 1, Name: strings.Repeat("n", maxMemberString+1)}}, ErrTooLarge},
		"a peer URL that is too long":   {[]*pb.Member{{ID: 1, PeerURLs: []string{strings.Repeat("u", maxMemberString+1)}}}, ErrTooLarge},
		"a client URL that is too long": {[]*pb.Member{{ID: 1, ClientURLs: []string{strings.Repeat("u", maxMemberString+1)}}}, ErrTooLarge},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := (&fakeServer{version: "3.6.0", members: test.members}).serve(t, "m")
			p := NewPool(PoolConfig{})
			defer p.Close()
			c := p.Client(Target{Endpoints: []Endpoint{e}})
			for how, read := range map[string]func() (Membership, error){
				"Members":    func() (Membership, error) { return c.Members(t.Context()) },
				"OwnMembers": func() (Membership, error) { return c.OwnMembers(t.Context(), e) },
				"View":       func() (Membership, error) { return c.View(t.Context(), e) },
			} {
				got, err := read()
				if !errors.Is(err, test.want) || (test.want != nil && len(got.Members) > 0) {
					t.Errorf("%s returns %d members and the error %v instead of %v", how, len(got.Members), err, test.want)
				}
			}
		})
	}
}

func TestReportedHealthIsBounded(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("\x1b[31mx", untrusted.MaxText)
	h := healthOf(&pb.StatusResponse{Version: long, Errors: slices.Repeat([]string{long}, maxReported+1)})
	if len(h.Version) > maxVersion || len(h.Errors) != maxReported || len(h.Errors[0]) > untrusted.MaxText {
		t.Errorf("the version has %d bytes; %d errors are kept, the first of %d bytes", len(h.Version), len(h.Errors), len(h.Errors[0]))
	}
	if strings.Contains(h.Version+h.Errors[0], "\x1b") {
		t.Error("control characters are kept")
	}
	honest := healthOf(&pb.StatusResponse{Version: "3.6.16", Errors: []string{"etcdserver: no leader"}})
	if honest.Version != "3.6.16" || !slices.Equal(honest.Errors, []string{"etcdserver: no leader"}) {
		t.Errorf("an honest response becomes %+v", honest)
	}
}
