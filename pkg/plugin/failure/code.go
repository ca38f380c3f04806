// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package failure

import (
	"context"
	"errors"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// Code is the exit code of the program. The codes are part of its interface.
type Code int

// Values of Code.
const (
	// CodeDone: the command did what it says.
	CodeDone Code = 0
	// CodeFailed: an error without a code of its own.
	CodeFailed Code = 1
	// CodeUsage: the command line is wrong, or a confirmation is missing.
	CodeUsage Code = 2
	// CodeNotMet: the cluster is not healthy, or a condition is not met.
	CodeNotMet Code = 3
	// CodeForbidden: the user lacks a right.
	CodeForbidden Code = 4
	// CodeNotFound: an object does not exist.
	CodeNotFound Code = 5
	// CodeTimedOut: the time limit of the command has passed.
	CodeTimedOut Code = 6
)

// Errors that decide about the exit code.
var (
	// ErrUsage is in every error about the command line.
	ErrUsage = errors.New("wrong usage")
	// ErrNotMet is in every error about a condition that is not met.
	ErrNotMet = errors.New("condition not met")
	// ErrTimedOut is in every error about a time limit that has passed.
	ErrTimedOut = errors.New("timed out")
)

// coded is an error with a text of its own that counts as another error.
type coded struct {
	text string
	kind error
}

func (e *coded) Error() string { return e.text }

func (e *coded) Unwrap() error { return e.kind }

// Usage returns an error about the command line.
func Usage(text string) error { return &coded{text, ErrUsage} }

// NotMet returns an error about a condition that is not met.
func NotMet(text string) error { return &coded{text, ErrNotMet} }

// TimedOut returns an error about a time limit that has passed.
func TimedOut(text string) error { return &coded{text, ErrTimedOut} }

// Interrupted returns an error about a command that the user has ended.
func Interrupted(text string) error { return &coded{text, context.Canceled} }

// ExitError is the end of a program that the plugin ran in a member.
type ExitError struct {
	Code Code
	Err  error
}

func (e *ExitError) Error() string { return e.Err.Error() }

func (e *ExitError) Unwrap() error { return e.Err }

// CodeOf returns the exit code of an error.
func CodeOf(err error) Code {
	var exit *ExitError
	switch {
	case err == nil:
		return CodeDone
	case errors.As(err, &exit):
		return exit.Code
	case errors.Is(err, ErrUsage):
		return CodeUsage
	case errors.Is(err, ErrNotMet):
		return CodeNotMet
	case errors.Is(err, ErrTimedOut), errors.Is(err, context.DeadlineExceeded):
		return CodeTimedOut
	case apierrors.IsForbidden(err), apierrors.IsUnauthorized(err):
		return CodeForbidden
	case apierrors.IsNotFound(err):
		return CodeNotFound
	default:
		return CodeFailed
	}
}
