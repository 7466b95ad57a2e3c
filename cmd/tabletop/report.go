package main

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/tabletop-emu/tabletop/migrate/report"
	"github.com/tabletop-emu/tabletop/migrate/source"
)

// printReport prints the text of a report on stdout, and colors the verdicts.
func (p *program) printReport(r *report.Report) {
	for line := range strings.Lines(r.Text()) {
		switch verdict, rest, _ := strings.Cut(line, " "); verdict {
		case "ok":
			line = p.paint(ansiGreen, verdict) + " " + rest
		case "FAIL", "error":
			line = p.paint(ansiRed, verdict) + " " + rest
		case "skip", "warning:", "warn":
			line = p.paint(ansiYellow, verdict) + " " + rest
		}
		_, _ = fmt.Fprint(p.stdout, line)
	}
}

// printFailures prints the listed differences of the report, and the number of the others.
func (p *program) printFailures(r *report.Report) {
	for _, f := range r.Failures {
		_, _ = fmt.Fprintf(p.stdout, "  %s\n", f)
	}
	if more := r.Differences - int64(len(r.Failures)); more > 0 {
		_, _ = fmt.Fprintf(p.stdout, "  and %d more\n", more)
	}
}

// The colors of a terminal.
const (
	ansiBold   = "\x1b[1m"
	ansiRed    = "\x1b[31m"
	ansiGreen  = "\x1b[32m"
	ansiPlain  = "\x1b[0m"
	ansiYellow = "\x1b[33m"
)

// clearLine clears the line of a terminal.
const clearLine = "\r\x1b[K"

// inPlace returns text that replaces the line of a terminal. It does not wrap, since clearLine clears only
// one row.
func inPlace(text string) string { return clearLine + "\x1b[?7l" + text + "\x1b[?7h" }

func (p *program) paint(color, text string) string {
	if !p.color {
		return text
	}
	return color + text + ansiPlain
}

func (p *program) bold(text string) string { return p.paint(ansiBold, text) }

// differences formats a number that should be zero.
func (p *program) differences(n int64) string { return p.good(n == 0, fmt.Sprint(n)) }

// outOf formats a number that should equal all.
func (p *program) outOf(n, all int) string {
	return p.good(n == all, fmt.Sprintf("%d of %d", n, all))
}

func (p *program) good(good bool, text string) string {
	if good {
		return p.paint(ansiGreen, text)
	}
	return p.paint(ansiRed, text)
}

// showProgress sets a Progress that shows one line on a terminal. Otherwise, such as in the log of
// a part on another machine, it prints a line from time to time. Call done before anything else
// is printed.
func (p *program) showProgress(into *func(source.Progress)) (done func()) {
	log := &progressLog{w: p.stderr, now: time.Now, terminal: p.progress}
	*into = log.report
	return log.clear
}

// progressEvery is the interval of progress lines in a log, progressShown that on a terminal.
const (
	progressEvery = 30 * time.Second
	progressShown = 100 * time.Millisecond
)

// progressLog writes the progress to w: a line every progressEvery, or one line of a terminal.
type progressLog struct {
	w        io.Writer
	now      func() time.Time
	terminal bool

	at              source.Progress // as last reported
	began, reported time.Time       // start of the pass, and time of the last line
	from            int64           // items at its start: of a resumed load, those already done
}

// report receives the progress of a command.
func (l *progressLog) report(at source.Progress) {
	now := l.now()
	if l.began.IsZero() || at.Phase != l.at.Phase || at.Table != l.at.Table || at.Items < l.at.Items { // another pass
		l.began, l.reported, l.from = now, now, at.Items
	}
	l.at = at
	every := progressEvery
	if l.terminal {
		every = progressShown
	}
	if now.Sub(l.reported) < every || at.Items == at.Total {
		return
	}
	l.reported = now
	rate := float64(at.Items-l.from) / now.Sub(l.began).Seconds()
	text := fmt.Sprintf("%s %s: %d items, %.0f a second", at.Phase, at.Table, at.Items, rate)
	if at.Total > 0 {
		text = fmt.Sprintf("%s %s: %d of %d items, %d %%, %.0f a second", at.Phase, at.Table, at.Items, at.Total, 100*at.Items/at.Total, rate)
		if rate > 0 {
			left := time.Duration(float64(at.Total-at.Items) / rate * float64(time.Second))
			text += fmt.Sprintf(", %v left", max(left, 0).Round(time.Second))
		}
	}
	if l.terminal {
		text = inPlace(text)
	} else {
		text = "tabletop: " + text + "\n"
	}
	_, _ = fmt.Fprint(l.w, text)
}

// clear removes the line from a terminal.
func (l *progressLog) clear() {
	if l.terminal {
		_, _ = fmt.Fprint(l.w, clearLine)
	}
}
