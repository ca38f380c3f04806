// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package validation

import (
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/untrusted"
)

// A status repeats what members, Jobs and Kubernetes say, and any of it may be what this package
// rejects. A controller that writes all or nothing would then report the state from before for ever.

// maxStatusText is how long one text of a status is at most, in bytes.
const maxStatusText = 8 << 10

// fitRounds bounds how often a status is validated. A round shows at least one mistake less.
const fitRounds = 64

// FitClusterStatus returns the status of an EtcdCluster without what a write of it is rejected for,
// and why that was left out.
func FitClusterStatus(status, current v1beta2.ClusterStatus) (v1beta2.ClusterStatus, field.ErrorList) {
	return fit(status.DeepCopy(), &current, validateClusterStatus)
}

// FitBackupStatus is FitClusterStatus for an EtcdBackup.
func FitBackupStatus(status, current v1beta2.BackupStatus) (v1beta2.BackupStatus, field.ErrorList) {
	return fit(status.DeepCopy(), &current, validateBackupStatus)
}

// FitRestoreStatus is FitClusterStatus for an EtcdRestore.
func FitRestoreStatus(status, current v1beta2.RestoreStatus) (v1beta2.RestoreStatus, field.ErrorList) {
	return fit(status.DeepCopy(), &current, validateRestoreStatus)
}

// fit cuts the texts of a status, then leaves out what is rejected until nothing is. It returns the
// current status if that does not end, because the API has accepted the current one.
func fit[S any](status, current *S, validate func(*S) field.ErrorList) (S, field.ErrorList) {
	clean(reflect.ValueOf(status).Elem())
	var all field.ErrorList
	for range fitRounds {
		errs := ratchet(status, current, validate)
		if len(errs) == 0 {
			return *status, bounded(all)
		}
		all = append(all, errs...)
		LeaveOut(status, errs)
	}
	return *current, bounded(all)
}

// LeaveOut leaves out of a status what errs are about, by the paths of their fields. That is the value of a
// field, or the whole entry of a list if the entry needs the field. It returns false if no
// path leads to anything.
func LeaveOut[S any](status *S, errs field.ErrorList) bool {
	done, removed := false, map[string]bool{}
	for _, err := range slices.Backward(errs) { // the last entry of a list first: the others keep their places
		done = leaveOut(reflect.ValueOf(status).Elem(), err, removed) || done
	}
	return done
}

// pathStep is one part of the path of a field, such as conditions[3].
var pathStep = regexp.MustCompile(`^([A-Za-z0-9]+)(?:\[([0-9]+)\])?$`)

// needed are the errors about fields that nothing can stand for.
var needed = []field.ErrorType{field.ErrorTypeRequired, field.ErrorTypeDuplicate, field.ErrorTypeForbidden, field.ErrorTypeTooMany}

func leaveOut(at reflect.Value, err *field.Error, removed map[string]bool) bool {
	path, below := strings.CutPrefix(err.Field, "status.")
	if !below {
		return false
	}
	var list, top reflect.Value
	var entry string
	index, walked := 0, ""
	for _, step := range strings.Split(path, ".") {
		walked += "." + step
		parts := pathStep.FindStringSubmatch(step)
		if parts == nil || at.Kind() != reflect.Struct {
			return false
		}
		if at = fieldByJSON(at, parts[1]); !at.IsValid() {
			return false
		}
		if !top.IsValid() {
			top = at
		}
		if at.Kind() == reflect.Pointer && !at.IsNil() && at.Elem().Kind() == reflect.Struct {
			at = at.Elem()
		}
		if parts[2] == "" {
			continue
		}
		i, numErr := strconv.Atoi(parts[2])
		if removed[walked] {
			return true
		}
		if numErr != nil || at.Kind() != reflect.Slice || i >= at.Len() {
			return false
		}
		list, index, entry, at = at, i, walked, at.Index(i)
	}
	switch {
	case !at.IsZero() && !slices.Contains(needed, err.Type):
		at.SetZero()
	case list.IsValid():
		list.Set(reflect.AppendSlice(list.Slice(0, index), list.Slice(index+1, list.Len())))
		removed[entry] = true
	default:
		top.SetZero()
	}
	return true
}

// fieldByJSON returns the field of a struct by its name in the API; not valid if there is none.
func fieldByJSON(of reflect.Value, name string) reflect.Value {
	for i := range of.NumField() {
		tag, _, _ := strings.Cut(of.Type().Field(i).Tag.Get("json"), ",")
		if tag == name {
			return of.Field(i)
		}
	}
	return reflect.Value{}
}

// clean cuts each text below a value, and takes control characters out of it.
func clean(at reflect.Value) {
	switch at.Kind() {
	case reflect.String:
		if text := at.String(); at.CanSet() {
			at.SetString(untrusted.Within(text, maxStatusText))
		}
	case reflect.Pointer:
		clean(at.Elem())
	case reflect.Slice:
		for i := range at.Len() {
			clean(at.Index(i))
		}
	case reflect.Struct:
		for i := range at.NumField() {
			if at.Type().Field(i).IsExported() {
				clean(at.Field(i))
			}
		}
	default: // no text
	}
}
