// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package validation

import (
	"strings"
	"time"
	_ "time/tzdata" // The image that validates has no zone database of its own.

	"github.com/robfig/cron/v3"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
)

const maxScheduleLength = 256

// scheduleProbe is a time shortly before a leap day, so that a schedule that is due
// only on one is found to be due at all. Validation has no clock.
var scheduleProbe = time.Date(2024, time.January, 1, 0, 0, 0, 0, time.UTC)

func validateSchedule(schedule string, path *field.Path) field.ErrorList {
	if schedule == "" {
		return nil
	}
	if len(schedule) > maxScheduleLength {
		return field.ErrorList{field.TooLong(path, "", maxScheduleLength)}
	}
	// The parser takes a zone before the fields, and panics on half of one.
	if strings.Contains(schedule, "TZ") {
		return field.ErrorList{invalid(path, schedule, "must not name a time zone; set timeZone instead")}
	}
	parsed, err := cron.ParseStandard(schedule)
	if err != nil {
		return field.ErrorList{invalid(path, schedule, `must have five fields (minute, hour, day of month, month, day of week), such as "0 */6 * * *": %s`, err)}
	}
	if parsed.Next(scheduleProbe).IsZero() {
		return field.ErrorList{invalid(path, schedule, "names a day that never comes")}
	}
	return nil
}

func validateTimeZone(zone *string, path *field.Path) field.ErrorList {
	if zone == nil {
		return nil
	}
	const example = "must be a name of the IANA time zone database, such as Europe/Berlin"
	// LoadLocation takes these two for the zone of the process.
	if *zone == "" || strings.EqualFold(*zone, "Local") {
		return field.ErrorList{invalid(path, *zone, example)}
	}
	if _, err := time.LoadLocation(*zone); err != nil {
		return field.ErrorList{invalid(path, *zone, example)}
	}
	return nil
}

func validateMaxAge(age *v1beta2.Duration, path *field.Path) field.ErrorList {
	if age != nil && age.Duration <= 0 {
		return field.ErrorList{invalid(path, age.Duration.String(), "must be more than 0, such as 720h; leave it out for no limit")}
	}
	return nil
}
