package control

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"path"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/tabletop-emu/tabletop/facade/attr"
	"github.com/tabletop-emu/tabletop/facade/maperr"
	"github.com/tabletop-emu/tabletop/facade/mapping"
	"github.com/tabletop-emu/tabletop/fixtures"
	"github.com/tabletop-emu/tabletop/internal/layout"
	"github.com/tabletop-emu/tabletop/migrate"
	"github.com/tabletop-emu/tabletop/migrate/lint"
	"github.com/tabletop-emu/tabletop/migrate/report"
	"github.com/tabletop-emu/tabletop/migrate/source"
)

const (
	// maxPreviewed is the maximum number of items that a preview lays out.
	maxPreviewed = 20
	// maxPreviewRead and maxPreviewBytes limit the data that a preview reads to choose items:
	// beyond them the data is not judged as a whole.
	maxPreviewRead  = 2000
	maxPreviewBytes = 4 << 20
	// maxPreviewItem is the largest shown item, as JSON; in the row of a larger one, values
	// are cut.
	maxPreviewItem = 64 << 10
	maxPreviewCell = 1 << 10
)

// folder returns the folder of a fixture.
func (s *Server) folder(name string) (fs.FS, error) {
	all := s.folders()
	if all == nil {
		return nil, errNoFixtures
	}
	if name == "" || !fs.ValidPath(name) {
		return nil, badRequest("fixture is %q, want the name of a folder", name)
	}
	if info, err := fs.Stat(all, name); err != nil || !info.IsDir() {
		return nil, notFound("fixture", name, "GET "+Prefix+"migrate lists them")
	}
	return fs.Sub(all, path.Clean(name))
}

// edited is the folder of a fixture with another mapping text.
type edited struct {
	fs.FS
	mapping []byte
}

// Open implements fs.FS. For the mapping file, it returns the edited text.
func (e edited) Open(name string) (fs.File, error) {
	f, err := e.FS.Open(name)
	if err != nil || name != fixtures.MappingFile {
		return f, err
	}
	info, err := f.Stat()
	if err := errors.Join(err, f.Close()); err != nil {
		return nil, err
	}
	return &mappingText{bytes.NewReader(e.mapping), info}, nil
}

// mappingText is an open mapping file that has the edited text.
type mappingText struct {
	*bytes.Reader
	fs.FileInfo
}

func (t *mappingText) Stat() (fs.FileInfo, error) { return t, nil }
func (t *mappingText) Size() int64                { return t.Reader.Size() }
func (t *mappingText) Close() error               { return nil }

// fixtureText returns the unchanged mapping file of a fixture.
func (s *Server) fixtureText(r *http.Request) (any, error) {
	name := r.PathValue("fixture")
	folder, err := s.folder(name)
	if err != nil {
		return nil, err
	}
	text, err := fixtures.ReadOptional(folder, fixtures.MappingFile)
	if err != nil {
		return nil, refused(err)
	}
	if text == nil {
		return nil, notFound("mapping", path.Join(name, fixtures.MappingFile), "tabletop migrate infer proposes one")
	}
	if !utf8.Valid(text) {
		return nil, badRequest("%s of %s is not UTF-8", fixtures.MappingFile, name)
	}
	return map[string]string{"fixture": name, "mapping": string(text)}, nil
}

// refused converts a fault of an input to an answer.
func refused(err error) error {
	if bad, ok := errors.AsType[*source.Error](err); ok {
		return badRequest("%v", bad)
	}
	if bad, ok := errors.AsType[*fixtures.Error](err); ok {
		return badRequest("%v", bad)
	}
	if bad, ok := errors.AsType[*maperr.SpecError](err); ok {
		return badRequest("%v", bad)
	}
	return err
}

// problem is a fault of the text of a mapping.
type problem struct {
	Line   int    `json:"line,omitempty"` // from 1
	Column int    `json:"column,omitempty"`
	Text   string `json:"text"`
}

func problemsOf(err error) []problem {
	faults, ok := errors.AsType[maperr.SpecErrors](err)
	if one, is := errors.AsType[*maperr.SpecError](err); !ok && is {
		faults = maperr.SpecErrors{one}
	}
	if len(faults) == 0 {
		return []problem{{Text: err.Error()}}
	}
	out := make([]problem, len(faults))
	for i, f := range faults {
		out[i] = problem{f.Line, f.Column, f.Error()}
	}
	return out
}

// lost is an attribute of an item that changes when it is read back.
type lost struct {
	Attribute string `json:"attribute"`
	Why       string `json:"why"`
}

// previewed is an item with its row.
type previewed struct {
	Key        string             `json:"key"` // the JSON of its key attributes
	Item       json.RawMessage    `json:"item,omitempty"`
	Large      int                `json:"large,omitempty"` // size of an item that is not shown, and whose row values are cut
	Refused    string             `json:"refused,omitempty"`
	Rule       string             `json:"rule,omitempty"`
	Row        *row               `json:"row,omitempty"`
	Parts      []keyPart          `json:"parts,omitempty"` // parts of the row key
	Attributes []carriedAttribute `json:"attributes,omitempty"`
	Lost       []lost             `json:"lost,omitempty"`
	// Changed reports that the fixture's own mapping gives another result; Was is its row, if
	// any.
	Changed bool `json:"changed,omitempty"`
	Was     *row `json:"was,omitempty"`
}

type preview struct {
	Problems []problem   `json:"problems"` // of the text; if there are any, the rest is empty
	Table    string      `json:"table,omitempty"`
	Target   string      `json:"target,omitempty"`
	Items    []previewed `json:"items"`
	// Unjudged is the reason why fidelity and lint are missing: the data was not read as a
	// whole.
	Unjudged string            `json:"unjudged,omitempty"`
	LeftOut  int64             `json:"leftOut,omitempty"`  // items that the mapping cannot lay out
	Lossy    []report.Fidelity `json:"lossy,omitempty"`    // attributes with losses
	Warnings []string          `json:"warnings,omitempty"` // of plan
	Findings []lint.Finding    `json:"findings,omitempty"` // of lint, the worst first
}

// preview lays out items of a fixture with a mapping text, and judges the text.
func (s *Server) preview(r *http.Request) (any, error) {
	var in struct {
		Fixture string          `json:"fixture"`
		Mapping *string         `json:"mapping"` // its text. Default: the fixture's own
		Item    json.RawMessage `json:"item"`    // the key of an item to show first
	}
	if err := read(r, &in); err != nil {
		return nil, err
	}
	folder, err := s.folder(in.Fixture)
	if err != nil {
		return nil, err
	}
	own, err := fixtures.ReadOptional(folder, fixtures.MappingFile)
	if err != nil {
		return nil, refused(err)
	}
	text := own
	if in.Mapping != nil {
		text = []byte(*in.Mapping)
	}
	var first attr.Item
	if in.Item != nil {
		if first, err = attr.UnmarshalItem(in.Item); err != nil {
			return nil, badRequest("item is %.200s, want the attributes of a key in DynamoDB's JSON: %v", in.Item, err)
		}
	}
	m, err := mapping.Load(fixtures.MappingFile, text, folder)
	if err != nil {
		return &preview{Problems: problemsOf(err), Items: []previewed{}}, nil
	}
	before, err := mapping.Load(fixtures.MappingFile, own, folder)
	if err != nil {
		before = m // nothing to compare with
	}
	out, err := previewOf(r.Context(), edited{folder, text}, m, before, first)
	return out, refused(err)
}

func previewOf(ctx context.Context, folder fs.FS, m, before *mapping.Mapping, first attr.Item) (*preview, error) {
	src, _, err := migrate.OpenFixture(folder, source.Options{})
	if err != nil {
		return nil, err
	}
	at := slices.IndexFunc(src.Tables, func(t *source.Table) bool { return t.Name == m.SourceTable() })
	if at < 0 && len(src.Tables) == 1 {
		at = 0
	}
	out := &preview{Problems: []problem{}, Table: m.SourceTable(), Target: m.TargetTable(), Items: []previewed{}}
	if at < 0 {
		out.Unjudged = fmt.Sprintf("the data does not contain table %s, to which the mapping applies", m.SourceTable())
		return out, nil
	}
	micros, err := defaultTime(folder, m, src.Tables[at])
	if err != nil {
		return nil, err
	}
	items, whole, err := sample(ctx, src.Tables[at], before, first)
	if err != nil {
		return nil, err
	}
	lossy := map[[2]string]string{} // by rule and attribute
	for _, f := range m.Fidelity() {
		if f.Class == mapping.Lossy {
			lossy[[2]string{f.Rule, f.Attribute}] = f.Why
		}
	}
	for _, item := range items {
		out.Items = append(out.Items, previewItem(m, before, item, micros, lossy))
	}
	if !whole {
		out.Unjudged = fmt.Sprintf("the data has more than %d items or %d MiB; Plan and Lint check all of it", maxPreviewRead, maxPreviewBytes>>20)
		return out, nil
	}
	return out, judge(ctx, folder, src, m, out)
}

// judge adds the results of plan and lint for the whole data.
func judge(ctx context.Context, folder fs.FS, src *source.Source, m *mapping.Mapping, out *preview) error {
	p, err := migrate.MakePlan(ctx, src, migrate.PlanOptions{Common: migrate.Common{Mappings: []*mapping.Mapping{m}}})
	if err != nil {
		return err
	}
	for _, t := range p.Tables {
		out.LeftOut += t.LeftOut
		for _, f := range t.Fidelity {
			if f.Class == layout.Lossy.String() && f.Items > 0 {
				out.Lossy = append(out.Lossy, f)
			}
		}
	}
	out.Warnings = p.Warnings
	judged, err := migrate.Lint(ctx, migrate.OfFixture(folder), migrate.LintOptions{})
	if err != nil {
		if _, ok := errors.AsType[*source.Error](err); ok && out.LeftOut > 0 { // rules do not cover the items that are left out
			return nil
		}
		return err
	}
	if judged.Lint != nil {
		out.Findings = judged.Lint.Findings
	}
	return nil
}

// defaultTime returns the timestamp of cells that do not have a specific one.
func defaultTime(folder fs.FS, m *mapping.Mapping, t *source.Table) (micros int64, err error) {
	if micros, ok := (*layout.Mapping)(m).ImportTimeMicros(); ok {
		return micros, nil
	}
	at := t.ExportTime
	if at.IsZero() {
		if at, err = fixtures.Clock(folder); err != nil {
			return 0, err
		}
	}
	if at.IsZero() {
		return 0, nil
	}
	return at.Truncate(time.Millisecond).UnixMicro(), nil
}

// sample chooses items of a table: the wanted one, then items of each rule in turn, so that
// rare rules are included. whole reports that all items were read.
func sample(ctx context.Context, t *source.Table, m *mapping.Mapping, wanted attr.Item) (items []attr.Item, whole bool, err error) {
	var rules []string
	of := map[string][]attr.Item{}
	var text []byte
	n, size := 0, 0
	for e, err := range t.Entries() {
		if err != nil {
			return nil, false, err
		}
		if err := ctx.Err(); err != nil {
			return nil, false, err
		}
		text = attr.AppendItemJSON(text[:0], e.Item)
		n++
		size += len(text)
		if n > maxPreviewRead || size > maxPreviewBytes {
			return mixed(items, rules, of), false, nil
		}
		if wanted != nil && len(items) == 0 && has(e.Item, wanted) {
			items = append(items, e.Item)
			continue
		}
		rule := ""
		if p, err := m.Place(e.Item, 0); err == nil {
			rule = p.Rule
		}
		if _, ok := of[rule]; !ok {
			rules = append(rules, rule)
		}
		if len(of[rule]) < maxPreviewed {
			of[rule] = append(of[rule], e.Item)
		}
	}
	return mixed(items, rules, of), true, nil
}

// mixed adds items of each rule in turn, until there are maxPreviewed items.
func mixed(items []attr.Item, rules []string, of map[string][]attr.Item) []attr.Item {
	for i := 0; i < maxPreviewed; i++ {
		for _, rule := range rules {
			if i < len(of[rule]) && len(items) < maxPreviewed {
				items = append(items, of[rule][i])
			}
		}
	}
	return items
}

// has reports whether an item has the attributes of a key.
func has(item, key attr.Item) bool {
	for name, v := range key {
		if !attr.Equal(item[name], v) {
			return false
		}
	}
	return true
}

func previewItem(m, before *mapping.Mapping, item attr.Item, micros int64, lossy map[[2]string]string) previewed {
	key := (*layout.Mapping)(m).Key()
	out := previewed{Key: string(attr.AppendItemJSON(nil, key.KeyOf(item))), Item: attr.AppendItemJSON(nil, item)}
	large := len(out.Item) > maxPreviewItem
	if large {
		out.Large, out.Item = len(out.Item), nil
	}
	placed, err := m.Place(item, micros)
	was, wasErr := before.Place(item, micros)
	sorted(placed.Cells)
	sorted(was.Cells)
	out.Changed = (err == nil) != (wasErr == nil) || err == nil && !sameRow(placed.Row, was.Row)
	if large {
		cut(placed.Cells)
		cut(was.Cells)
	}
	if out.Changed && wasErr == nil {
		shown := rowOf(was.Row)
		out.Was = &shown
	}
	if err != nil {
		out.Refused = err.Error()
		if bad, ok := errors.AsType[*maperr.Error](err); ok && bad.Attribute != "" {
			out.Lost = []lost{{bad.Attribute, bad.What}}
		}
		return out
	}
	out.Rule, out.Parts = placed.Rule, keyParts(m, placed.Rule, placed.Row)
	shown := rowOf(placed.Row)
	if out.Row = &shown; !large {
		out.Attributes = carry(m, placed.Row, item).Attributes
	}
	for name := range item {
		if why, ok := lossy[[2]string{placed.Rule, name}]; ok {
			out.Lost = append(out.Lost, lost{name, why})
		}
	}
	slices.SortFunc(out.Lost, func(a, b lost) int { return cmp.Compare(a.Attribute, b.Attribute) })
	return out
}

// sorted sorts cells into storage order.
func sorted(cells []mapping.Cell) {
	slices.SortFunc(cells, func(a, b mapping.Cell) int {
		return cmp.Or(strings.Compare(a.Family, b.Family), bytes.Compare(a.Qualifier, b.Qualifier), cmp.Compare(b.Timestamp, a.Timestamp))
	})
}

func cut(cells []mapping.Cell) {
	for i := range cells {
		cells[i].Value = cells[i].Value[:min(len(cells[i].Value), maxPreviewCell)]
	}
}

func sameRow(a, b mapping.Row) bool {
	return bytes.Equal(a.Key, b.Key) && slices.EqualFunc(a.Cells, b.Cells, func(x, y mapping.Cell) bool {
		return x.Timestamp == y.Timestamp && sameButTime(x, y)
	})
}
