// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package task

import (
	"context"
	"errors"
	"fmt"
	"os"
	"syscall"
	"time"

	"k8s.io/klog/v2"
	"k8s.io/utils/clock"

	"github.com/etcd-operator/etcd-operator/pkg/agent"
	"github.com/etcd-operator/etcd-operator/pkg/etcd"
	"github.com/etcd-operator/etcd-operator/pkg/objectstore"
	"github.com/etcd-operator/etcd-operator/pkg/snapshot/manifest"
)

// Runner runs tasks.
type Runner struct {
	// Open opens the store of a request; a connection on which no byte moves for the
	// time stall is to fail.
	Open  func(ctx context.Context, store *agent.Store, stall time.Duration) (objectstore.Store, error)
	Pool  *etcd.Pool
	Clock clock.PassiveClock
	// Timers end the wait for a volume that does not respond; nil: those of the real clock.
	Timers clock.WithDelayedExecution
	// Version of this program, for manifests.
	Version  string
	Progress *Progress
	// Patience is how long a request begins again whose first connection is rejected: the
	// proxy of a service mesh that starts beside the agent takes no connections before it
	// is ready. Zero: it does not begin again.
	Patience time.Duration
	// Published is true if clients have written to the member whose data directory is to be filled.
	Published bool
}

// run is one request that is being worked on.
type run struct {
	*Runner

	request *agent.Request
	result  *agent.Result
	store   objectstore.Store // nil if the request has none
	// listed is what prune has listed, for AbortUploads, which follows.
	listed *listing
	// unread are the manifests that the store has and does not return.
	unread skipped
	// made is the backup that this run has stored or found; nil if it did neither.
	made *manifest.Stored
}

// patienceStep is the pause between two connections that are rejected.
const patienceStep = 500 * time.Millisecond

// cleanupTimeout bounds what is done after a failure, when ctx may have ended.
const cleanupTimeout = 30 * time.Second

// Run does what the request asks for. The result has an error if and only if it was
// not done.
func (r *Runner) Run(ctx context.Context, command agent.Command, request *agent.Request) *agent.Result {
	logger := klog.FromContext(ctx).WithValues("command", command, "id", request.ID)
	ctx = klog.NewContext(ctx, logger)
	result := &agent.Result{Command: command, ID: request.ID, Started: r.Clock.Now().UTC()}
	if request.TimeoutSeconds > 0 {
		timeout := time.Duration(request.TimeoutSeconds) * time.Second
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, timeout, &timeoutError{timeout})
		defer cancel()
	}
	logger.Info("Started")
	do := func(ctx context.Context, r *Runner, result *agent.Result) error {
		return r.persist(ctx, command, request, result)
	}
	var err error
	if store := request.Store; store != nil && store.VolumeDir != "" {
		result, err = r.onVolume(ctx, store, stallOf(request), result, do)
	} else {
		err = do(ctx, r, result)
	}
	if err != nil {
		result.Error = describe(ctx, err)
		if request.Store != nil {
			explainStore(result.Error, err, request.Store)
		}
	}
	result.Finished = r.Clock.Now().UTC()
	_, result.Bytes, result.TotalBytes = r.Progress.Get()
	if err != nil {
		logger.Error(nil, "Failed", "class", result.Error.Class, "message", result.Error.Message)
	} else {
		logger.Info("Done", "uri", result.URI, "revision", result.Revision, "size", result.Size, "storedSize", result.StoredSize,
			"member", result.Member, "alreadyDone", result.AlreadyDone, "warning", result.Warning)
	}
	return result
}

// persist does what the request asks for, and begins again while nothing takes its connections.
func (r *Runner) persist(ctx context.Context, command agent.Command, request *agent.Request, result *agent.Result) error {
	err := r.do(ctx, command, request, result)
	for r.isRejected(err) && r.Clock.Since(result.Started) < r.Patience {
		select {
		case <-time.After(patienceStep):
		case <-ctx.Done():
		}
		if ctx.Err() != nil {
			break
		}
		klog.FromContext(ctx).V(2).Info("Connection refused, trying again", "reason", err.Error())
		err = r.do(ctx, command, request, result)
	}
	return err
}

// isRejected is true if a request failed because nothing takes its connections, before any
// byte was moved.
func (r *Runner) isRejected(err error) bool {
	_, moved, _ := r.Progress.Get()
	return moved == 0 && (errors.Is(err, syscall.ECONNREFUSED) || errors.Is(err, etcd.ErrUnavailable))
}

func (r *Runner) do(ctx context.Context, command agent.Command, request *agent.Request, result *agent.Result) error {
	if err := request.Validate(command); err != nil {
		return err
	}
	t := &run{Runner: r, request: request, result: result}
	if command == agent.CommandFetch && request.Fetch.InstallDir != "" {
		// Also if the data directory is filled: the next container looks for the marker, too.
		self, err := os.Executable()
		if err != nil {
			return fmt.Errorf("installing: %w", err)
		}
		if err := Install(self, request.Fetch.InstallDir); err != nil {
			return err
		}
	}
	if dir := request.FilledDir; dir != "" {
		// First of all: Kubernetes runs init containers again with a new sandbox, such as after a reboot. The
		// source may no longer exist then.
		if done, err := isFilled(dir, request.ID); err != nil || done {
			result.AlreadyDone = done
			return err
		}
		if r.Published {
			return fmt.Errorf("%s is empty: %w", dir, errPublished)
		}
	}
	if request.Store != nil {
		r.Progress.Begin("Connect", 0)
		store, err := r.Open(ctx, request.Store, t.stall())
		if err != nil {
			return err
		}
		t.store = store
	}
	switch command {
	case agent.CommandSave:
		return t.makeRoom(ctx, t.save(ctx))
	case agent.CommandComplete:
		return t.complete(ctx)
	case agent.CommandVerify:
		return t.verify(ctx)
	case agent.CommandFetch:
		return t.fetch(ctx)
	case agent.CommandSalvage:
		return t.salvage(ctx)
	case agent.CommandRestore:
		return t.restore(ctx)
	case agent.CommandPrune:
		return t.prune(ctx)
	case agent.CommandAbortUploads:
		t.Progress.Begin("AbortUploads", 0)
		return t.abortUploads(ctx)
	default:
		return errUnknownCommand
	}
}

var errUnknownCommand = errors.New("unknown command")

// stall is how long no byte may move.
func (t *run) stall() time.Duration { return stallOf(t.request) }

func stallOf(request *agent.Request) time.Duration {
	if s := request.StallTimeoutSeconds; s > 0 {
		return time.Duration(s) * time.Second
	}
	return objectstore.DefaultStall
}

// clocks returns the times by which ages and order are judged. What looks old is deleted, and a clock that is
// ahead makes everything look old. So ages are counted to now, the earliest of three clocks. They are that of
// this node, that of the store, which has dated the backup of this run, and that of Kubernetes, by which it
// was due. A backup that was due after present was dated by a clock that was ahead: there the clock of a node
// counts for nothing, and a volume has no other one. A run that has stored nothing yet knows when its backup was due.
func (t *run) clocks(ctx context.Context) (now, present time.Time, err error) {
	now = t.Clock.Now()
	if t.made == nil {
		if save := t.request.Save; save != nil {
			now = manifest.Earlier(now, save.Started)
		}
		return now, now, nil
	}
	stored, err := t.store.Stat(ctx, t.made.Manifest.SnapshotKey(t.made.Key))
	if err != nil {
		return time.Time{}, time.Time{}, err
	}
	present = t.made.Manifest.StartedAt
	now = manifest.Earlier(manifest.Earlier(now, stored.Modified), present)
	if t.request.Store.VolumeDir == "" {
		present = manifest.Earlier(present, stored.Modified)
	}
	return now, present, nil
}

// afterwards returns a context for cleaning up, even if ctx has ended.
func afterwards(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.WithoutCancel(ctx), cleanupTimeout)
}
