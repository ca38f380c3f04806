// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"

	"golang.org/x/term"

	"github.com/etcd-operator/etcd-operator/pkg/plugin/screen"
)

// plainLines are the lines of an input that is no terminal.
type plainLines struct{ scanner *bufio.Scanner }

func newPlainLines(in io.Reader) *plainLines {
	scanner := bufio.NewScanner(in)
	scanner.Buffer(make([]byte, 64<<10), longestLine)
	return &plainLines{scanner}
}

// ReadLine reads the next line.
func (l *plainLines) ReadLine(ctx context.Context, _ string) (string, error) {
	return await(ctx, func() (string, error) {
		if l.scanner.Scan() {
			return l.scanner.Text(), nil
		}
		if err := l.scanner.Err(); err != nil {
			return "", fmt.Errorf("read a line: %w", err)
		}
		return "", io.EOF
	})
}

// Ask rejects every question: the input has commands, and no replies.
func (l *plainLines) Ask(context.Context, string) (string, error) { return "", errDeclined }

// await returns what read returns. The end of the context ends the wait for it.
func await(ctx context.Context, read func() (string, error)) (string, error) {
	type result struct {
		text string
		err  error
	}
	done := make(chan result, 1)
	go func() {
		text, err := read()
		done <- result{text, err}
	}()
	select {
	case <-ctx.Done():
		return "", ctx.Err()
	case r := <-done:
		return r.text, r.err
	}
}

// editor edits lines on a terminal and remembers them.
type editor struct {
	terminal *term.Terminal
	out      io.Writer
	history  *history
	size     func() (columns, rows int)
	// raw makes the terminal pass on every key, until restore is called. While a command runs
	// the terminal is not raw: it turns Ctrl-C into a signal.
	raw func() (restore func() error, err error)
}

func newEditor(s Surroundings) *editor {
	out := screen.Raw(s.Err) // the lines are those of the user
	terminal := term.NewTerminal(struct {
		io.Reader
		io.Writer
	}{&keys{s.In}, out}, "")
	e := &editor{terminal: terminal, out: out, history: &history{History: terminal.History}, size: s.Size, raw: s.Raw}
	terminal.History = e.history
	return e
}

// ReadLine reads a line that the user edits.
func (e *editor) ReadLine(ctx context.Context, prompt string) (string, error) {
	e.terminal.SetPrompt(prompt)
	if columns, rows := e.size(); columns > 0 && rows > 0 {
		if err := e.terminal.SetSize(columns, rows); err != nil {
			return "", fmt.Errorf("draw the prompt: %w", err)
		}
	}
	restore, err := e.raw()
	if err != nil {
		return "", fmt.Errorf("prepare the terminal: %w", err)
	}
	line, err := await(ctx, e.terminal.ReadLine)
	if restored := restore(); restored != nil {
		return "", fmt.Errorf("restore the terminal: %w", restored)
	}
	if err != nil {
		fmt.Fprintln(e.out) // behind the prompt
	}
	return line, err
}

// Ask reads a reply, which is no line that the user wants back.
func (e *editor) Ask(ctx context.Context, question string) (string, error) {
	e.history.off = true
	defer func() { e.history.off = false }()
	reply, err := e.ReadLine(ctx, question)
	if errors.Is(err, io.EOF) {
		return "", errDeclined
	}
	return reply, err
}

// history remembers lines while it is not off.
type history struct {
	term.History

	off bool
}

// Add adds the last line. An empty one is no line to come back to.
func (h *history) Add(line string) {
	if !h.off && line != "" {
		h.History.Add(line)
	}
}

// keys makes Ctrl-C discard the line: the editor would take it for the end of the input.
type keys struct{ from io.Reader }

const (
	ctrlC = 0x03
	// discard moves to the end of the line, deletes everything before it, and ends it.
	discard = "\x05\x15\r"
)

// Read reads keys. A read of fewer bytes than discard has returns io.ErrShortBuffer.
func (k *keys) Read(p []byte) (int, error) {
	if len(p) < len(discard) {
		return 0, io.ErrShortBuffer
	}
	n, err := k.from.Read(p[:len(p)/len(discard)])
	var keys []byte
	for _, key := range p[:n] {
		if key == ctrlC {
			keys = append(keys, discard...)
		} else {
			keys = append(keys, key)
		}
	}
	return copy(p, keys), err
}
