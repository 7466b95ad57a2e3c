package main

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"golang.org/x/term"
)

// ctrlC is the byte that a terminal in raw mode sends for Ctrl-C.
const ctrlC = 0x03

// errInterrupted is the error of a line that Ctrl-C ends.
var errInterrupted = errors.New("interrupted")

// prompt reads lines from a terminal in raw mode. Output appears above the line.
type prompt struct {
	ctx      context.Context
	out      io.Writer
	terminal *term.Terminal
	history  *history
	size     func() (width, height int, err error)

	mu     sync.Mutex // guards the fields below
	typed  []byte     // bytes that were not read yet
	ended  bool       // the terminal ended
	cancel func()     // ends the running query; nil while none runs
	more   chan struct{}

	interrupted bool // the bytes that the terminal has read contain Ctrl-C
}

// newPrompt returns a prompt on a terminal. Its reader ends with in, which the process closes.
func newPrompt(ctx context.Context, in io.Reader, out io.Writer, h *history) *prompt {
	p := &prompt{ctx: ctx, out: out, history: h, more: make(chan struct{}, 1), size: func() (int, int, error) { return 0, 0, io.EOF }}
	p.renew()
	go p.listen(in)
	return p
}

// renew replaces the editor of the line, which would keep the text of a line that Ctrl-C ended.
func (p *prompt) renew() {
	p.terminal = term.NewTerminal(p, "")
	p.terminal.History = p.history
	p.interrupted = false
}

// listen receives the bytes of the terminal. Ctrl-C ends a running query at once, and discards the text
// before it.
func (p *prompt) listen(in io.Reader) {
	buf := make([]byte, 4<<10)
	for {
		n, err := in.Read(buf)
		p.mu.Lock()
		got := buf[:n]
		if at := bytes.LastIndexByte(got, ctrlC); at >= 0 && p.cancel != nil {
			p.cancel()
			got, p.typed = got[at+1:], nil
		}
		p.typed = append(p.typed, got...)
		p.ended = err != nil
		p.mu.Unlock()
		select {
		case p.more <- struct{}{}:
		default: // the reader knows
		}
		if err != nil {
			return
		}
	}
}

// Read implements io.Reader for the editor of the line.
func (p *prompt) Read(b []byte) (int, error) {
	for {
		p.mu.Lock()
		n, ended := copy(b, p.typed), p.ended
		p.typed = p.typed[n:]
		p.mu.Unlock()
		if n > 0 {
			p.interrupted = p.interrupted || bytes.IndexByte(b[:n], ctrlC) >= 0
			return n, nil
		}
		if ended {
			return 0, io.EOF
		}
		select {
		case <-p.more:
		case <-p.ctx.Done():
			return 0, p.ctx.Err()
		}
	}
}

// Write implements io.Writer for the editor of the line.
func (p *prompt) Write(b []byte) (int, error) { return p.out.Write(b) }

// line reads a line after printing text. It returns errInterrupted after Ctrl-C, and io.EOF after Ctrl-D.
func (p *prompt) line(text string) (string, error) {
	p.terminal.SetPrompt(text)
	if width, height, err := p.size(); err == nil && width > 0 {
		_ = p.terminal.SetSize(width, height) // it fails only while a line is shown
	}
	line, err := p.terminal.ReadLine()
	switch {
	case errors.Is(err, term.ErrPasteIndicator):
		err = nil
	case errors.Is(err, io.EOF) && p.ctx.Err() == nil:
		ending := "\r\n"
		if p.interrupted {
			p.renew()
			err, ending = errInterrupted, "^C\r\n"
		}
		_, _ = io.WriteString(p.out, ending) // an error ends the next write, too
	}
	return line, err
}

// query runs a query, whose context Ctrl-C cancels.
func (p *prompt) query(ctx context.Context, run func(context.Context) error) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	p.running(cancel)
	defer p.running(nil)
	return run(ctx)
}

func (p *prompt) running(cancel func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.cancel = cancel
}

// maxHistory is the number of statements to which openHistory cuts a file with more than twice as many.
const maxHistory = 1000

// history has the statements of earlier prompts, the oldest first. It implements term.History.
type history struct {
	entries []string
	file    string // ""; statements are not stored
}

// openHistory reads the file of the history, below the folder dir. If the file cannot be written, the history
// keeps new statements only until the prompt ends.
func openHistory(dir string) *history {
	h := &history{}
	if dir == "" {
		return h
	}
	file := filepath.Join(dir, "tabletop", "sql_history")
	text, err := os.ReadFile(file)
	if err != nil && os.MkdirAll(filepath.Dir(file), 0o700) != nil {
		return h
	}
	for line := range strings.Lines(string(text)) {
		h.entries = append(h.entries, strings.TrimSuffix(line, "\n"))
	}
	h.file = file
	if len(h.entries) > 2*maxHistory {
		h.entries = h.entries[len(h.entries)-maxHistory:]
		h.write(os.O_TRUNC, strings.Join(h.entries, "\n")+"\n")
	}
	return h
}

// keep adds a statement, except for an empty one, a repetition of the last one, and one of several lines.
func (h *history) keep(line string) {
	if line == "" || strings.Contains(line, "\n") || len(h.entries) > 0 && h.entries[len(h.entries)-1] == line {
		return
	}
	h.entries = append(h.entries, line)
	h.write(os.O_APPEND, line+"\n")
}

// write writes to the file. After an error, later statements are no longer stored.
func (h *history) write(how int, text string) {
	if h.file == "" {
		return
	}
	f, err := os.OpenFile(h.file, os.O_WRONLY|os.O_CREATE|how, 0o600)
	if err == nil {
		_, err = f.WriteString(text)
		err = errors.Join(err, f.Close())
	}
	if err != nil {
		h.file = ""
	}
}

// Add implements term.History: lines are kept as statements.
func (*history) Add(string) {}

// Len implements term.History.
func (h *history) Len() int { return len(h.entries) }

// At implements term.History: the newest is the first.
func (h *history) At(i int) string { return h.entries[len(h.entries)-1-i] }
