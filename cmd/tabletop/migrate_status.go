package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/tabletop-emu/tabletop/internal/phrase"
	"github.com/tabletop-emu/tabletop/migrate"
)

type statusCommand struct {
	Tables  []string      `arg:"" optional:"" help:"The DynamoDB tables. Default: all that are, or were, followed." placeholder:"TABLE"`
	Watch   bool          `help:"Show the status again each second, until interrupted." group:"Status:"`
	Wait    string        `help:"Wait until all conditions hold for each table: phase=PHASE, lag=DURATION (at most), letters=N. Separate them with commas." placeholder:"CONDITIONS" group:"Status:"`
	Timeout time.Duration `default:"5m" help:"How long --wait waits; then the exit code is 1. Default: ${default}." placeholder:"DURATION" group:"Status:"`
	Letters bool          `help:"List the changes that could not be applied." group:"Status:"`
	JSON    bool          `name:"json" help:"Print JSON." group:"Status:"`
	liveTargetFlags

	conditions []condition
}

// condition is a condition of --wait.
type condition struct {
	text string
	met  func(migrate.FollowStatus) bool
}

// parseConditions parses the value of --wait.
func parseConditions(text string) (all []condition, err error) {
	for part := range strings.SplitSeq(text, ",") {
		part = strings.Replace(strings.TrimSpace(part), "<", "=", 1)
		c := condition{text: part}
		switch {
		case strings.HasPrefix(part, "phase="):
			phase := strings.TrimPrefix(part, "phase=")
			if !slices.Contains(migrate.Phases(), phase) {
				return nil, fmt.Errorf("--wait: %q is not a phase; expected %s", phase, strings.Join(migrate.Phases(), ", "))
			}
			c.met = func(s migrate.FollowStatus) bool { return s.Phase == phase }
		case strings.HasPrefix(part, "lag="):
			most, err := time.ParseDuration(strings.TrimPrefix(part, "lag="))
			if err != nil {
				return nil, fmt.Errorf("--wait: %q: %w", part, err)
			}
			c.met = func(s migrate.FollowStatus) bool { return s.Running != "" && s.Lag >= 0 && s.Lag <= most }
		case strings.HasPrefix(part, "letters="):
			n, err := strconv.Atoi(strings.TrimPrefix(part, "letters="))
			if err != nil {
				return nil, fmt.Errorf("--wait: %q: %w", part, err)
			}
			c.met = func(s migrate.FollowStatus) bool { return s.LetterCount == n }
		default:
			return nil, fmt.Errorf("--wait: %q must be phase=PHASE, lag=DURATION or letters=N", part)
		}
		all = append(all, c)
	}
	return all, nil
}

// Validate checks the flags.
func (c *statusCommand) Validate() error {
	var err error
	if c.Wait != "" {
		c.conditions, err = parseConditions(c.Wait)
	}
	if c.Watch && c.Wait != "" {
		err = errors.Join(err, errors.New("--watch and --wait exclude each other"))
	}
	return errors.Join(err, c.checkLiveTarget())
}

// Help is the long help of the command.
func (*statusCommand) Help() string {
	return `Shows the migrations from live tables in an instance: the phase, the process that follows, the lag behind the source, what it applied, and the command that comes next. The lag is as of the last checkpoint, which a follower writes each second.

Exits 0; with --wait 1 when the time is over; 2 when a table has no migration; 3 when a server fails.`
}

func (*statusCommand) examples() []example {
	return []example{
		{"All migrations of a server", "tabletop migrate status --target 127.0.0.1:8087"},
		{"In a script, before the switch", "tabletop migrate status Orders --wait phase=FOLLOWING,lag=2s,letters=0 --target 127.0.0.1:8087"},
	}
}

// statusEvery is the interval of --watch and --wait.
const statusEvery = time.Second

// Run prints the status.
func (c *statusCommand) Run(ctx context.Context, p *program) error {
	return c.withTarget(ctx, "--target", c.Target, func(t *target) error {
		end := time.Now().Add(c.Timeout)
		for {
			all, err := c.read(ctx, t)
			if err != nil {
				return err
			}
			open := c.open(all)
			if c.Wait == "" || open == "" || !time.Now().Before(end) {
				if c.Watch && p.color {
					_, _ = fmt.Fprint(p.stdout, "\x1b[H\x1b[J")
				}
				if err := c.print(p.stdout, all); err != nil {
					return err
				}
			}
			switch {
			case c.Wait != "" && open == "", c.Wait == "" && !c.Watch:
				return nil
			case c.Wait != "" && !time.Now().Before(end):
				return &exitError{exitDifferences, fmt.Errorf("after %v, %s does not hold", c.Timeout, open)}
			}
			if err := sleep(ctx, statusEvery); err != nil {
				if c.Watch {
					return nil // Ctrl-C ends it
				}
				return err
			}
		}
	})
}

// read reads the status of the tables.
func (c *statusCommand) read(ctx context.Context, t *target) ([]migrate.FollowStatus, error) {
	all, err := migrate.Status(ctx, t.conn, c.common(t))
	if err != nil {
		return nil, asInputError(err)
	}
	for _, name := range c.Tables {
		if c.Wait == "" && !slices.ContainsFunc(all, func(s migrate.FollowStatus) bool { return s.Table == name }) {
			return nil, badInput("table %s has no migration: tabletop migrate follow %[1]s begins one", name)
		}
	}
	if len(c.Tables) > 0 {
		all = slices.DeleteFunc(all, func(s migrate.FollowStatus) bool { return !slices.Contains(c.Tables, s.Table) })
	}
	return all, nil
}

// open returns the first condition that does not hold; "" if all do.
func (c *statusCommand) open(all []migrate.FollowStatus) string {
	if len(all) < max(1, len(c.Tables)) {
		return "a migration of each table"
	}
	for _, s := range all {
		for _, x := range c.conditions {
			if !x.met(s) {
				return x.text + " of table " + s.Table
			}
		}
	}
	return ""
}

func (c *statusCommand) print(w io.Writer, all []migrate.FollowStatus) error {
	if c.JSON {
		if all == nil {
			all = []migrate.FollowStatus{}
		}
		text, err := json.MarshalIndent(all, "", "  ")
		if err == nil {
			_, err = fmt.Fprintf(w, "%s\n", text)
		}
		return err
	}
	if len(all) == 0 {
		_, err := fmt.Fprintln(w, "no table is followed: load an export (tabletop migrate load), then: tabletop migrate follow")
		return err
	}
	var out strings.Builder
	for i, s := range all {
		if i > 0 {
			out.WriteByte('\n')
		}
		c.table(&out, s)
	}
	_, err := io.WriteString(w, out.String())
	return err
}

// table writes the status of one table.
func (c *statusCommand) table(out *strings.Builder, s migrate.FollowStatus) {
	line := func(name, format string, args ...any) {
		fmt.Fprintf(out, "  %-8s %s\n", name, fmt.Sprintf(format, args...))
	}
	fmt.Fprintf(out, "%s -> %s: %s since %s, set by %s\n", s.Table, s.Target, s.Phase, s.At.UTC().Format(time.RFC3339), s.By)
	switch {
	case s.Running == "":
		line("follower", "none")
	case s.Mode == "":
		line("follower", "%s", s.Running)
	default:
		line("follower", "%s, %s", s.Running, s.Mode)
	}
	if !s.Saved.IsZero() {
		worst := ""
		if len(s.Shards) > 0 {
			behind := slices.MaxFunc(s.Shards, func(a, b migrate.ShardLag) int { return int(a.Lag - b.Lag) })
			worst = fmt.Sprintf(", worst of %s: %s", phrase.Counted(int64(len(s.Shards)), "shard"), behind.ID)
		}
		if s.Throttles > 0 {
			worst += fmt.Sprintf("; throttled %d times", s.Throttles)
		}
		if s.ClockDiffers != 0 {
			worst += "; the clock of the follower differs by " + s.ClockDiffers.Round(time.Second).String()
		}
		line("lag", "%s at %s%s", lagText(s.Lag), s.Saved.UTC().Format(time.RFC3339), worst)
		line("applied", "%s, %.0f a second; %s written without a read, %d with one, %d already there", phrase.Counted(s.Changes, "change"), s.Rate, phrase.Counted(s.Unread, "row"), s.Read, s.Already)
	}
	line("letters", "%d", s.LetterCount)
	if c.Letters {
		for _, l := range s.Letters {
			line("", "%s: %s", l.Key, l.Reason)
		}
	}
	if s.Next != "" {
		line("next", "%s", s.Next)
	}
}
