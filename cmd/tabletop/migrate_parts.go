package main

import (
	"errors"
	"fmt"
	"strings"

	"github.com/alecthomas/kong"

	"github.com/tabletop-emu/tabletop/migrate/source"
)

// partFlags select a part of the work, and limit its speed.
type partFlags struct {
	Part             partOfN `help:"Do part I of N parts of the work (split by the data files of an export; for verify --live, by segments and ranges of rows). Each part runs in a separate process, in any order, with the same --checkpoint folder. An export requires --mapping FILE." placeholder:"I/N" group:"Parts of the work:" rare:""`
	Finish           bool    `help:"After all parts, check that they are complete, do the remaining work, and report on all of them." group:"Parts of the work:" rare:""`
	MaxRowsPerSecond *int    `name:"max-rows-per-second" help:"Look up and write, or read back, at most N rows per second; retries are not counted. Rows of existing tables count twice, since they are looked up before they are written. With parts, the limit applies to each. Default: no limit." placeholder:"N" group:"Parts of the work:" rare:""`
}

// partOfN is the value of --part.
type partOfN struct{ source.Part }

// Decode implements kong.MapperValue.
func (p *partOfN) Decode(ctx *kong.DecodeContext) (err error) {
	var text string
	if err = ctx.Scan.PopValueInto("part", &text); err == nil {
		p.Part, err = source.ParsePart(text)
	}
	return err
}

// validateParts checks combinations of flags. folder is --checkpoint; lint means that flags of
// lint are given.
func (f *partFlags) validateParts(folder string, lint bool) error {
	switch {
	case f.MaxRowsPerSecond != nil && *f.MaxRowsPerSecond < 1:
		return fmt.Errorf("--max-rows-per-second is %d, want 1 or more", *f.MaxRowsPerSecond)
	case f.Part.Of == 0 && !f.Finish:
		return nil
	case f.Part.Of > 0 && f.Finish:
		return errors.New("--part and --finish cannot be combined: run --finish after all parts")
	case folder == "":
		return fmt.Errorf("%s needs the folder of the parts: --checkpoint DIR", f.flag())
	case lint:
		return fmt.Errorf("%s cannot be combined with --fail-on or --rules: lint needs all items; run tabletop migrate lint", f.flag())
	}
	return nil
}

func (f *partFlags) flag() string {
	if f.Finish {
		return "--finish"
	}
	return "--part"
}

// partly reports whether the command does only a part of the work.
func (f *partFlags) partly() bool { return f.Finish || f.Part.Of > 0 }

// given returns the value of a flag, or 0 if it is not given.
func given(flag *int) int {
	if flag == nil {
		return 0
	}
	return *flag
}

// said returns the note after the report of a part.
func (f *partFlags) said(verb string) string {
	if f.Part.Of == 0 {
		return ""
	}
	then := "after all parts:"
	if verb == "verify" {
		then = "rows are compared after all parts, so ignore differences above:"
	}
	return strings.Join([]string{"part", f.Part.String(), "is complete;", then, "tabletop migrate", verb, "--finish"}, " ")
}
