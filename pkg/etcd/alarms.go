// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package etcd

import (
	"context"
	"slices"
	"time"

	"github.com/Masterminds/semver/v3"
	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/grpc"
)

// alarmsTimeout bounds a request for alarms that no status tells: without a quorum it gets no
// response.
const alarmsTimeout = 500 * time.Millisecond

// TellAlarms adds the alarms of the cluster to the statuses of members before 3.4, which
// leave alarms out. It sends a request only if such a member follows a leader, because the
// request is a raft proposal.
func (c *Client) TellAlarms(ctx context.Context, members ...*MemberHealth) {
	withoutAlarms := slices.DeleteFunc(slices.Clone(members), func(m *MemberHealth) bool { return m.Leader == 0 || tellsAlarms(m.Version) })
	if len(withoutAlarms) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, alarmsTimeout)
	defer cancel()
	alarms, err := c.Alarms(ctx)
	for _, m := range withoutAlarms {
		m.Alarms = alarms
		if err != nil {
			m.Errors = append(m.Errors, "its alarms are not known: "+err.Error())
		}
	}
}

// tellsAlarms is true for servers that tell alarms with their status. A version that cannot
// be read counts as new.
func tellsAlarms(version string) bool {
	v, err := semver.NewVersion(version)
	return err != nil || v.Major() > 3 || (v.Major() == 3 && v.Minor() >= 4)
}

// Alarms returns the alarms of the cluster. Asking is a raft proposal; MemberHealth
// has them for nothing.
func (c *Client) Alarms(ctx context.Context) ([]Alarm, error) {
	var alarms []Alarm
	err := c.change(ctx, "list alarms", func(ctx context.Context, cc *grpc.ClientConn) error {
		resp, err := pb.NewMaintenanceClient(cc).Alarm(ctx, &pb.AlarmRequest{Action: pb.AlarmRequest_GET})
		if err != nil {
			return err
		}
		for _, a := range resp.Alarms {
			alarms = append(alarms, alarmOf(a))
		}
		return nil
	})
	return alarms, err
}

// Disarm disarms an alarm of one type of one member, and returns false if it was not raised. It is
// raised again if its cause remains.
func (c *Client) Disarm(ctx context.Context, alarm Alarm) (disarmed bool, err error) {
	err = c.change(ctx, "disarm alarm", func(ctx context.Context, cc *grpc.ClientConn) error {
		resp, err := pb.NewMaintenanceClient(cc).Alarm(ctx, &pb.AlarmRequest{
			Action:   pb.AlarmRequest_DEACTIVATE,
			MemberID: alarm.MemberID,
			Alarm:    pb.AlarmType(pb.AlarmType_value[string(alarm.Type)]),
		})
		disarmed = err == nil && len(resp.Alarms) > 0
		return err
	})
	return disarmed, err
}
