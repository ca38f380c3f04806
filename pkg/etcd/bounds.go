// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package etcd

import (
	"errors"
	"fmt"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
)

const (
	// maxMessage bounds one message of a member, and each chunk of a snapshot, which are 32 KiB. A list of empty members
	// takes 60 times as much memory as on the wire, and that memory is of all clusters.
	maxMessage = 256 << 10
	// maxHeaders bounds the headers of a response, and with them the text of its error.
	maxHeaders = 64 << 10

	// Every member of a list gets a connection, and its name and URLs go into statuses. etcd itself
	// advises at most seven members.
	maxMembers      = 64
	maxURLs         = 64
	maxMemberString = 1 << 10

	// maxReported bounds the errors that a member reports about itself: the alarms of all members are among them.
	maxReported = 4 * maxMembers
	// maxVersion bounds the version, which is a column of kubectl get.
	maxVersion = 64
)

// ErrTooLarge says that what a member lists is larger than any real etcd cluster, so it is not used.
var ErrTooLarge = errors.New("etcd lists more members, or more or longer URLs, than etcd-operator reads")

// checkSize rejects a list of members that costs other clusters memory and connections.
func checkSize(members []*pb.Member) error {
	if len(members) > maxMembers {
		return fmt.Errorf("%d members instead of at most %d: %w; check which program serves the client port", len(members), maxMembers, ErrTooLarge)
	}
	for _, m := range members {
		if err := checkMember(m); err != nil {
			return err
		}
	}
	return nil
}

func checkMember(m *pb.Member) error {
	if len(m.PeerURLs) > maxURLs || len(m.ClientURLs) > maxURLs {
		return fmt.Errorf("member %x has %d peer URLs and %d client URLs instead of at most %d: %w; remove URLs of the member",
			m.ID, len(m.PeerURLs), len(m.ClientURLs), maxURLs, ErrTooLarge)
	}
	for _, texts := range [][]string{{m.Name}, m.PeerURLs, m.ClientURLs} {
		for _, text := range texts {
			if len(text) > maxMemberString {
				return fmt.Errorf("member %x has a name or URL of %d bytes instead of at most %d: %w; shorten it",
					m.ID, len(text), maxMemberString, ErrTooLarge)
			}
		}
	}
	return nil
}
