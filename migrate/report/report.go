package report

import (
	"encoding/hex"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/tabletop-emu/tabletop/internal/layout/rowtext"
	"github.com/tabletop-emu/tabletop/internal/phrase"
	"github.com/tabletop-emu/tabletop/migrate/infer"
	"github.com/tabletop-emu/tabletop/migrate/lint"
	"github.com/tabletop-emu/tabletop/migrate/source"
)

// Kind is the kind of a failure.
type Kind string

// Kinds of failures. Unmatched, ItemRefused, KeyCollision and LimitExceeded concern items
// that the mapping cannot lay out. DuplicateItem concerns a second item with the same
// key. A verification reports these items once and continues without them;
// [TableReport.Refused] counts them by reason. A load rejects a source with such items,
// and returns the [source.Damage] of the item, or writes them as dead letters.
const (
	Unmatched        Kind = "Unmatched"        // no rule of the mapping matches the item
	ItemRefused      Kind = "ItemRefused"      // the rule that matches the item cannot store its content
	KeyCollision     Kind = "KeyCollision"     // an item is laid out in a cell, or an index row, of another item
	LimitExceeded    Kind = "LimitExceeded"    // an item exceeds a limit of Bigtable
	MissingRow       Kind = "MissingRow"       // an expected row does not exist
	ExtraRow         Kind = "ExtraRow"         // no item produces the row
	MissingCell      Kind = "MissingCell"      // an expected cell does not exist
	ExtraCell        Kind = "ExtraCell"        // no item produces the cell
	ValueDiffers     Kind = "ValueDiffers"     // a cell, or an attribute that was read back, has another value
	TypeDiffers      Kind = "TypeDiffers"      // the type of a value differs from the source
	TimestampDiffers Kind = "TimestampDiffers" // the cell exists with another timestamp
	OrderDiffers     Kind = "OrderDiffers"     // the versions of a column are in another order
	MissingTable     Kind = "MissingTable"     // the table of the items does not exist
	FamilyDiffers    Kind = "FamilyDiffers"    // a family does not exist, or its garbage collection differs from the mapping
	TableChanged     Kind = "TableChanged"     // a table differed, but no longer did when its rows were compared
	MissingItem      Kind = "MissingItem"      // the rows do not hold an item of the source
	ExtraItem        Kind = "ExtraItem"        // the rows hold an item that the source does not have
	DuplicateItem    Kind = "DuplicateItem"    // two items have the same key, in a source or on one side of Diff
	RowUnreadable    Kind = "RowUnreadable"    // the inverse mapping refuses a row
	IndexStale       Kind = "IndexStale"       // an index table differs from its base
	GoldenDiffers    Kind = "GoldenDiffers"    // a golden file differs elsewhere than in a row
	PatternDiffers   Kind = "PatternDiffers"   // an access pattern gives another answer
	PatternFullScan  Kind = "PatternFullScan"  // a native read scans a whole table, or too many ranges
	NotIdempotent    Kind = "NotIdempotent"    // a second load changed something
	NotPersistent    Kind = "NotPersistent"    // a row or a table changed when the Bigtable was closed and opened again
	LossNotAccepted  Kind = "LossNotAccepted"  // garbage collection would remove cells of an item
	NotLoaded        Kind = "NotLoaded"        // an item became a dead letter, or its change could not be made; Damage has the reason
	LintError        Kind = "LintError"        // a lint finding has at least the level migrate.LintRules.FailOn
)

// Failure describes one difference.
type Failure struct {
	Kind    Kind   `json:"kind"`                // kind of difference
	Fixture string `json:"fixture,omitempty"`   // name of the fixture
	Check   string `json:"check,omitempty"`     // name of the check that found the difference; "pattern ID" for an access pattern
	Table   string `json:"table,omitempty"`     // name of the Bigtable table
	Rule    string `json:"rule,omitempty"`      // rule of the mapping
	ItemKey string `json:"itemKey,omitempty"`   // key attributes as canonical JSON
	RowKey  string `json:"rowKey,omitempty"`    // row key as text
	RowHex  string `json:"rowKeyHex,omitempty"` // row key in hex
	Column  string `json:"column,omitempty"`    // family:qualifier, or the name of the attribute
	Pattern string `json:"pattern,omitempty"`   // id of the access pattern
	Want    string `json:"want,omitempty"`      // expected value, as text
	Got     string `json:"got,omitempty"`       // actual value, as text
	// Decoded describes how a different cell changes the items of its row, as decoded by
	// the mapping: `n: want {"N":"3"}, got {"N":"4"}`.
	Decoded string        `json:"decoded,omitempty"`
	Detail  string        `json:"detail,omitempty"` // further facts
	Damage  source.Damage `json:"damage,omitempty"` // reason of a NotLoaded
	// File is the place in the fixture that states the expectation, as FILE or FILE:LINE.
	File string `json:"file,omitempty"`
	// Mapping is the place of the rule or index in the mapping file, as FILE:LINE.
	Mapping string `json:"mapping,omitempty"`

	check int    // index of the check that found it, or noCheck
	by    string // see Grouped
}

// InRow returns a Failure that is located in a row.
func InRow(table string, key []byte) Failure {
	return Failure{Table: table, RowKey: strconv.QuoteToGraphic(string(key)), RowHex: hex.EncodeToString(key)}
}

// String describes the failure on one line.
func (f Failure) String() string {
	var b strings.Builder
	b.WriteString(string(f.Kind))
	for _, part := range append([]placePart{{"fixture", f.Fixture}}, f.place()...) {
		if part.Text != "" {
			b.WriteString(" " + part.Name + " " + part.Text)
		}
	}
	if f.Want != "" || f.Got != "" {
		fmt.Fprintf(&b, ": want %s, got %s", OrNothing(f.Want), OrNothing(f.Got))
	}
	if f.Decoded != "" {
		b.WriteString("; of items: " + f.Decoded)
	}
	if f.Detail != "" {
		b.WriteString(": " + f.Detail)
	}
	if at := f.lines(); at != "" {
		b.WriteString(" (" + at + ")")
	}
	return b.String()
}

// lines returns the lines of files that the failure concerns.
func (f Failure) lines() string {
	return strings.Join(slices.DeleteFunc([]string{f.File, f.Mapping}, func(s string) bool { return s == "" }), ", ")
}

// placePart is a part of a place: "row" and the row's key.
type placePart struct{ Name, Text string }

// place returns the parts of the failure's place; unknown parts have no text.
func (f Failure) place() []placePart {
	return []placePart{
		{"pattern", f.Pattern},
		{"table", f.Table},
		{"rule", f.Rule},
		{"item", f.ItemKey},
		{"row", f.RowKey},
		{"hex", f.RowHex},
		{"column", f.Column},
		{"damage", string(f.Damage)},
	}
}

// OrNothing returns s, or "nothing" if s is "".
func OrNothing(s string) string {
	if s == "" {
		return "nothing"
	}
	return s
}

// TableReport is the result for one table of the source.
type TableReport struct {
	Name       string `json:"name"`       // name of the DynamoDB table
	Target     string `json:"target"`     // id of the Bigtable table
	Items      int64  `json:"items"`      // number of items that are laid out
	Rows       int64  `json:"rows"`       // number of rows in the table of the items
	Cells      int64  `json:"cells"`      // number of cells in those rows
	Exceptions int64  `json:"exceptions"` // sidecar cells, for values and items that the mapping's types do not describe
	// DerivedBytes counts the bytes of names and values of attributes without a cell, since
	// the mapping derives them.
	DerivedBytes int64 `json:"derivedBytes,omitzero"`
	Existed      bool  `json:"existed,omitzero"` // whether the table existed before the load
	IndexRows    int64 `json:"indexRows"`        // number of rows of all indexes
	// CellsWritten counts the cells that a load sent, CellsUnchanged the cells that the
	// table already had. Both include the cells of indexes.
	CellsWritten   int64 `json:"cellsWritten"`
	CellsUnchanged int64 `json:"cellsUnchanged"`
	// CellsDeleted is the number of cells that a load removed because of incremental
	// exports.
	CellsDeleted int64 `json:"cellsDeleted,omitzero"`
	// ChangesLeft is the number of changes in incremental exports that a load did not
	// make, because it could not read the item's row. Each such item stays unchanged, and
	// is a failure.
	ChangesLeft int64 `json:"changesLeft,omitzero"`
	// ItemsKept is the number of items that a load left as they are, because a DynamoDB
	// endpoint wrote them.
	ItemsKept int64 `json:"itemsKept,omitempty"`
	// ItemsResumed is the number of items that a load skipped, because its checkpoint
	// records them as written.
	ItemsResumed int64 `json:"itemsResumed"`
	// DeadLetters is the number of items that could not be loaded. Items does not include
	// them.
	DeadLetters int64 `json:"deadLetters"`
	// LeftOut is the number of items that the mapping cannot lay out. Each of them is a
	// failure, and Items does not include them.
	LeftOut int64 `json:"leftOut"`
	// Expired is the number of items whose time to live is over. If garbage collection
	// deletes such items, a verification skips them, and Items does not include them.
	Expired int64 `json:"expired"`
	// Refused lists the reasons for LeftOut, by error, rule and attribute, in order of
	// occurrence. An item can have several errors.
	Refused []RefusedItems `json:"refused"`
	// Phases lists the durations of the phases. It is empty without
	// migrate.Common.Stopwatch.
	Phases  []Phase        `json:"phases"`
	Choices []infer.Choice `json:"choices"` // decisions of the inference, with reasons
	// Fidelity describes the effect of the mapping on each attribute. Samples holds one
	// item of each rule with its row.
	Fidelity []Fidelity `json:"fidelity"`
	Samples  []Sample   `json:"samples"`
	// Rules lists the rules of the mapping, followed by its indexes, each with its number
	// of items.
	Rules []RuleRows `json:"rules"`
	// Sidecar lists the number of Exceptions of each kind.
	Sidecar []SidecarCells `json:"sidecar"`
	// Accepted lists the losses that the mapping accepts and that occur in the data.
	Accepted []AcceptedLoss `json:"accepted"`
	// Mapping is the text of the mapping file that was used or inferred.
	Mapping string `json:"mapping,omitempty"`
	// Live is the result of migrate.VerifyLive, or of migrate.VerifyOptions.AsOf; nil in other
	// reports.
	Live *Live `json:"live,omitempty"`
}

// RefusedItems describes the items that a mapping cannot lay out for the same reason.
type RefusedItems struct {
	Error     string `json:"error"`               // error code such as E-DOMAIN, or the kind of the failure if the error has no code
	Rule      string `json:"rule,omitempty"`      // rule of the mapping; "" if no rule matches the item
	Attribute string `json:"attribute,omitempty"` // name of the attribute; "" if no single attribute is wrong
	Items     int64  `json:"items"`
	// Item is the key of the first such item, and At is its position in the source. What
	// describes the fault and the expectation.
	Item string `json:"item"`
	At   string `json:"at"`
	What string `json:"what"`
}

// String describes the reason on one line.
func (x RefusedItems) String() string {
	text := x.Error
	if x.Rule != "" {
		text += " rule " + x.Rule
	}
	if x.Attribute != "" {
		text += " attribute " + phrase.Clip(phrase.Column(x.Attribute))
	}
	return fmt.Sprintf("%s: %s, e.g. %s at %s: %s", text, phrase.Counted(x.Items, "item"), phrase.Clip(x.Item), x.At, x.What)
}

// Phase is one phase of the work on a table.
type Phase struct {
	Name    string  `json:"name"`    // such as "comparing"
	Items   int64   `json:"items"`   // number of items in the largest pass
	Passes  int64   `json:"passes"`  // number of passes over the items
	Handled int64   `json:"handled"` // number of items in all passes
	Seconds float64 `json:"seconds"` // duration of all passes
}

// String describes the phase: "comparing 1000 items in 0.52 s, 1923 a second" or, for
// several passes, "checking 1000 items, 3 passes, in 0.52 s, 5769 a second".
func (p Phase) String() string {
	text := fmt.Sprintf("%s %s", p.Name, phrase.Counted(p.Items, "item"))
	if p.Passes > 1 {
		text += fmt.Sprintf(", %d passes,", p.Passes)
	}
	text += fmt.Sprintf(" in %.2f s", p.Seconds)
	if p.Seconds > 0 {
		text += fmt.Sprintf(", %.0f a second", float64(p.Handled)/p.Seconds)
	}
	return text
}

// AddPhase adds a pass to the named phase. It creates the phase if needed.
func (t *TableReport) AddPhase(name string, items int64, took time.Duration) {
	i := slices.IndexFunc(t.Phases, func(p Phase) bool { return p.Name == name })
	if i < 0 {
		i = len(t.Phases)
		t.Phases = append(t.Phases, Phase{Name: name})
	}
	p := &t.Phases[i]
	p.Items, p.Passes, p.Handled = max(p.Items, items), p.Passes+1, p.Handled+items
	p.Seconds += took.Seconds()
}

// Sample is an item with the row that it becomes.
type Sample struct {
	Rule string `json:"rule"` // rule of the mapping
	Item string `json:"item"` // item as canonical DynamoDB JSON
	Row  string `json:"row"`  // canonical text of the row's cells
}

// Fidelity describes how faithfully one rule of the mapping stores one attribute.
type Fidelity struct {
	Rule      string `json:"rule"`          // rule of the mapping
	Attribute string `json:"attribute"`     // name of the top-level attribute
	Class     string `json:"class"`         // "lossless", "lossless in domain" or "lossy"
	Why       string `json:"why,omitempty"` // the domain, or the loss
	// Items is the number of the rule's items that have the attribute. It is 0 if they
	// were not counted.
	Items int64 `json:"items,omitzero"`
}

// SidecarCells counts the sidecar cells of one kind.
type SidecarCells struct {
	Kind  rowtext.SidecarKind `json:"kind"`  // kind of the cells
	What  string              `json:"what"`  // the kind in words
	Cells int64               `json:"cells"` // number of cells
	// Item is the key of the first item with such a cell. Column is the column of that
	// cell.
	Item   string `json:"item"`
	Column string `json:"column"`
}

// RuleRows counts the items of one rule of the mapping, or of one of its indexes. The row
// key of the first item serves as an example.
type RuleRows struct {
	Rule  string `json:"rule,omitempty"`  // rule of the mapping; "" for an index
	Index string `json:"index,omitempty"` // name of the index; "" for a rule
	Items int64  `json:"items"`           // number of items
	// Item is the key of the first item. Row is the key of its row as text, and RowHex is
	// that key in hex. All three are "" if Items is 0.
	Item   string `json:"item,omitempty"`
	Row    string `json:"row,omitempty"`
	RowHex string `json:"rowHex,omitempty"`
}

// Count counts an item that the rule takes. The first time, it keeps the row and the item's
// key, which key returns as canonical JSON.
func (r *RuleRows) Count(key func() string, row []byte) {
	if r.Items++; r.Items == 1 {
		r.Item, r.Row, r.RowHex = key(), phrase.Column(string(row)), hex.EncodeToString(row)
	}
}

// AcceptedLoss is a loss that the mapping of a table accepts.
type AcceptedLoss struct {
	Rule string `json:"rule"` // rule of the mapping
	What string `json:"what"` // kind of loss, as in accept_loss
	// Family, GC and Cells describe a loss by garbage collection. GC is the rule, such as
	// "versions: 2".
	Family string `json:"family,omitempty"`
	GC     string `json:"gc,omitempty"`
	Cells  int64  `json:"cells,omitempty"`
	// Attribute and Values describe a loss by the layout.
	Attribute string `json:"attribute,omitempty"`
	Values    int64  `json:"values,omitempty"`
	Example   string `json:"example"`       // key of an item with the loss
	Why       string `json:"why,omitempty"` // reason, as in accept_loss
}

// Check is the result of one step of a verification.
type Check struct {
	Name        string     `json:"name"`            // name, such as "round trip"
	Table       string     `json:"table,omitempty"` // Bigtable table, or "" for all tables; the DynamoDB table for the check "not laid out"
	State       CheckState `json:"state"`           // result of the check
	Differences int64      `json:"differences"`     // number of failures, including those not listed
	// Detail describes the check, or gives the reason why it was skipped.
	Detail string `json:"detail,omitempty"`
}

// CheckState is the outcome of a check.
type CheckState string

// States of a check.
const (
	CheckOK      CheckState = "ok"
	CheckFailed  CheckState = "failed"  // the check found differences
	CheckSkipped CheckState = "skipped" // the check could not run
	CheckNoted   CheckState = "noted"   // the check found no differences, but has notes: lint errors or warnings, or parts of a table that are not laid out
)

// PatternReport is the result of running one access pattern.
type PatternReport struct {
	ID    string `json:"id"`              // id in the pattern's file
	Title string `json:"title,omitempty"` // description in words
	// Endpoints lists the endpoints that were used: "dynamodb", "bigtable".
	Endpoints []string `json:"endpoints"`
	// Ranges is the number of keys and ranges in the native read. RowsScanned and
	// RowsReturned are the counts that the server sends, or 0 if it sends none.
	Ranges       int   `json:"ranges"`
	RowsScanned  int64 `json:"rowsScanned"`
	RowsReturned int64 `json:"rowsReturned"`

	Items       int   `json:"items"`       // number of items in the answer
	Differences int64 `json:"differences"` // number of failures, including those not listed
}

// Report is the result of a load or a verification.
type Report struct {
	Fixture string `json:"fixture,omitempty"` // name of the fixture; "" for a source
	Title   string `json:"title,omitempty"`   // title of the fixture
	Source  string `json:"source"`            // path of the source
	Format  string `json:"format"`            // format, as in source.Source
	// ComparedWith names the rows that the source was compared with: those of a private
	// store, a server or a folder. It is "" if the caller does not say.
	ComparedWith string `json:"comparedWith,omitempty"`
	// Items is the number of items read, summed over the tables.
	Items int64 `json:"items"`
	// Rows is the number of rows in the tables of items. Rows of indexes are not counted.
	Rows int64 `json:"rows"`
	// Differences is the number of failures, including those not listed.
	Differences int64 `json:"differences"`
	// Exceptions is the number of sidecar cells.
	Exceptions int64 `json:"exceptions"`
	// Compared reports whether anything was compared. Load does not compare.
	Compared bool `json:"compared"`
	// Warnings lists facts that the user should know although they are not differences.
	Warnings []string        `json:"warnings"`
	Tables   []TableReport   `json:"tables"`   // one per table of the source
	Checks   []Check         `json:"checks"`   // checks, in the order in which they ran
	Patterns []PatternReport `json:"patterns"` // patterns, in the order in which they ran
	// NotLaidOut lists the parts of the tables that the mappings do not lay out.
	NotLaidOut []NotLaidOut `json:"notLaidOut"`
	// Failures lists the first differences, up to migrate.Common.MaxDifferences. Beyond
	// that number, it still includes the first failure of each check and kind.
	Failures []Failure `json:"failures"`
	// Lint holds the findings of package lint. It is nil if lint was not applied.
	Lint *lint.Result `json:"lint,omitempty"`

	// OnlyLint means that lint rules were applied and nothing else.
	OnlyLint bool `json:"-"`
	// DiffOf is the unit in which Diff compared two sides: "item" or "row". It is "" in
	// other reports.
	DiffOf string `json:"-"`
	// FailOn is the lowest level of findings that count as differences.
	FailOn lint.Level `json:"-"`

	most     int
	listed   map[failureGroup]int // number of Failures in each group
	stage    stage
	failed   failedItems
	unlisted int64 // unlisted differences that follow from them
}

// failureGroup is a group with at least one listed failure.
type failureGroup struct {
	stage stage
	kind  Kind
	group string // from Failure.Grouped
}

// New returns an empty report that lists at most the given number of failures.
func New(most int) *Report {
	return &Report{
		most: most, Tables: []TableReport{}, Checks: []Check{}, Patterns: []PatternReport{}, Failures: []Failure{}, Warnings: []string{},
		NotLaidOut: []NotLaidOut{},
	}
}

// Aside returns an empty report with the settings of r. It collects failures that
// [Report.FailAs] can add to r as another kind.
func (r *Report) Aside() *Report {
	found := New(r.most)
	found.failed = r.failed
	return found
}

// full reports whether only the first failure of a further check or kind is listed.
func (r *Report) full() bool { return len(r.Failures) >= r.most }

// Lists reports whether the next failure of a kind would be listed, if it has no group (see
// Grouped).
func (r *Report) Lists(kind Kind) bool {
	return !r.full() || r.listed[failureGroup{stage: r.stage, kind: kind}] == 0
}

// AllDifferences returns the number of differences, including unlisted ones that follow
// from failed items.
func (r *Report) AllDifferences() int64 { return r.Differences + r.unlisted }

// Equal reports whether there are no differences.
func (r *Report) Equal() bool { return r.Differences == 0 }

// IsDifference reports whether a lint finding counts as a difference.
func (r *Report) IsDifference(f lint.Finding) bool {
	return r.FailOn != lint.Off && f.Level >= r.FailOn
}

// Uncounted describes the lint errors and warnings that do not count as differences, and
// names the flag that would count them: "1 error, 2 warnings not counted as differences
// (--fail-on lint=warn counts them)". It returns "" if all of them count.
func (r *Report) Uncounted() string {
	if r.Lint == nil {
		return ""
	}
	n := map[lint.Level]int64{}
	for _, f := range r.Lint.Findings {
		if !r.IsDifference(f) {
			n[f.Level]++
		}
	}
	var parts []string
	least := lint.Off
	for _, level := range []struct {
		lint.Level
		name string
	}{{lint.Error, "error"}, {lint.Warn, "warning"}} {
		if n[level.Level] > 0 {
			parts, least = append(parts, phrase.Counted(n[level.Level], level.name)), level.Level
		}
	}
	if len(parts) == 0 {
		return ""
	}
	return fmt.Sprintf("%s not counted as differences (--fail-on lint=%s counts them)", strings.Join(parts, ", "), least)
}

// FailuresOf returns the listed failures of the check with the given index.
func (r *Report) FailuresOf(check int) []Failure {
	return r.failuresWhere(func(f Failure) bool { return f.check == check })
}

// FailuresOfPattern returns the listed failures of an access pattern.
func (r *Report) FailuresOfPattern(id string) []Failure {
	return r.failuresWhere(func(f Failure) bool { return f.check == noCheck && f.Pattern == id })
}

func (r *Report) failuresWhere(found func(Failure) bool) []Failure {
	return slices.DeleteFunc(slices.Clone(r.Failures), func(f Failure) bool { return !found(f) })
}

// stage is the current stage of a verification: a check, by its index in the report, or an
// access pattern.
type stage struct {
	name  string
	check int
}

// noCheck is the check of a stage that is an access pattern.
const noCheck = -1

// BeginPattern starts the stage of an access pattern.
func (r *Report) BeginPattern(id string) { r.stage = stage{"pattern " + id, noCheck} }

// Fail records a failure in the current stage.
func (r *Report) Fail(f Failure) {
	if r.failed.explain(f) {
		r.unlisted++
		return
	}
	f.Fixture, f.Check, f.check = r.Fixture, r.stage.name, r.stage.check
	r.Differences++
	r.list(f)
}

// list adds to Failures. If they are full, the first failure of a group replaces the last one
// of the largest group.
func (r *Report) list(f Failure) {
	of := f.group()
	if r.listed == nil {
		r.listed = map[failureGroup]int{}
	}
	if r.full() {
		if r.listed[of] > 0 {
			return
		}
		most := 1
		for _, n := range r.listed {
			most = max(most, n)
		}
		for i := len(r.Failures) - 1; i >= 0 && most > 1; i-- {
			if g := r.Failures[i].group(); r.listed[g] == most {
				r.Failures = slices.Delete(r.Failures, i, i+1)
				r.listed[g]--
				break
			}
		}
	}
	r.listed[of]++
	r.Failures = append(r.Failures, f)
}

func (f Failure) group() failureGroup {
	return failureGroup{stage{f.Check, f.check}, f.Kind, f.by}
}

// Grouped returns the failure with a group within its kind. A shortened report lists at
// least one failure of each group.
func (f Failure) Grouped(by string) Failure {
	f.by = by
	return f
}

// FailAs records the failures in found as failures of a given kind.
func (r *Report) FailAs(kind Kind, found *Report) {
	r.unlisted += found.unlisted
	for _, f := range found.Failures {
		f = f.Grouped(string(f.Kind) + " " + f.by)
		f.Detail, f.Kind = strings.TrimSuffix(string(f.Kind)+": "+f.Detail, ": "), kind
		r.Fail(f)
	}
	r.Differences += found.Differences - int64(len(found.Failures))
}

// Check runs one check and records how many differences it finds.
func (r *Report) Check(name, table string, run func() (detail string, err error)) error {
	before, unlisted := r.Differences, r.unlisted
	r.stage = stage{name, len(r.Checks)}
	detail, err := run()
	if err != nil {
		return err
	}
	c := Check{Name: name, Table: table, State: CheckOK, Differences: r.Differences - before, Detail: detail}
	if c.Differences > 0 {
		c.State = CheckFailed
	}
	if n := r.unlisted - unlisted; n > 0 {
		c.Detail += fmt.Sprintf("; not listing %s that may follow from failed items", phrase.Counted(n, "difference"))
	}
	r.Checks = append(r.Checks, c)
	return nil
}

// Skip records that a check cannot run, with the reason.
func (r *Report) Skip(name, table, why string, args ...any) {
	r.Checks = append(r.Checks, Check{Name: name, Table: table, State: CheckSkipped, Detail: fmt.Sprintf(why, args...)})
}
