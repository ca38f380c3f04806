// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package faults

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"sync"
	"syscall"
	"time"

	"github.com/etcd-operator/etcd-operator/test/harness"
)

const (
	// A life of a program that is killed again and again: from less than it takes to start to
	// enough for several steps.
	shortestLife = 200 * time.Millisecond
	longestLife  = 3 * time.Second

	// storageDir is the volume of the API server. Its etcd keeps its data in storageData below
	// that.
	storageDir  = "/var/lib/etcd-operator"
	storageData = "etcd"
	storageLost = "etcd.lost"
)

func killController(ctx context.Context, s *stage) (undo, error) {
	return killAgain(ctx, s, harness.Controller)
}

func killAPIServer(ctx context.Context, s *stage) (undo, error) {
	return killAgain(ctx, s, harness.APIServer)
}

// killAgain kills an installed program at random moments. The end gives it a new pod, which
// Kubernetes starts without a back-off.
func killAgain(ctx context.Context, s *stage, program string) (undo, error) {
	if err := killProgram(ctx, s, program); err != nil {
		return nil, err
	}
	moments := rand.New(rand.NewPCG(s.dice.Uint64(), 0))
	killing, stop := context.WithCancel(context.WithoutCancel(ctx))
	var group sync.WaitGroup
	group.Go(func() {
		kills := 1
		for {
			life := shortestLife + time.Duration(moments.Int64N(int64(longestLife-shortestLife)))
			select {
			case <-killing.Done():
				s.logf("%s was killed %d times", program, kills)
				return
			case <-time.After(life):
			}
			// Kubernetes may not have started it again yet.
			if killProgram(killing, s, program) == nil {
				kills++
			}
		}
	})
	return func(ctx context.Context) error {
		stop()
		group.Wait()
		return s.env.RestartProgram(ctx, program)
	}, nil
}

// killProgram kills the processes of an installed program in all its pods.
func killProgram(ctx context.Context, s *stage, program string) error {
	pods, err := s.env.ProgramPods(ctx, program)
	if err != nil {
		return err
	}
	defer pods.Close()
	killed := false
	errs := []error{fmt.Errorf("kill %s: %w", program, harness.ErrNoProcess)}
	for _, p := range pods.List() {
		err := harness.Signal(p, p.Spec.Containers[0].Name, syscall.SIGKILL)
		killed = killed || err == nil
		errs = append(errs, err)
	}
	if killed {
		return nil
	}
	return errors.Join(errs...)
}

// loseStorage takes the data of the API server's etcd away and kills the API server. The
// members must not notice: a server that finds an empty storage beside members does not start.
// The end brings the data back.
func loseStorage(ctx context.Context, s *stage) (undo, error) {
	pods, err := s.env.ProgramPods(ctx, harness.APIServer)
	if err != nil {
		return nil, err
	}
	defer pods.Close()
	list := pods.List()
	if len(list) != 1 {
		return nil, fmt.Errorf("%d pods of %s exist, not 1; this fault needs the server with an etcd inside, which artifacts/install installs", len(list), harness.APIServer)
	}
	pid, err := harness.ContainerProcess(list[0], list[0].Spec.Containers[0].Name)
	if err != nil {
		return nil, err
	}
	// The open directory stays valid when the process and its mounts are no more.
	volume, err := os.OpenRoot(fmt.Sprintf("/proc/%d/root%s", pid, storageDir))
	if err != nil {
		return nil, fmt.Errorf("open the volume of %s: %w", harness.APIServer, err)
	}
	if err := syscall.Kill(pid, syscall.SIGSTOP); err != nil {
		return nil, errors.Join(fmt.Errorf("stop process %d of %s: %w", pid, harness.APIServer, err), volume.Close())
	}
	if err := volume.Rename(storageData, storageLost); err != nil {
		err = fmt.Errorf("take the data of %s away: %w", harness.APIServer, err)
		return nil, errors.Join(err, syscall.Kill(pid, syscall.SIGCONT), volume.Close())
	}
	back := func(ctx context.Context) error { return errors.Join(bringStorageBack(ctx, s, volume), volume.Close()) }
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		return nil, errors.Join(fmt.Errorf("kill process %d of %s: %w", pid, harness.APIServer, err), undoNow(ctx, back))
	}
	return back, nil
}

// bringStorageBack stops the API server, puts its data back and starts it. It puts the data
// back as long as any of this is possible.
func bringStorageBack(ctx context.Context, s *stage, volume *os.Root) error {
	_, stopErr := s.env.ScaleProgram(ctx, harness.APIServer, 0)
	if stopErr != nil {
		stopErr = fmt.Errorf("stop the API server: %w", stopErr)
	}
	// A server that was started meanwhile has made an empty storage. It goes only while the data
	// is beside it.
	_, err := volume.Stat(storageLost)
	if err == nil {
		err = volume.RemoveAll(storageData)
	}
	if err == nil {
		err = volume.Rename(storageLost, storageData)
	}
	if err != nil {
		err = fmt.Errorf("bring the data of the API server back: %w; its volume has it as %s: rename that to %s while the server is stopped", err, storageLost, storageData)
	}
	// The stop may have used up the time of the caller.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), undoTimeout)
	defer cancel()
	_, startErr := s.env.ScaleProgram(ctx, harness.APIServer, 1)
	if startErr != nil {
		startErr = fmt.Errorf("start the API server: %w", startErr)
	}
	return errors.Join(stopErr, err, startErr)
}
