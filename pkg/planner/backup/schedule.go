// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package backup

import (
	"fmt"
	"time"
	_ "time/tzdata" // The image has no zone database of its own.

	"github.com/robfig/cron/v3"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/resources"
)

// Schedule says when backups are due. One backup is made for each scheduled time, however
// late. Scheduled times are whole seconds.
type Schedule interface {
	// Next returns the first scheduled time after t; zero if there is none.
	Next(t time.Time) time.Time
	// Latest returns the last scheduled time after since and not after now; zero if there
	// is none.
	Latest(since, now time.Time) time.Time
}

// ScheduleOf returns the schedule of a periodic backup, nil for one that is made
// once. The times of an interval are counted from anchor.
func ScheduleOf(policy *v1beta2.BackupPolicy, anchor time.Time) (Schedule, error) {
	switch {
	case policy == nil:
		return nil, nil
	case policy.Schedule != "":
		return cronSchedule(policy.Schedule, policy.TimeZone, anchor)
	case policy.BackupIntervalInSecond > 0:
		return interval{anchor: anchor.Truncate(time.Second), every: time.Duration(policy.BackupIntervalInSecond) * time.Second}, nil
	default:
		return nil, nil
	}
}

// interval has scheduled times at equal distances, counted from anchor. So the time that a
// backup takes never shifts the next one.
type interval struct {
	anchor time.Time
	every  time.Duration
}

// Next implements Schedule.
func (i interval) Next(t time.Time) time.Time {
	if t.Before(i.anchor) { // the clock was set back
		return i.anchor.Add(-(i.anchor.Sub(t) - 1).Truncate(i.every))
	}
	return i.anchor.Add(t.Sub(i.anchor).Truncate(i.every) + i.every)
}

// Latest implements Schedule.
func (i interval) Latest(since, now time.Time) time.Time {
	last := i.Next(now).Add(-i.every)
	if !last.After(since) {
		return time.Time{}
	}
	return last
}

func cronSchedule(text string, zone *string, anchor time.Time) (Schedule, error) {
	parsed, err := cron.ParseStandard(text)
	if err != nil {
		return nil, fmt.Errorf("spec.backupPolicy.schedule %q: %w", text, err)
	}
	if every, ok := parsed.(cron.ConstantDelaySchedule); ok {
		return interval{anchor: anchor.Truncate(time.Second), every: every.Delay}, nil
	}
	location := time.UTC
	if zone != nil {
		if location, err = time.LoadLocation(*zone); err != nil {
			return nil, fmt.Errorf("spec.backupPolicy.timeZone %q: %w", *zone, err)
		}
	}
	return calendar{parsed: parsed, location: location}, nil
}

// calendar schedules by the times of a wall clock.
type calendar struct {
	parsed   cron.Schedule
	location *time.Location
}

// worthKeeping limits which scheduled times are made up for after a change of the clock.
// A time in the hour that the change leaves out is made up for if the next one is at least
// this much later.
const worthKeeping = time.Hour

// Next implements Schedule. A time that occurs twice when clocks are set back is scheduled
// twice. A time that is left out when clocks are set forward is scheduled at that moment,
// unless the next scheduled time follows soon: a daily backup is still made.
func (c calendar) Next(t time.Time) time.Time {
	t = t.In(c.location)
	next := c.parsed.Next(t)
	skipped := c.leftOut(t)
	if !skipped.IsZero() && skipped.After(t) && (next.IsZero() || next.Sub(skipped) > worthKeeping) {
		return skipped.UTC()
	}
	if next.IsZero() {
		return time.Time{}
	}
	return next.UTC()
}

// leftOut returns the moment of a change of the clock that leaves out the first time
// after t at which the wall clock would match; zero if there is no such change.
func (c calendar) leftOut(t time.Time) time.Time {
	wall := c.parsed.Next(onTheWall(t))
	if wall.IsZero() {
		return time.Time{}
	}
	real := time.Date(wall.Year(), wall.Month(), wall.Day(), wall.Hour(), wall.Minute(), wall.Second(), 0, c.location)
	if onTheWall(real).Equal(wall) {
		return time.Time{}
	}
	begin, end := real.ZoneBounds()
	if onTheWall(real).After(wall) {
		return begin // the clock had changed already by then
	}
	return end
}

// onTheWall is what a clock on the wall shows at t, written as a time that knows no
// changes of clocks.
func onTheWall(t time.Time) time.Time {
	return time.Date(t.Year(), t.Month(), t.Day(), t.Hour(), t.Minute(), t.Second(), 0, time.UTC)
}

// Latest implements Schedule. It doubles the window that it looks back over, so that it
// does not count years of missed backups one by one.
func (c calendar) Latest(since, now time.Time) time.Time {
	for window := time.Minute; ; window *= 2 {
		from := now.Add(-window)
		whole := !from.After(since)
		if whole {
			from = since
		}
		last := time.Time{}
		for scheduled := c.Next(from); !scheduled.IsZero() && !scheduled.After(now); scheduled = c.Next(scheduled) {
			last = scheduled
		}
		if whole || !last.IsZero() {
			return last
		}
	}
}

// due returns the scheduled time for which a backup is due now, zero if there is none, and
// the scheduled time after it. Handled is the scheduled time of the newest backup, zero if
// there was none. Any number of missed times gives one backup, for the last of them.
//
// A clock that was ahead once has left a handled time in the future. That is no evidence of a
// backup, so one is due now.
func due(s Schedule, created, handled, now time.Time) (scheduled, next time.Time) {
	since := handled
	switch {
	case resources.IsFuture(handled, now):
		return now.Truncate(time.Second), s.Next(now)
	case handled.IsZero():
		since = created.Add(-time.Second)
		if since.After(now) {
			since = now
		}
	case handled.After(now):
		next = s.Next(now)
		if next.Equal(handled) {
			next = s.Next(next)
		}
		return time.Time{}, next
	}
	scheduled = s.Latest(since, now)
	if scheduled.Equal(handled) {
		scheduled = time.Time{}
	}
	return scheduled, s.Next(now)
}
