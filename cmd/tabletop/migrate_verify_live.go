package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/tabletop-emu/tabletop/migrate"
)

// verifyLiveFlags configure verify --live.
type verifyLiveFlags struct {
	Live       bool    `help:"Compare live tables with what migrate follow writes." group:"Live table:"`
	Dirty      bool    `help:"With --live, compare only the keys that changed since the last run without a difference. The first run must compare all keys, with --consistent." group:"Live table:" rare:""`
	Consistent bool    `help:"With --live, scan the live table consistently, at twice the price." group:"Live table:" rare:""`
	Sample     float64 `help:"With --live, compare this share of the keys, such as 0.01. Default: all." placeholder:"SHARE" group:"Live table:" rare:""`
	Settle     int     `help:"With --live, read a differing item again, at most this many times while it keeps changing. Default: ${default}." default:"5" placeholder:"N" group:"Live table:" rare:""`
	Segments   int     `help:"With --live, how many segments of the live table are scanned at once. Default: ${default}." default:"4" placeholder:"N" group:"Live table:" rare:""`
	liveSourceFlags
}

// checkAlone rejects flags that need --live.
func (f *verifyLiveFlags) checkAlone() error {
	for _, x := range []struct {
		flag string
		set  bool
	}{{"--dirty", f.Dirty}, {"--consistent", f.Consistent}, {"--sample", f.Sample != 0}, {"--dynamodb-endpoint", f.DynamoDBEndpoint != ""}, {"--region", f.Region != ""}} {
		if x.set {
			return fmt.Errorf("%s needs --live", x.flag)
		}
	}
	return nil
}

// validateLive takes a missing --against from the environment, and checks the flags of verify
// --live.
func (c *verifyCommand) validateLive() error {
	var wrong []error
	for _, x := range []struct {
		flag string
		set  bool
	}{
		{"a source", c.Path != "" || c.Source != ""},
		{"--mapping", !c.auto()},
		{"--data", c.Data != ""},
		{"--differential", c.Differential != 0},
		{"--update", c.Update.UpdateMode != ""},
		{"--write-mapping", c.WriteMapping != ""},
		{"--timestamps and --lenient-sets", c.Timestamps != "" || c.LenientSets},
		{"--allow-empty", c.AllowEmpty},
		{"--as-of", c.AsOf != ""},
		{"--view-wait", c.ViewWait != nil},
		{"--regress", c.Regress != ""},
		{"the flags of an input", c.Key != "" || c.TableSchema != "" || c.Plain || c.set()},
		{"--fail-on and --rules", c.FailOn != "" || c.Rules != ""},
	} {
		if x.set {
			wrong = append(wrong, fmt.Errorf("--live and %s cannot be combined: the items are those of the live table, and the mapping is that of its load", x.flag))
		}
	}
	if c.Against == "" {
		if c.Against = environmentTarget(); c.Against == "" {
			wrong = append(wrong, errors.New("--live needs the Bigtable: --against HOST:PORT, or BIGTABLE_EMULATOR_HOST in the environment"))
		}
	}
	if c.Against != "" {
		wrong = append(wrong, checkTarget("--against", c.Against))
	}
	switch {
	case c.Sample < 0 || c.Sample >= 1:
		wrong = append(wrong, fmt.Errorf("--sample: %g must be a share between 0 and 1", c.Sample))
	case c.Sample > 0 && c.Dirty:
		wrong = append(wrong, errors.New("--sample and --dirty cannot be combined"))
	case c.partly() && (c.Sample > 0 || c.Dirty || c.Consistent && c.Finish):
		wrong = append(wrong, fmt.Errorf("%s cannot be combined with --sample or --dirty: parts compare all keys; --consistent belongs to each --part", c.flag()))
	case c.Checkpoint != "" && !c.partly():
		wrong = append(wrong, errors.New("--checkpoint needs --part or --finish"))
	case c.Settle < 1:
		wrong = append(wrong, fmt.Errorf("--settle: %d must be 1 or more", c.Settle))
	case c.Segments < 1:
		wrong = append(wrong, fmt.Errorf("--segments: %d must be 1 or more", c.Segments))
	}
	return errors.Join(append(wrong, c.checkDynamoDB(), c.validateReports(), c.validateMaxDiffs(), c.validateParts(c.Checkpoint, false))...)
}

// runLive compares live tables.
func (c *verifyCommand) runLive(ctx context.Context, p *program) error {
	tables, _, err := c.connectDynamoDB(ctx)
	if err != nil {
		return err
	}
	if c.Part.Of > 0 {
		release, err := lockPart(c.Checkpoint, "verify", c.Part.Part)
		if err != nil {
			return err
		}
		defer release()
	}
	return c.withTarget(ctx, "--against", c.Against, func(t *target) error {
		if err := c.look(ctx, c.Against, t, false); err != nil {
			return err
		}
		o := migrate.LiveOptions{Common: p.common(nil), Source: tables, Consistent: c.Consistent, Segments: c.Segments, Settle: c.Settle, Sample: c.Sample, Dirty: c.Dirty}
		if c.Table != "" {
			o.Tables = []string{c.Table}
		}
		o.Project, o.Instance, o.Deadline, o.AppProfile = t.project, t.instance, c.deadline(c.Against), c.AppProfile
		o.MaxDifferences, o.MaxRowsPerSecond = c.MaxDiffs, given(c.MaxRowsPerSecond)
		o.Part, o.Parts = c.Part.Part, c.Checkpoint
		done := p.showProgress(&o.Progress)
		verify := migrate.VerifyLive
		if c.Finish {
			verify = migrate.FinishVerifyLive
		}
		r, err := verify(ctx, t.conn, o)
		done()
		if err != nil {
			return followError(err)
		}
		r.ComparedWith = c.Against
		return c.finishPart(p, r, "verify --live", c.partFlags)
	})
}
