package migrate

import "github.com/tabletop-emu/tabletop/migrate/internal/run"

// Options configure Load, VerifySource, Compare and Verify. The zero value is
// ready to use.
type Options = run.Options

// LintOptions say how the rules of package lint are applied.
type LintOptions = run.LintOptions

// Wait says that a call is going to be sent again, since Bigtable answered with a
// passing error, or not at all.
type Wait = run.Wait
