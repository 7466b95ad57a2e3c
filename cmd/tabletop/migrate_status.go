package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/alecthomas/kong"

	"github.com/tabletop-emu/tabletop/internal/phrase"
	"github.com/tabletop-emu/tabletop/migrate"
)

type statusCommand struct {
	Tables  []string       `arg:"" optional:"" help:"The DynamoDB tables. Default: all that are, or were, followed." placeholder:"TABLE"`
	Watch   bool           `help:"Show the status again each second, until interrupted." group:"Status:"`
	Wait    string         `help:"Wait until all conditions hold for each table: phase=PHASE, lag<DURATION, letters=N (or dead=N), dirty<N (changed keys since the last verification). Separate them with commas." placeholder:"CONDITIONS" group:"Status:"`
	Timeout *time.Duration `help:"How long --wait waits; then the exit code is 1. Default: 5m." placeholder:"DURATION" group:"Status:"`
	Letters bool           `help:"List the changes that could not be applied." group:"Status:"`
	JSON    bool           `name:"json" help:"Print JSON. Its durations have their unit in their name; -1 is an unknown lag." group:"Status:"`
	liveTargetFlags

	conditions []condition
	target     string // the flags that name the target, as in a shell
}

// defaultWait is the default of --timeout.
const defaultWait = 5 * time.Minute

// validate parses --wait, sets the default of --timeout, and checks the flags.
func (c *statusCommand) validate(*kong.Context) error {
	var err error
	if c.Wait != "" {
		c.conditions, err = parseConditions(c.Wait)
	}
	if c.Watch && c.Wait != "" {
		err = errors.Join(err, errors.New("--watch and --wait cannot be combined"))
	}
	switch {
	case c.Timeout == nil:
		c.Timeout = new(defaultWait)
	case c.Wait == "":
		err = errors.Join(err, errors.New("--timeout needs --wait: it limits that wait"))
	case *c.Timeout < 0:
		err = errors.Join(err, fmt.Errorf("--timeout: %v must not be negative", *c.Timeout))
	}
	return errors.Join(err, c.checkLiveTarget())
}

// Help is the long help of the command.
func (*statusCommand) Help() string {
	return `Shows the migrations from live tables in an instance: the phase, the process that follows, the lag behind the source, what it applied, the last verification, and the command that comes next. The lag includes the time since the last checkpoint, which a follower writes at least each second.

Exits 0; 1 if --wait times out; 2 if a named table has no migration, except with --wait; 3 if a server fails.`
}

func (*statusCommand) examples() []example {
	return []example{
		{"All migrations of a server", "tabletop migrate status --target 127.0.0.1:8087"},
		{"In a script, before the switch", "tabletop migrate status Orders --wait phase=FOLLOWING,lag=2s,letters=0 --target 127.0.0.1:8087"},
	}
}

// The intervals of --watch and --wait.
const (
	watchEvery = time.Second
	waitEvery  = 250 * time.Millisecond
)

// Run prints the status.
func (c *statusCommand) Run(ctx context.Context, k *kong.Context, p *program) error {
	c.target = shellFlags(k, []string{"Bigtable:"})
	return c.withTarget(ctx, "--target", c.Target, func(t *target) error {
		end, every := time.Now().Add(*c.Timeout), watchEvery
		if c.Wait != "" {
			every = waitEvery
		}
		for {
			all, err := c.read(ctx, p, t)
			if err != nil {
				return err
			}
			open := c.open(all)
			if c.Wait == "" || open == "" || !time.Now().Before(end) {
				if c.Watch && p.color {
					_, _ = fmt.Fprint(p.stdout, "\x1b[H\x1b[J")
				}
				if err := c.print(p.stdout, t.instance, all); err != nil {
					return err
				}
			}
			switch {
			case c.Wait != "" && open == "", c.Wait == "" && !c.Watch:
				return nil
			case c.Wait != "" && !time.Now().Before(end):
				return &exitError{exitDifferences, fmt.Errorf("after %v, %s", *c.Timeout, open)}
			}
			if err := p.wait(ctx, every); err != nil {
				if c.Watch {
					return nil // Ctrl-C ends it
				}
				return err
			}
		}
	})
}

// read returns the status of the tables, whose next commands name the target.
func (c *statusCommand) read(ctx context.Context, p *program, t *target) ([]migrate.FollowStatus, error) {
	all, err := migrate.Status(ctx, t.conn, c.common(p, t))
	if err != nil {
		return nil, asInputError(err)
	}
	for i := range all {
		if all[i].Next != "" {
			all[i].Next = withPlace(all[i].Next, c.target)
		}
	}
	for _, name := range c.Tables {
		if c.Wait == "" && !slices.ContainsFunc(all, func(s migrate.FollowStatus) bool { return s.Table == name }) {
			return nil, badInput("table %s has no migration in instance %s; name another instance (--project, --instance), or begin one: tabletop migrate follow %[1]s", name, t.instance)
		}
	}
	if len(c.Tables) > 0 {
		all = slices.DeleteFunc(all, func(s migrate.FollowStatus) bool { return !slices.Contains(c.Tables, s.Table) })
	}
	return all, nil
}

// withPlace adds the flags that name a Bigtable to the next command. The address has another flag in verify.
func withPlace(next, target string) string {
	if strings.Contains(next, " migrate verify ") {
		target = strings.Replace(target, "--target ", "--against ", 1)
	}
	return strings.TrimSuffix(next+" "+target, " ")
}

// open returns the first condition that does not hold, with the reason; "" if all do.
func (c *statusCommand) open(all []migrate.FollowStatus) string {
	if len(all) == 0 {
		return "no table has a migration"
	}
	for _, name := range c.Tables {
		if !slices.ContainsFunc(all, func(s migrate.FollowStatus) bool { return s.Table == name }) {
			return "table " + name + " has no migration"
		}
	}
	for _, s := range all {
		for _, x := range c.conditions {
			if why := x.open(s); why != "" {
				return fmt.Sprintf("%s does not hold for table %s: %s", x.text, s.Table, why)
			}
		}
	}
	return ""
}

func (c *statusCommand) print(w io.Writer, instance string, all []migrate.FollowStatus) error {
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
		_, err := fmt.Fprintf(w, "no table of instance %s is followed; name another instance (--project, --instance), or load an export (tabletop migrate load), then: tabletop migrate follow\n", instance)
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
		if s.Late > 0 {
			worst += fmt.Sprintf("; %s later than the allowance", phrase.Counted(s.Late, "record"))
		}
		if s.ClockDiffers != 0 {
			worst += "; the clock of the follower differs by " + s.ClockDiffers.Round(time.Second).String()
		}
		line("lag", "%s, checkpoint at %s%s", lagText(s.Lag), s.Saved.UTC().Format(time.RFC3339), worst)
		line("applied", "%s, %.0f a second; %s written without a read, %d with one, %d already there", phrase.Counted(s.Changes, "change"), s.Rate, phrase.Counted(s.Unread, "row"), s.Read, s.Already)
	}
	line("letters", "%d", s.LetterCount)
	if c.Letters {
		for _, l := range s.Letters {
			line("", "%s: %s", l.Key, l.Reason)
		}
	}
	if x := s.Proof; x != nil {
		what := "keys"
		if x.Dirty {
			what = "changed keys"
		}
		text := fmt.Sprintf("%s at %s: %d compared, %s, %d unsettled", what, x.At.UTC().Format(time.RFC3339), x.Compared, phrase.Counted(x.Differences, "difference"), x.Unsettled)
		if x.Valid {
			text += "; " + changedKeys(s)
		}
		line("verified", "%s", text)
	} else {
		line("verified", "never")
	}
	if s.Next != "" {
		line("next", "%s", s.Next)
	}
}
