// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package support

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"

	"github.com/etcd-operator/etcd-operator/pkg/plugin/failure"
	"github.com/etcd-operator/etcd-operator/pkg/plugin/support/redact"
)

const (
	// mostLines is how many lines of each log are read, the newest ones.
	mostLines = 2000
	// mostLogBytes is how much of these lines is read.
	mostLogBytes = 2 << 20
	// longestLine is the longest line that is kept.
	longestLine = 64 << 10
)

// logs adds the log of each container of pods, and of the run before the last restart.
func (c *collector) logs(ctx context.Context, folder string, pods []unstructured.Unstructured) error {
	for i := range pods {
		pod := &corev1.Pod{}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(pods[i].Object, pod); err != nil {
			c.missing("logs of pod "+pods[i].GetName(), fmt.Errorf("the pod cannot be understood: %w", err))
			continue
		}
		for _, s := range append(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses...) {
			if s.State.Running != nil || s.State.Terminated != nil {
				if err := c.log(ctx, folder, pod, s.Name, false); err != nil {
					return err
				}
			}
			if s.LastTerminationState.Terminated != nil {
				if err := c.log(ctx, folder, pod, s.Name, true); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// log adds one log. One that cannot be read is recorded as missing.
func (c *collector) log(ctx context.Context, folder string, pod *corev1.Pod, container string, previous bool) error {
	file, part := folder+"/"+pod.Name+"/"+container, "log of "+pod.Name+"/"+container
	if previous {
		file, part = file+".previous", part+" before its last restart"
	}
	c.Show(part)
	partCtx, cancel := context.WithTimeout(ctx, partTimeout)
	defer cancel()
	stream, err := c.clients.Kube.CoreV1().Pods(pod.Namespace).GetLogs(pod.Name, &corev1.PodLogOptions{
		Container: container, Previous: previous, Timestamps: true, TailLines: ptr.To[int64](mostLines), LimitBytes: ptr.To[int64](mostLogBytes),
	}).Stream(partCtx)
	if err != nil {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		c.missing(part, failure.With(err, failure.Right{Verb: "get", Resource: "pods/log", Namespace: pod.Namespace}))
		return nil
	}
	defer stream.Close()
	content, complete, err := redactLog(io.LimitReader(stream, mostLogBytes))
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case err != nil:
		c.missing(part, fmt.Errorf("the log broke off: %w", err))
	case !complete:
		c.missing(part, errTooLong)
	}
	return c.archive.Add(file+".log", content)
}

// errTooLong means that the last lines of a log are missing.
var errTooLong = errors.New("the last 2000 lines have more than 2 MiB: the newest of them are missing")

// redactLog copies the lines of a log without secrets. A last line that is cut is left out, and
// then the log is not complete.
func redactLog(from io.Reader) (content []byte, complete bool, err error) {
	reader := bufio.NewReaderSize(from, longestLine)
	var out bytes.Buffer
	var lines redact.Lines
	total := 0
	add := func(line []byte) {
		if text, ok := lines.Line(string(bytes.TrimRight(line, "\r\n"))); ok {
			fmt.Fprintln(&out, text)
		}
	}
	for {
		line, err := reader.ReadSlice('\n')
		total += len(line)
		switch {
		case errors.Is(err, io.EOF):
			whole := total < mostLogBytes
			if whole && len(line) > 0 {
				add(line)
			}
			return out.Bytes(), whole, nil
		case errors.Is(err, bufio.ErrBufferFull):
			fmt.Fprintln(&out, redact.Mark+": this line is longer than 64 KiB")
			if err := skipLine(reader, &total); err != nil {
				return out.Bytes(), total < mostLogBytes, ignoreEnd(err)
			}
		case err != nil:
			return out.Bytes(), false, err
		default:
			add(line)
		}
	}
}

// skipLine reads the rest of a line.
func skipLine(reader *bufio.Reader, total *int) error {
	for {
		line, err := reader.ReadSlice('\n')
		*total += len(line)
		if !errors.Is(err, bufio.ErrBufferFull) {
			return err
		}
	}
}

func ignoreEnd(err error) error {
	if errors.Is(err, io.EOF) {
		return nil
	}
	return err
}
