// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package genericstore

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/duration"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/utils/clock"
)

// Texts of empty cells: Unknown if the controller has not reported a value yet, None if it has
// reported that there is none.
const (
	Unknown = "<unknown>"
	None    = "<none>"
)

// Table converts the objects of a kind to rows. Fallback converts objects of other kinds, such as
// the Scale of a cluster.
type Table[T Object] struct {
	Columns  []metav1.TableColumnDefinition
	Row      func(obj T, now time.Time) []any
	Fallback rest.TableConvertor
	Clock    clock.PassiveClock
}

var _ rest.TableConvertor = Table[anyObject]{}

// ConvertToTable implements rest.TableConvertor.
func (t Table[T]) ConvertToTable(ctx context.Context, object, tableOptions runtime.Object) (*metav1.Table, error) {
	now := t.Clock.Now()
	table := &metav1.Table{}
	otherKind := false
	add := func(item runtime.Object) error {
		typed, ok := item.(T)
		if !ok {
			otherKind = true
			return nil
		}
		table.Rows = append(table.Rows, metav1.TableRow{
			Cells:  t.Row(typed, now),
			Object: runtime.RawExtension{Object: item},
		})
		return nil
	}
	if !meta.IsListType(object) {
		_ = add(object)
	} else if err := meta.EachListItem(object, add); err != nil {
		return nil, err
	}
	if otherKind {
		return t.Fallback.ConvertToTable(ctx, object, tableOptions)
	}

	copyListMeta(table, object)
	if options, ok := tableOptions.(*metav1.TableOptions); !ok || !options.NoHeaders {
		table.ColumnDefinitions = t.Columns
	}
	return table, nil
}

func copyListMeta(table *metav1.Table, object runtime.Object) {
	if list, err := meta.ListAccessor(object); err == nil {
		table.ResourceVersion = list.GetResourceVersion()
		table.Continue = list.GetContinue()
		table.RemainingItemCount = list.GetRemainingItemCount()
		return
	}
	if item, err := meta.CommonAccessor(object); err == nil {
		table.ResourceVersion = item.GetResourceVersion()
	}
}

// Age returns how long ago a time was, in the format of kubectl.
func Age(at metav1.Time, now time.Time) string {
	if at.IsZero() {
		return Unknown
	}
	return duration.HumanDuration(now.Sub(at.Time))
}

// Bytes formats a number of bytes with two or three digits and a binary unit.
func Bytes(n int64) string {
	const step = 1024
	if n < step {
		return fmt.Sprintf("%dB", n)
	}
	value, units := float64(n)/step, []string{"Ki", "Mi", "Gi", "Ti"}
	for value >= step && len(units) > 1 {
		value, units = value/step, units[1:]
	}
	if value < 10 {
		return fmt.Sprintf("%.1f%s", value, units[0])
	}
	return fmt.Sprintf("%.0f%s", value, units[0])
}
