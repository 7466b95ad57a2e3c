package live

import (
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"
)

// measurement measures a test of the full size.
type measurement struct {
	*stage
	began   time.Time
	written int
	pids    map[string]int
	spent   map[string]time.Duration // CPU so far
}

// measure begins a measurement.
func (s *stage) measure(f *follower) *measurement {
	m := &measurement{
		stage: s, began: time.Now(), written: s.g.length(), spent: map[string]time.Duration{},
		pids: map[string]int{"source": s.source.pid(), "target": s.target.pid(), "reader": s.reader.pid(), "follower": f.pid(), "test": os.Getpid()},
	}
	for name, pid := range m.pids {
		m.spent[name] = cpuOf(pid)
	}
	s.j.mu.Lock()
	s.j.lags = nil
	s.j.mu.Unlock()
	return m
}

// report logs the lag, and the CPU and the greatest resident memory of the processes that still run.
func (m *measurement) report(title string) {
	took := time.Since(m.began)
	m.j.mu.Lock()
	lags := slices.Sorted(slices.Values(m.j.lags))
	m.j.mu.Unlock()
	text := fmt.Sprintf("%s: %d writes in %v, %.0f a second", title, m.g.length()-m.written, took.Round(time.Second), float64(m.g.length()-m.written)/took.Seconds())
	if n := len(lags); n > 0 {
		at := func(p float64) time.Duration { return lags[min(int(float64(n)*p), n-1)].Round(10 * time.Millisecond) }
		text += fmt.Sprintf("\n  lag p50 %v, p99 %v, max %v, of %d samples", at(0.5), at(0.99), at(1), n)
	}
	for _, name := range []string{"source", "target", "follower", "reader", "test"} {
		if spent := cpuOf(m.pids[name]) - m.spent[name]; spent > 0 {
			text += fmt.Sprintf("\n  %-8s %3.0f %% of a core, at most %d MiB", name, 100*spent.Seconds()/took.Seconds(), peakOf(m.pids[name])>>20)
		}
	}
	m.t.Log(text)
}

// cpuOf returns the CPU time of a process; 0 if it has ended, or if the system does not report it.
func cpuOf(pid int) time.Duration {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0
	}
	_, rest, _ := strings.Cut(string(text), ") ")
	fields := strings.Fields(rest)
	if len(fields) < 13 {
		return 0
	}
	const tick = 10 * time.Millisecond
	user, _ := strconv.Atoi(fields[11])
	system, _ := strconv.Atoi(fields[12])
	return time.Duration(user+system) * tick
}

// peakOf returns the greatest resident memory of a process so far, in bytes; 0 if it is not known.
func peakOf(pid int) (bytes int64) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(text)) {
		if after, ok := strings.CutPrefix(line, "VmHWM:"); ok {
			_, _ = fmt.Sscanf(after, "%d kB", &bytes)
		}
	}
	return bytes << 10
}
