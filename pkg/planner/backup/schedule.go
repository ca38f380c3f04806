// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package backup

import (
	"fmt"
	"time"
	_ "time/tzdata" // The image has no zone database of its own.

	"github.com/robfig/cron/v3"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
)

// Schedule says when backups are due. The times that it knows are slots: one backup
// is made for a slot, however late. Slots are whole seconds.
type Schedule interface {
	// Next returns the first slot after t; zero if there is none.
	Next(t time.Time) time.Time
	// Latest returns the last slot after since and not after now; zero if there is none.
	Latest(since, now time.Time) time.Time
}

// ScheduleOf returns the schedule of a periodic backup, nil for one that is made
// once. Slots of an interval are counted from anchor.
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

// interval has a slot every so often, counted from anchor, so that the time which a
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

// calendar has its slots at times of a wall clock.
type calendar struct {
	parsed   cron.Schedule
	location *time.Location
}

// worthKeeping is how much later the next slot must be for one that falls into an
// hour which a change of the clock leaves out to be made up.
const worthKeeping = time.Hour

// Next implements Schedule. A time that occurs twice when clocks go back has two
// slots. A time that is left out when they go forward has its slot at that moment,
// unless another one follows soon: a daily backup is not left out for it.
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

// Latest implements Schedule. It looks back over twice the time again and again, so
// that years of missed slots are not counted one by one.
func (c calendar) Latest(since, now time.Time) time.Time {
	for window := time.Minute; ; window *= 2 {
		from := now.Add(-window)
		whole := !from.After(since)
		if whole {
			from = since
		}
		last := time.Time{}
		for slot := c.Next(from); !slot.IsZero() && !slot.After(now); slot = c.Next(slot) {
			last = slot
		}
		if whole || !last.IsZero() {
			return last
		}
	}
}

// due returns the slot for which a backup is to be made now, zero if there is none,
// and the slot after that. Handled is the slot of the newest backup, zero if there
// was none. Any number of missed slots gives one backup, for the last of them.
//
// A clock that was set back does not stop the schedule until it has caught up with
// what was handled before.
func due(s Schedule, created, handled, now time.Time) (slot, next time.Time) {
	since := handled
	switch {
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
	slot = s.Latest(since, now)
	if slot.Equal(handled) {
		slot = time.Time{}
	}
	return slot, s.Next(now)
}
