package table

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/tabletop-emu/tabletop/internal/extsort"
	"github.com/tabletop-emu/tabletop/internal/layout"
	"github.com/tabletop-emu/tabletop/internal/layout/lens"
	"github.com/tabletop-emu/tabletop/internal/layout/mapfile"
	"github.com/tabletop-emu/tabletop/internal/layout/rowtext"
	"github.com/tabletop-emu/tabletop/internal/phrase"
	"github.com/tabletop-emu/tabletop/migrate/infer"
	"github.com/tabletop-emu/tabletop/migrate/internal/parts"
	"github.com/tabletop-emu/tabletop/migrate/report"
	"github.com/tabletop-emu/tabletop/migrate/source"
)

// tally is the result of a pass over the source: the expected contents of the tables.
type tally struct {
	n          int64 // items
	rows       int64
	cells      extsort.Bag
	items      extsort.Bag
	index      map[string]extsort.Bag
	expired    int64 // items whose time to live is over
	exceptions int64
	derived    int64 // bytes
	sidecar    []report.SidecarCells
	rules      []report.RuleRows
	entries    []report.RuleRows // of the indexes
	accepted   []report.AcceptedLoss
	strays     []stray
	attributes map[ruleAttribute]int64 // number of items that have it
	lost       *surplus                // nil: garbage collection can remove no cells, or a comparison finds them
}

// ruleAttribute is an attribute of the items of a rule.
type ruleAttribute struct{ rule, attribute string }

// maxCountedAttributes bounds the counted attributes: a name can be data.
const maxCountedAttributes = 20_000

// examine reads all of the table's source, lays it out, and checks that no two items collide
// in a cell or in the row of an index. It computes the expected contents of the tables, and
// describes the mapping in the job's report.
//
// It is a separate pass before the writing one, so that a damaged source, or colliding items,
// are found before anything is written. That one pass makes every check. examine reads the
// source again only to name items that collide, or whose cells garbage collection would
// remove, and to count again after it has excluded items.
//
// If the mapping leaves the joiner open, examine chooses it based on all keys. The choice
// does not change any row (see layout.JoinerProof).
func examine(ctx context.Context, j *Job) (warnings []string, err error) {
	var proof *layout.JoinerProof
	var t *tally
	for t == nil { // count again after excluding items
		proof = j.Mapping.ProveJoiner()
		if t, err = count(ctx, j, proof); err != nil {
			return nil, err
		}
	}
	if t.lost != nil {
		defer t.lost.close()
	}
	if j.Report.Items == 0 {
		warnings = append(warnings, fmt.Sprintf("table %s: no items were read, so samples are missing", j.Source.Name))
	}
	for _, doubt := range j.Source.Doubts() {
		if text := fmt.Sprintf("table %s: %s", j.Source.Name, doubt); !slices.Contains(j.Warnings, text) {
			warnings = append(warnings, text)
		}
	}
	warnings = append(warnings, j.Unmet(mapfile.LossTypes, mapfile.LossEmpty, mapfile.LossPrecision, mapfile.LossNull)...)
	if text := expiryWarning(j); text != "" {
		warnings = append(warnings, text)
	}
	warnings = append(append(warnings, t.strayWarnings(j)...), t.markerWarnings(j)...)
	if t.lost != nil {
		lost, err := t.lost.warnings(ctx, j)
		if err != nil {
			return nil, err
		}
		warnings = append(warnings, lost...)
	}
	if proof != nil {
		j.Report.Choices = append(j.Report.Choices, infer.JoinerChoice(proof, j.Report.Items))
		joiner := proof.Joiner()
		if j.Options.Share.Of > 0 { // other parts have other keys
			j.Joiner, joiner = joiner, proof.Safe()
		}
		if j.Mapping, err = j.Mapping.Proven(joiner); err != nil {
			return nil, err
		}
	}
	t.describe(j)
	return warnings, nil
}

// count makes a pass over the source and returns its tally. It returns nil if it has excluded
// colliding items: the caller then counts again.
func count(ctx context.Context, j *Job, proof *layout.JoinerProof) (t *tally, err error) {
	t = &tally{index: map[string]extsort.Bag{}, accepted: []report.AcceptedLoss{}, sidecar: []report.SidecarCells{}, rules: []report.RuleRows{}, entries: []report.RuleRows{}, attributes: map[ruleAttribute]int64{}}
	if spec := j.Mapping.Spec(); spec != nil {
		for _, r := range spec.Rules {
			t.rules = append(t.rules, report.RuleRows{Rule: r.Name})
		}
	}
	for _, x := range j.Indexes {
		t.index[x.TargetTable()] = extsort.Bag{}
		t.entries = append(t.entries, report.RuleRows{Index: x.Name()})
	}
	for _, v := range j.Mapping.Views() {
		t.index[v.ID()] = extsort.Bag{}
		t.entries = append(t.entries, report.RuleRows{Index: v.Name()})
	}
	for _, ranges := range j.Ranges {
		for i := range ranges {
			ranges[i].Wanted = parts.Sums{}
		}
	}
	rows := extsort.NewSet(j.Options.TempDir)
	defer rows.Close()
	at := newPlaces(j)
	defer at.close()
	lost := newSurplus(j)
	defer func() {
		if t != nil && err == nil {
			t.lost = lost
		} else if lost != nil {
			lost.close()
		}
	}()
	if folder := j.Options.folder(); j.Options.Share.Of > 0 && folder.Verb == parts.Loading {
		kept, openErr := folder.CreateRows(j.Options.Share, j.Report.Target)
		if openErr != nil {
			return nil, openErr
		}
		w := bufio.NewWriterSize(kept, 1<<16)
		defer func() { err = folder.PlaceRows(kept, j.Options.Share, j.Report.Target, errors.Join(err, w.Flush())) }()
		rows.Keep = w
	}
	versions := j.Mapping.ProveVersions()
	err = j.Each(ctx, "checking", func(p Placed) error {
		if versions != nil {
			if err := versions.Add(p.Entry.Item); err != nil {
				return RowLayout{J: j}.refuses(p.Entry, err, "the mapping cannot hold the item")
			}
		}
		if proof != nil {
			if err := proof.Add(p.Entry.Item); err != nil {
				return RowLayout{J: j}.refuses(p.Entry, err, "the mapping cannot hold the item")
			}
		}
		t.add(j, p)
		t.stray(j, p)
		if err := at.add(j, p); err != nil {
			return err
		}
		if lost != nil {
			if err := lost.add(j, p); err != nil {
				return err
			}
		}
		return rows.Add(extsort.HashOf(p.Base.Row))
	})
	if err != nil {
		return nil, err
	}
	if versions != nil {
		if err := versions.Finish(); err != nil {
			return nil, source.Refused(source.Position{}, err, "the mapping cannot hold the items")
		}
	}
	var shared []extsort.Hash
	if t.rows, shared, _, err = rows.Finish(1, 1); err != nil {
		return nil, err
	}
	// Items with a row of their own cannot collide.
	if len(shared) > 0 {
		if again, err := meetings(ctx, j, at); again || err != nil {
			return nil, err
		}
	}
	if again, err := entriesMeet(ctx, j, at); again || err != nil {
		return nil, err
	}
	j.Wanted = Contents{Cells: t.cells, Items: t.items, Index: t.index}
	j.Report.Items, j.Report.Rows, j.Report.Cells = t.n, t.rows, t.cells.Count
	j.Report.Exceptions, j.Report.Sidecar, j.Report.Rules = t.exceptions, t.sidecar, append(t.rules, t.entries...)
	j.Report.Accepted, j.Report.DerivedBytes = t.accepted, t.derived
	j.Report.Expired = t.expired + j.left
	return t, nil
}

func (t *tally) add(j *Job, p Placed) {
	t.n++
	if j.expiredItem(p) {
		t.expired++
	}
	var items, cells extsort.Bag
	items.AddItem(p.Back)
	for name := range p.Entry.Item {
		at := ruleAttribute{p.Base.Rule, name}
		if n, known := t.attributes[at]; known || len(t.attributes) < maxCountedAttributes {
			t.attributes[at] = n + 1
		}
	}
	for _, l := range p.losses {
		t.accept(j, p, l)
	}
	for _, c := range p.Base.Cells {
		cells.AddCell(p.Base.Row, c)
	}
	t.items.Join(items)
	t.cells.Join(cells)
	j.Ranges.Want(j.Report.Target, p.Base.Row, parts.Sums{Cells: cells, Items: items})
	i := slices.IndexFunc(t.rules, func(r report.RuleRows) bool { return r.Rule == p.Base.Rule })
	if i < 0 { // a layout without rules
		i = len(t.rules)
		t.rules = append(t.rules, report.RuleRows{Rule: p.Base.Rule})
	}
	key := func() string { return j.KeyJSON(p.Entry.Item) }
	t.rules[i].Count(key, p.Base.Row)
	for i, x := range j.Indexes {
		if p.Index[i].Row != nil {
			t.entries[i].Count(key, p.Index[i].Row)
		}
		var entry extsort.Bag
		for _, c := range p.Index[i].Cells {
			entry.AddCell(p.Index[i].Row, c)
		}
		sum := t.index[x.TargetTable()]
		sum.Join(entry)
		t.index[x.TargetTable()] = sum
		if p.Index[i].Row != nil {
			j.Ranges.Want(x.TargetTable(), p.Index[i].Row, parts.Sums{Cells: entry})
		}
	}
	for i, v := range j.Mapping.Views() {
		if entry := p.Views[i]; entry.Row != nil {
			t.entries[len(j.Indexes)+i].Count(key, entry.Row)
			sum := t.index[v.ID()]
			sum.AddCell(entry.Row, entry.Cells[0])
			t.index[v.ID()] = sum
		}
	}
	t.derived += int64(p.Base.Saved)
	if p.Base.Exceptions > 0 {
		t.exceptions += int64(p.Base.Exceptions)
		t.addSidecar(j, p)
	}
}

// accept counts a loss that the mapping accepts.
func (t *tally) accept(j *Job, p Placed, l layout.Loss) {
	i := slices.IndexFunc(t.accepted, func(a report.AcceptedLoss) bool {
		return a.Rule == p.Base.Rule && a.What == l.What && a.Attribute == l.Attribute
	})
	if i < 0 {
		i = len(t.accepted)
		t.accepted = append(t.accepted, report.AcceptedLoss{
			Rule: p.Base.Rule, What: l.What, Attribute: l.Attribute, Example: j.KeyJSON(p.Entry.Item), Why: j.Why(p.Base.Rule, l.What),
		})
	}
	t.accepted[i].Values++
}

// addSidecar counts the sidecar cells of an item by their meaning.
func (t *tally) addSidecar(j *Job, p Placed) {
	for _, c := range p.Base.Cells {
		if c.Family != lens.FamilyTypes {
			continue
		}
		kind := rowtext.SidecarKindOf(c)
		i := slices.IndexFunc(t.sidecar, func(s report.SidecarCells) bool { return s.Kind == kind })
		if i < 0 {
			i = len(t.sidecar)
			t.sidecar = append(t.sidecar, report.SidecarCells{
				Kind: kind, What: kind.String(), Item: j.KeyJSON(p.Entry.Item), Column: c.Family + ":" + phrase.Column(string(c.Qualifier)),
			})
		}
		t.sidecar[i].Cells++
	}
}
