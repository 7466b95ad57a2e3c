package migrate

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/tabletop-emu/tabletop/internal/layout"
	"github.com/tabletop-emu/tabletop/internal/layout/lens"
	"github.com/tabletop-emu/tabletop/internal/phrase"
	"github.com/tabletop-emu/tabletop/migrate/infer"
	"github.com/tabletop-emu/tabletop/migrate/internal/table"
	"github.com/tabletop-emu/tabletop/migrate/report"
	"github.com/tabletop-emu/tabletop/migrate/source"
)

// Plan describes a load before it happens: the tables that it would create, and the
// effect on each attribute.
type Plan struct {
	Source string      `json:"source"` // path of the source
	Format string      `json:"format"` // format, as in source.Source
	Tables []TablePlan `json:"tables"` // one per DynamoDB table
	// NotLaidOut lists the parts of the tables that the mappings do not lay out. Each of
	// them is also a warning.
	NotLaidOut []report.NotLaidOut `json:"notLaidOut"`
	// Warnings lists other facts that the user should know.
	Warnings []string `json:"warnings"`
}

// TablePlan is the plan for one DynamoDB table.
type TablePlan struct {
	Name   string `json:"name"`   // name of the DynamoDB table
	Items  int64  `json:"items"`  // number of items that are laid out
	Rows   int64  `json:"rows"`   // number of rows in the table of the items
	Cells  int64  `json:"cells"`  // number of cells in those rows
	Joiner string `json:"joiner"` // joiner of the row keys
	// DerivedBytes is the size of names and values of the attributes that need no cell, since
	// the mapping derives them.
	DerivedBytes int64 `json:"derivedBytes,omitzero"`
	// Bigtable lists the tables that a load creates: the items' table, the indexes, and
	// _migration_schema, which all mappings share.
	Bigtable []BigtablePlan `json:"bigtable"`
	// Views lists the indexes that are continuous materialized views.
	Views []ViewPlan `json:"views"`
	// Rules lists the rules of the mapping, followed by its indexes. Each has its number
	// of items and an example row key.
	Rules []report.RuleRows `json:"rules"`
	// Fidelity describes the effect on each attribute that a rule places, and on other
	// attributes that occur. Text shows only attributes that occur, with losses first.
	Fidelity []report.Fidelity `json:"fidelity"`
	// LeftOut is the number of items that the mapping cannot lay out. Items does not
	// count them, and Refused lists the reasons. A load rejects a source with such items.
	LeftOut int64                 `json:"leftOut"`
	Refused []report.RefusedItems `json:"refused"`
	// Notes lists other changes for users of the table, as one sentence each.
	Notes   []string       `json:"notes"`
	Choices []infer.Choice `json:"choices"` // decisions of the inference, with reasons
	// Mapping is the mapping as text.
	Mapping string `json:"mapping"`
}

// BigtablePlan describes one Bigtable table that a load creates.
type BigtablePlan struct {
	ID       string       `json:"id"`              // id of the table
	Index    string       `json:"index,omitempty"` // name of the index, or "" for the table of the items
	Families []FamilyPlan `json:"families"`        // families, in the order of the mapping
}

// FamilyPlan describes a column family and its garbage collection.
type FamilyPlan struct {
	Name string `json:"name"` // name of the family
	GC   string `json:"gc"`   // such as "versions: 1, maxAge: 720h", or "none"
}

// ViewPlan describes a continuous materialized view.
type ViewPlan struct {
	Name string `json:"name"` // id of the view
	SQL  string `json:"sql"`  // query that creates the view
}

// Refuses reports whether a load would reject the source because of its items.
func (p *Plan) Refuses() bool {
	return slices.ContainsFunc(p.Tables, func(t TablePlan) bool { return t.LeftOut > 0 })
}

// MakePlan reads a source and lays it out without writing anything. The plan lists items
// that the mapping cannot lay out. MakePlan otherwise returns the same errors as Prepare.
func MakePlan(ctx context.Context, src *source.Source, o PlanOptions) (*Plan, error) {
	options := LoadOptions{Common: o.Common}.options()
	options.Judges = true
	r, err := table.Prepare(ctx, src, options)
	if err != nil {
		return nil, err
	}
	plan := &Plan{Source: src.Path, Format: src.Format, Tables: []TablePlan{}, NotLaidOut: r.Report.NotLaidOut, Warnings: r.Report.Warnings}
	for _, j := range r.Jobs {
		t := TablePlan{
			Name: j.Report.Name, Items: j.Report.Items, Rows: j.Report.Rows, Cells: j.Report.Cells, Joiner: j.Mapping.Joiner(), DerivedBytes: j.Report.DerivedBytes,
			Bigtable: createdTables(j.Mapping), Views: []ViewPlan{}, Rules: j.Report.Rules,
			Fidelity: j.Report.Fidelity, LeftOut: j.Report.LeftOut, Refused: j.Report.Refused, Notes: append([]string{}, j.Mapping.Notes()...), Choices: j.Report.Choices, Mapping: j.Report.Mapping,
		}
		for _, v := range j.Mapping.Views() {
			t.Views = append(t.Views, ViewPlan{v.ID(), v.SQL()})
		}
		plan.Tables = append(plan.Tables, t)
	}
	return plan, nil
}

func bigtablePlans(m *layout.Mapping) []BigtablePlan {
	plans := []BigtablePlan{{ID: m.TargetTable(), Families: familyPlans(m.Families())}}
	for _, x := range m.Indexes() {
		plans = append(plans, BigtablePlan{ID: x.TargetTable(), Index: x.Name(), Families: familyPlans(x.Families())})
	}
	return plans
}

// createdTables returns the tables that a load creates.
func createdTables(m *layout.Mapping) []BigtablePlan {
	plans := bigtablePlans(m)
	for i := range plans {
		plans[i].Families = append(plans[i].Families, familyPlans([]layout.Family{table.StateFamily})...)
	}
	if m.Spec() != nil {
		plans = append(plans, BigtablePlan{ID: layout.SchemaTable, Families: familyPlans(table.SchemaFamilies)})
	}
	return plans
}

func familyPlans(families []layout.Family) []FamilyPlan {
	plans := []FamilyPlan{}
	for _, f := range families {
		plans = append(plans, FamilyPlan{f.Name, f.GC.String()})
	}
	return plans
}

// Text formats the plan for a terminal.
func (p *Plan) Text() string {
	var b strings.Builder
	fmt.Fprintf(&b, "source %s (%s)\n", p.Source, p.Format)
	for _, t := range p.Tables {
		fmt.Fprintf(&b, "\ntable %s: %s, %s, %s\n", t.Name, phrase.Counted(t.Items, "item"), phrase.Counted(t.Rows, "row"), phrase.Counted(t.Cells, "cell"))
		for _, c := range t.Choices {
			fmt.Fprintf(&b, "  %-10s %s\n  %-10s   (%s)\n", c.What, c.Chosen, "", c.Why)
		}
		for _, bt := range t.Bigtable {
			fmt.Fprintf(&b, "\n  Bigtable table %s", bt.ID)
			if bt.Index != "" {
				fmt.Fprintf(&b, ", index %s", bt.Index)
			}
			if bt.ID == layout.SchemaTable {
				b.WriteString(", which describes how to read all tables")
			}
			b.WriteByte('\n')
			width := 0
			for _, f := range bt.Families {
				width = max(width, len(f.Name))
			}
			for _, f := range bt.Families {
				fmt.Fprintf(&b, "    family %-*s  gc %s", width, f.Name, f.GC)
				if f.Name == lens.FamilyState {
					b.WriteString("  (the bookkeeping of the DynamoDB endpoint)")
				}
				b.WriteByte('\n')
			}
		}
		for _, v := range t.Views {
			fmt.Fprintf(&b, "\n  continuous materialized view %s\n    a load creates it, and so does this command, with the query in FILE:\n    gcloud bigtable materialized-views create %s --instance=INSTANCE --query=\"$(cat FILE)\"\n\n    %s\n",
				v.Name, v.Name, strings.ReplaceAll(strings.TrimSpace(v.SQL), "\n", "\n    "))
		}
		if t.LeftOut > 0 {
			fmt.Fprintf(&b, "\n  %s that the mapping cannot lay out: a load rejects the source, or writes them as dead letters\n", phrase.Counted(t.LeftOut, "item"))
		}
		for _, x := range t.Refused {
			fmt.Fprintf(&b, "    %s\n", x)
		}
		b.WriteString("\n  row keys\n")
		b.WriteString(rowKeyTable(t.Rules))
		if len(t.Fidelity) > 0 {
			b.WriteString("\n  fidelity\n")
			b.WriteString(fidelityTable(t.Fidelity))
		}
		if t.DerivedBytes > 0 {
			fmt.Fprintf(&b, "    %s of derived attributes are not stored\n", phrase.Counted(t.DerivedBytes, "byte"))
		}
		if len(t.Notes) > 0 {
			b.WriteString("\n  other changes\n")
		}
		for _, note := range t.Notes {
			fmt.Fprintf(&b, "    %s\n", note)
		}
	}
	if len(p.Warnings) > 0 {
		b.WriteByte('\n')
	}
	for _, w := range p.Warnings {
		fmt.Fprintf(&b, "warning: %s\n", w)
	}
	return b.String()
}

// rowKeyTable lists the row key of an example item for each rule and index.
func rowKeyTable(all []report.RuleRows) string {
	name := func(r report.RuleRows) string {
		if r.Index != "" {
			return "index " + r.Index
		}
		return cmp.Or(r.Rule, "any item")
	}
	width := 0
	for _, r := range all {
		width = max(width, len(name(r)))
	}
	width = min(width, 40)
	var b strings.Builder
	for _, r := range all {
		fmt.Fprintf(&b, "    %-*s  %s", width, name(r), phrase.Counted(r.Items, "item"))
		if r.Items > 0 {
			fmt.Fprintf(&b, "; %s\n    %-*s  is in row %s [%s]", phrase.Clip(r.Item), width, "", phrase.Clip(r.Row), phrase.Clip(r.RowHex))
		}
		b.WriteByte('\n')
	}
	return b.String()
}

// fidelityTable lists the attributes that occur by class, greatest losses first.
func fidelityTable(declared []report.Fidelity) string {
	rank := []string{layout.Lossy.String(), layout.LosslessInDomain.String(), layout.Lossless.String()}
	all := slices.DeleteFunc(slices.Clone(declared), func(f report.Fidelity) bool { return f.Items == 0 })
	slices.SortStableFunc(all, func(a, b report.Fidelity) int { return slices.Index(rank, a.Class) - slices.Index(rank, b.Class) })
	name := func(f report.Fidelity) string { return f.Rule + " " + f.Attribute }
	width, count := 0, map[string]int64{}
	for _, f := range all {
		width = max(width, len(name(f)))
		count[f.Class]++
	}
	width = min(width, 40)
	var b strings.Builder
	for _, f := range all {
		line := fmt.Sprintf("    %-*s  %-*s  %s", width, name(f), len(rank[1]), f.Class, strings.TrimPrefix(f.Why+"; "+phrase.Counted(f.Items, "item"), "; "))
		b.WriteString(strings.TrimRight(line, " ") + "\n")
	}
	var parts []string
	for _, class := range rank {
		if count[class] > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", count[class], class))
		}
	}
	if len(all) > 0 {
		fmt.Fprintf(&b, "    %s: %s\n", phrase.Counted(int64(len(all)), "attribute"), strings.Join(parts, ", "))
	}
	if n := len(declared) - len(all); n > 0 {
		fmt.Fprintf(&b, "    %s of rules without items are omitted (--report json=FILE has them)\n", phrase.Counted(int64(n), "attribute"))
	}
	return b.String()
}

// JSON returns the plan as one indented JSON object.
func (p *Plan) JSON() ([]byte, error) {
	text, err := json.Marshal(p, jsontext.WithIndent("  "))
	if err != nil {
		return nil, fmt.Errorf("writing the plan: %w", err)
	}
	return append(text, '\n'), nil
}
