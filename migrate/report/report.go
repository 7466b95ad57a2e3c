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

// Kind names the kind of a failure.
type Kind string

// The kinds of failures. Unmatched, ItemRefused, KeyCollision and LimitExceeded concern
// items that the mapping cannot lay out; DuplicateItem concerns a second item of one key.
// A verification reports them once and continues without them; [TableReport.Refused]
// counts them by reason. A load rejects the source for them, with the [source.Damage] of
// the item, or writes them as dead letters.
const (
	Unmatched        Kind = "Unmatched"        // no rule of the mapping takes an item
	ItemRefused      Kind = "ItemRefused"      // the rule that takes an item cannot hold its content
	KeyCollision     Kind = "KeyCollision"     // an item is laid out on a cell, or an index row, of another item
	LimitExceeded    Kind = "LimitExceeded"    // an item exceeds a limit of Bigtable
	MissingRow       Kind = "MissingRow"       // an expected row does not exist
	ExtraRow         Kind = "ExtraRow"         // a row that no item produces
	MissingCell      Kind = "MissingCell"      // an expected cell does not exist
	ExtraCell        Kind = "ExtraCell"        // a cell that no item produces
	ValueDiffers     Kind = "ValueDiffers"     // a cell, or an attribute read back, has another value
	TypeDiffers      Kind = "TypeDiffers"      // the type of a value differs from the source
	TimestampDiffers Kind = "TimestampDiffers" // the cell exists at another time
	OrderDiffers     Kind = "OrderDiffers"     // the versions of a column are permuted
	MissingTable     Kind = "MissingTable"     // the items' table does not exist
	FamilyDiffers    Kind = "FamilyDiffers"    // a family does not exist, or its garbage collection differs from the mapping
	TableChanged     Kind = "TableChanged"     // a table differed, but no longer when its rows were compared
	MissingItem      Kind = "MissingItem"      // the rows hold fewer items
	ExtraItem        Kind = "ExtraItem"        // the rows hold an item that the source does not have
	DuplicateItem    Kind = "DuplicateItem"    // two items have the same key, in a source or on one side of Diff
	RowUnreadable    Kind = "RowUnreadable"    // the inverse mapping refuses a row
	IndexStale       Kind = "IndexStale"       // an index table differs from its base
	GoldenDiffers    Kind = "GoldenDiffers"    // a golden file, other than in a row, differs
	PatternDiffers   Kind = "PatternDiffers"   // an access pattern gives another answer
	PatternFullScan  Kind = "PatternFullScan"  // a native read scans a whole table, or too many ranges
	NotIdempotent    Kind = "NotIdempotent"    // a second load changed something
	NotPersistent    Kind = "NotPersistent"    // a row or a table changed when the Bigtable was closed and opened again
	LossNotAccepted  Kind = "LossNotAccepted"  // garbage collection would remove cells of an item
	NotLoaded        Kind = "NotLoaded"        // an item became a dead letter, or its change could not be made; Damage has the reason
	LintError        Kind = "LintError"        // a finding of at least the level migrate.LintRules.FailOn
)

// Failure is one difference.
type Failure struct {
	Kind    Kind   `json:"kind"`                // what differs
	Fixture string `json:"fixture,omitempty"`   // its name
	Check   string `json:"check,omitempty"`     // the name of the check that found it; "pattern ID" of an access pattern
	Table   string `json:"table,omitempty"`     // the Bigtable table
	Rule    string `json:"rule,omitempty"`      // of the mapping
	ItemKey string `json:"itemKey,omitempty"`   // canonical JSON of the key attributes
	RowKey  string `json:"rowKey,omitempty"`    // as text
	RowHex  string `json:"rowKeyHex,omitempty"` // the row key in hex
	Column  string `json:"column,omitempty"`    // family:qualifier, or the attribute
	Pattern string `json:"pattern,omitempty"`   // the id of the access pattern
	Want    string `json:"want,omitempty"`      // the expected value, as text
	Got     string `json:"got,omitempty"`       // the actual value
	// Decoded is the effect of a different cell on the items of its row, decoded by the
	// mapping: `n: want {"N":"3"}, got {"N":"4"}`.
	Decoded string        `json:"decoded,omitempty"`
	Detail  string        `json:"detail,omitempty"` // further facts
	Damage  source.Damage `json:"damage,omitempty"` // of a NotLoaded
	// File is the place in the fixture, FILE or FILE:LINE, that has another expectation.
	File string `json:"file,omitempty"`
	// Mapping is FILE:LINE of the rule, or of the index, in the mapping file.
	Mapping string `json:"mapping,omitempty"`

	check int    // index of the check that found it, or noCheck
	by    string // see Grouped
}

// InRow returns a Failure with the place of a row.
func InRow(table string, key []byte) Failure {
	return Failure{Table: table, RowKey: strconv.QuoteToGraphic(string(key)), RowHex: hex.EncodeToString(key)}
}

// String returns the failure on one line.
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

// OrNothing returns s, or "nothing" for "".
func OrNothing(s string) string {
	if s == "" {
		return "nothing"
	}
	return s
}

// TableReport is the result for one table.
type TableReport struct {
	Name       string `json:"name"`             // of the DynamoDB table
	Target     string `json:"target"`           // of the Bigtable table
	Items      int64  `json:"items"`            // laid out
	Rows       int64  `json:"rows"`             // of the table of the items
	Cells      int64  `json:"cells"`            // of those rows
	Exceptions int64  `json:"exceptions"`       // sidecar cells, for values and items that the mapping's types do not describe
	Existed    bool   `json:"existed,omitzero"` // before the load
	IndexRows  int64  `json:"indexRows"`        // of all indexes
	// CellsWritten counts the cells that a load sent, CellsUnchanged the cells that the
	// table already had. Both include the cells of indexes.
	CellsWritten   int64 `json:"cellsWritten"`
	CellsUnchanged int64 `json:"cellsUnchanged"`
	// CellsDeleted counts the cells that a load removed because of incremental exports.
	CellsDeleted int64 `json:"cellsDeleted,omitzero"`
	// ChangesLeft counts the changes of incremental exports that a load did not make, since it
	// cannot read the item's row. The item stays unchanged, and is a failure.
	ChangesLeft int64 `json:"changesLeft,omitzero"`
	// ItemsKept counts the items that a load kept, since a DynamoDB endpoint wrote them.
	ItemsKept int64 `json:"itemsKept,omitempty"`
	// ItemsResumed counts the items that a load skipped, since its checkpoint has them
	// as written.
	ItemsResumed int64 `json:"itemsResumed"`
	// DeadLetters counts the items that could not be loaded. Items does not include them.
	DeadLetters int64 `json:"deadLetters"`
	// LeftOut counts the items that the mapping cannot lay out; each is a failure. Items
	// does not include them.
	LeftOut int64 `json:"leftOut"`
	// Expired counts the items whose time to live is over. If garbage collection deletes
	// them, a verification skips them, and Items does not include them.
	Expired int64 `json:"expired"`
	// Refused has the reasons for LeftOut, by error, rule and attribute, in order of
	// occurrence. An item can have several errors.
	Refused []RefusedItems `json:"refused"`
	// Phases are the times of the phases; empty without migrate.Common.Stopwatch.
	Phases  []Phase        `json:"phases"`
	Choices []infer.Choice `json:"choices"` // decisions with their reasons
	// Fidelity is the result of the mapping for each attribute. Samples has an item of each
	// rule with its row.
	Fidelity []Fidelity `json:"fidelity"`
	Samples  []Sample   `json:"samples"`
	// Rules are the rules of the mapping, then its indexes, each with its number of items.
	Rules []RuleRows `json:"rules"`
	// Sidecar counts the Exceptions by kind.
	Sidecar []SidecarCells `json:"sidecar"`
	// Accepted are the losses that the mapping accepts and that occur.
	Accepted []AcceptedLoss `json:"accepted"`
	// Mapping is the text of the mapping file that was used or inferred.
	Mapping string `json:"mapping,omitempty"`
	// Live is the result of migrate.VerifyLive; nil in other reports.
	Live *Live `json:"live,omitempty"`
}

// Live is the comparison of a table that a follower writes with its live source.
type Live struct {
	// Each key was compared at a time from From to To. Writes of the source before To are applied,
	// as Rule shows: "header" of Tabletop's endpoint, or "answers" for others.
	From     time.Time `json:"from"`
	To       time.Time `json:"to"`
	Rule     string    `json:"rule"`
	Compared int64     `json:"compared"` // keys, without Unsettled
	Suspects int64     `json:"suspects"` // keys that differed at the first look
	// Unsettled keys changed each time they were compared. UnsettledKeys are the first 100.
	Unsettled     int64    `json:"unsettled"`
	UnsettledKeys []string `json:"unsettledKeys,omitempty"`
	Expired       int64    `json:"expired"`   // keys on one side whose time to live is over
	Collected     int64    `json:"collected"` // keys that lack cells which garbage collection removes
}

// RefusedItems are the items that a mapping cannot lay out for one reason.
type RefusedItems struct {
	Error     string `json:"error"`               // E-DOMAIN, or the kind of the failure if it has no such code
	Rule      string `json:"rule,omitempty"`      // of the mapping; "" if no rule takes the item
	Attribute string `json:"attribute,omitempty"` // "" if no single attribute is wrong
	Items     int64  `json:"items"`
	// Item is the key of the first such item and At its place in the source. What describes the
	// fault and the expectation.
	Item string `json:"item"`
	At   string `json:"at"`
	What string `json:"what"`
}

// String returns the reason on one line.
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

// Phase is a part of the work on one table.
type Phase struct {
	Name    string  `json:"name"`    // "comparing"
	Items   int64   `json:"items"`   // of the pass with the most
	Passes  int64   `json:"passes"`  // over the items
	Handled int64   `json:"handled"` // items of all passes
	Seconds float64 `json:"seconds"` // of all passes
}

// String returns "comparing 1000 items in 0.52 s, 1923 a second", or of several passes
// "checking 1000 items, 3 passes, in 0.52 s, 5769 a second".
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

// AddPhase adds a pass to the named phase, and creates the phase if needed.
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
	Rule string `json:"rule"` // of the mapping
	Item string `json:"item"` // canonical DynamoDB JSON
	Row  string `json:"row"`  // canonical text of its cells
}

// Fidelity is the fidelity of one attribute under one rule of the mapping.
type Fidelity struct {
	Rule      string `json:"rule"`          // of the mapping
	Attribute string `json:"attribute"`     // top-level
	Class     string `json:"class"`         // lossless, lossless in domain, lossy
	Why       string `json:"why,omitempty"` // the domain, or the loss
	// Items is the number of items of the rule that have the attribute; 0 if they were
	// not counted.
	Items int64 `json:"items,omitzero"`
}

// SidecarCells are the sidecar cells of one kind.
type SidecarCells struct {
	Kind  rowtext.SidecarKind `json:"kind"`  // their meaning
	What  string              `json:"what"`  // the kind in words
	Cells int64               `json:"cells"` // their number
	// Item is the key of the first item with such a cell, Column the column of the cell.
	Item   string `json:"item"`
	Column string `json:"column"`
}

// RuleRows counts the items of a rule of the mapping, or of one of its indexes, with the
// row key of the first item as an example.
type RuleRows struct {
	Rule  string `json:"rule,omitempty"`  // of the mapping, "" for an index
	Index string `json:"index,omitempty"` // its name, "" for a rule
	Items int64  `json:"items"`           // that it takes
	// Item is the key of the first item. Row is the key of its row as text, RowHex in
	// hex. They are "" if Items is 0.
	Item   string `json:"item,omitempty"`
	Row    string `json:"row,omitempty"`
	RowHex string `json:"rowHex,omitempty"`
}

// Count counts an item that the rule takes, by its key in canonical JSON and its row.
func (r *RuleRows) Count(key func() string, row []byte) {
	if r.Items++; r.Items == 1 {
		r.Item, r.Row, r.RowHex = key(), phrase.Column(string(row)), hex.EncodeToString(row)
	}
}

// AcceptedLoss is a loss of a table that its mapping accepts.
type AcceptedLoss struct {
	Rule string `json:"rule"` // of the mapping
	What string `json:"what"` // as in accept_loss
	// Family, GC (its rule: "versions: 2") and Cells describe a loss by garbage
	// collection.
	Family string `json:"family,omitempty"`
	GC     string `json:"gc,omitempty"`
	Cells  int64  `json:"cells,omitempty"`
	// Attribute and Values describe a loss by the layout.
	Attribute string `json:"attribute,omitempty"`
	Values    int64  `json:"values,omitempty"`
	Example   string `json:"example"`       // the key of an item
	Why       string `json:"why,omitempty"` // as in accept_loss
}

// Check is the result of one step of a verification.
type Check struct {
	Name        string     `json:"name"`            // "round trip"
	Table       string     `json:"table,omitempty"` // the Bigtable table, or "" for all; of "not laid out" the DynamoDB table
	State       CheckState `json:"state"`           // its result
	Differences int64      `json:"differences"`     // failures, also of those not listed
	// Detail describes the check, or the reason why it was skipped.
	Detail string `json:"detail,omitempty"`
}

// CheckState is the result of a check.
type CheckState string

// The states of a check.
const (
	CheckOK      CheckState = "ok"
	CheckFailed  CheckState = "failed"  // it found differences
	CheckSkipped CheckState = "skipped" // it could not run
	CheckNoted   CheckState = "noted"   // no difference, but notes: lint errors or warnings, or parts of a table that are not laid out
)

// PatternReport is one access pattern that was run.
type PatternReport struct {
	ID    string `json:"id"`              // as in its file
	Title string `json:"title,omitempty"` // in words
	// Endpoints are the endpoints that were used: "dynamodb", "bigtable".
	Endpoints []string `json:"endpoints"`
	// Ranges is the number of keys and ranges of the native read. RowsScanned and
	// RowsReturned are the counts of the server; 0 if it sends none.
	Ranges       int   `json:"ranges"`
	RowsScanned  int64 `json:"rowsScanned"`
	RowsReturned int64 `json:"rowsReturned"`

	Items       int   `json:"items"`       // of the answer
	Differences int64 `json:"differences"` // failures, also of those not listed
}

// Report is the result of a load or a verification.
type Report struct {
	Fixture string `json:"fixture,omitempty"` // its name; "" of a source
	Title   string `json:"title,omitempty"`   // of the fixture
	Source  string `json:"source"`            // the path that was opened
	Format  string `json:"format"`            // as source.Source has it
	// ComparedWith names the rows that were compared with the source: those of a private store,
	// a server or a folder; "" if the caller knows none.
	ComparedWith string `json:"comparedWith,omitempty"`
	// Items is the number of items read, summed over the tables.
	Items int64 `json:"items"`
	// Rows is the number of base rows: those of indexes are not counted.
	Rows int64 `json:"rows"`
	// Differences is the number of failures, also of those not listed.
	Differences int64 `json:"differences"`
	// Exceptions is the number of sidecar cells.
	Exceptions int64 `json:"exceptions"`
	// Compared reports whether anything was compared: Load does not.
	Compared bool `json:"compared"`
	// Warnings are facts that a reader should know although nothing differs.
	Warnings []string        `json:"warnings"`
	Tables   []TableReport   `json:"tables"`   // one a table of the source
	Checks   []Check         `json:"checks"`   // in the order in which they ran
	Patterns []PatternReport `json:"patterns"` // in the order in which they ran
	// NotLaidOut are the parts of the tables that the mappings do not lay out.
	NotLaidOut []NotLaidOut `json:"notLaidOut"`
	// Failures are the first differences, at most migrate.Common.MaxDifferences. Beyond
	// that number, the first failure of each check and kind is still listed.
	Failures []Failure `json:"failures"`
	// Lint has the findings of package lint; nil if it was not applied.
	Lint *lint.Result `json:"lint,omitempty"`

	// OnlyLint means that only the rules of lint were applied.
	OnlyLint bool `json:"-"`
	// DiffOf is the unit of a comparison of two sides, "item" or "row"; "" in other reports.
	DiffOf string `json:"-"`
	// FailOn is the lowest level whose findings are differences.
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

// Aside returns an empty report like r, for failures that [Report.FailAs] can add to r as
// another kind.
func (r *Report) Aside() *Report {
	found := New(r.most)
	found.failed = r.failed
	return found
}

// full reports whether only the first failure of a further check or kind is listed.
func (r *Report) full() bool { return len(r.Failures) >= r.most }

// Lists reports whether the next failure of a kind is listed.
func (r *Report) Lists(kind Kind) bool {
	return !r.full() || r.listed[failureGroup{stage: r.stage, kind: kind}] == 0
}

// AllDifferences returns the number of differences, including unlisted ones that follow
// from failed items.
func (r *Report) AllDifferences() int64 { return r.Differences + r.unlisted }

// Equal reports whether nothing differed.
func (r *Report) Equal() bool { return r.Differences == 0 }

// IsDifference reports whether a finding of lint counts as a difference.
func (r *Report) IsDifference(f lint.Finding) bool {
	return r.FailOn != lint.Off && f.Level >= r.FailOn
}

// Uncounted describes the errors and warnings of lint that are not differences, with the flag
// that counts them: "1 error, 2 warnings not counted as differences (--fail-on lint=warn counts
// them)"; "" without any.
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

// FailuresOf returns the listed failures of the check with that index.
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

// BeginPattern makes an access pattern the current stage.
func (r *Report) BeginPattern(id string) { r.stage = stage{"pattern " + id, noCheck} }

// Fail records a failure of the current stage.
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

// Grouped returns the failure as a member of a group within its kind. A short report lists
// at least one failure of each group.
func (f Failure) Grouped(by string) Failure {
	f.by = by
	return f
}

// FailAs records the failures of found as failures of one kind.
func (r *Report) FailAs(kind Kind, found *Report) {
	r.unlisted += found.unlisted
	for _, f := range found.Failures {
		f = f.Grouped(string(f.Kind) + " " + f.by)
		f.Detail, f.Kind = strings.TrimSuffix(string(f.Kind)+": "+f.Detail, ": "), kind
		r.Fail(f)
	}
	r.Differences += found.Differences - int64(len(found.Failures))
}

// Check runs one check and records the number of its differences.
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

// Skip records a check that cannot run, with the reason.
func (r *Report) Skip(name, table, why string, args ...any) {
	r.Checks = append(r.Checks, Check{Name: name, Table: table, State: CheckSkipped, Detail: fmt.Sprintf(why, args...)})
}
