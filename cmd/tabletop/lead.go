package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/tabletop-emu/tabletop/internal/clock"
)

// leadFile, in the folder of --data, holds how far the clock was moved ahead of the machine's,
// as a duration. Stored resources have times of that clock: with an earlier clock, READY
// resources would be CREATING again, and replicated writes would be pending again.
const leadFile = "clock-lead"

// takeLead moves the clock as far ahead as it was when the data was last served.
func (s *serving) takeLead() error {
	name := filepath.Join(s.command.Data, leadFile)
	text, err := os.ReadFile(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("--data: %w", err)
	}
	lead, err := time.ParseDuration(strings.TrimSpace(string(text)))
	if err != nil {
		return badInput("--data: %s: %q is not the lead of a clock; expected a duration such as 25h0m0s", name, text)
	}
	s.clock.Advance(lead)
	return nil
}

// lead returns how far the clock is ahead of the machine's, or 0.
func (s *serving) lead() time.Duration {
	return max(0, s.clock.Now().Sub(clock.New().Now()).Round(time.Millisecond))
}

// keepLead saves the lead for the next start.
func (s *serving) keepLead() error {
	s.leads.Lock() // concurrent requests may move the clock
	defer s.leads.Unlock()
	name := filepath.Join(s.command.Data, leadFile)
	lead := s.lead()
	if lead == 0 {
		if err := os.Remove(name); !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		return nil
	}
	const private = 0o600
	err := os.WriteFile(name+".new", []byte(lead.String()+"\n"), private)
	if err == nil {
		err = os.Rename(name+".new", name)
	}
	if err != nil {
		return fmt.Errorf("the clock was moved, but a restart will undo that: %w", err)
	}
	return nil
}
