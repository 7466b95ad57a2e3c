package compare

import (
	"context"
	"fmt"
	"slices"
	"strings"

	btapb "cloud.google.com/go/bigtable/admin/apiv2/adminpb"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/tabletop-emu/tabletop/internal/layout"
	"github.com/tabletop-emu/tabletop/internal/layout/lens"
	"github.com/tabletop-emu/tabletop/internal/phrase"
	"github.com/tabletop-emu/tabletop/migrate/internal/table"
	"github.com/tabletop-emu/tabletop/migrate/report"
)

// FamiliesCheck is the report's name for the check of column families.
const FamiliesCheck = "families"

// Families compares the families of a job's tables with the mapping. It returns the
// families that decide about garbage collection: those of the items' table or, if they cannot
// be read, those of the mapping. Undeclared families are reported but are not a difference;
// their cells are.
func Families(ctx context.Context, b *table.Bigtable, r *report.Report, j *table.Job) ([]layout.Family, error) {
	judged, err := compareFamiliesOf(ctx, b, r, table.RowLayout{J: j}, j.Report.Target, j.Mapping.Families())
	if err != nil {
		return nil, err
	}
	for _, x := range j.Indexes {
		if _, err := compareFamiliesOf(ctx, b, r, table.RowLayout{J: j, Index: x}, x.TargetTable(), x.Families()); err != nil {
			return nil, err
		}
	}
	return judged, nil
}

func compareFamiliesOf(ctx context.Context, b *table.Bigtable, r *report.Report, tl table.RowLayout, id string, declared []layout.Family) ([]layout.Family, error) {
	families, err := b.Families(ctx, id)
	switch code := status.Code(err); {
	case err == nil:
	case code == codes.NotFound: // the comparison of its rows reports it
		r.Skip(FamiliesCheck, id, "the table does not exist")
		return declared, nil
	case code == codes.PermissionDenied, code == codes.Unauthenticated, code == codes.Unimplemented: // permission to read rows does not imply permission to read families
		r.Skip(FamiliesCheck, id, "the families of the table and their garbage collection cannot be read, so the check assumes the families of the mapping: %s", phrase.Clip(err.Error()))
		return declared, nil
	default:
		return nil, err
	}
	judged := slices.Clone(declared)
	var unjudged []string
	err = r.Check(FamiliesCheck, id, func() (string, error) {
		for _, x := range table.FamilyChanges(families, declared) {
			want := x.Family
			f := tl.Owned(report.Failure{Kind: report.FamilyDiffers, Table: id, Column: want.Name, Want: "gc " + want.GC.String()}, table.Owner{})
			if tl.Index == nil {
				f.Mapping = tl.J.Mapping.FamilyPosition(want.Name)
			}
			switch {
			case x.Missing && want.Name == lens.FamilyTypes && !exceptions(tl):
				continue // it is for exceptions, and the table may have none
			case x.Missing:
				f.Got = "no such family"
			case x.Plain:
				judged[x.At].GC, f.Got = x.Has, "gc "+x.Has.String()
			default:
				judged[x.At].GC, f.Got = x.Has, fmt.Sprintf("gc {%v}", families[want.Name])
				unjudged = append(unjudged, want.Name)
			}
			r.Fail(f)
		}
		return familiesText(families, declared), nil
	})
	if tl.Index == nil && len(unjudged) > 0 {
		r.Skip("retention by intersection", id, "losses by the rule of %s are not checked: a mapping cannot declare such a rule", strings.Join(unjudged, ", "))
	}
	return judged, err
}

// exceptions reports whether items of the source have cells in the family of exceptions. For
// an index it reports true.
func exceptions(l table.RowLayout) bool { return l.Index != nil || l.J.Report.Exceptions > 0 }

// familiesText returns the number of compared families, and the names of others.
func familiesText(families map[string]*btapb.GcRule, declared []layout.Family) string {
	var known []string
	for _, f := range declared {
		known = append(known, f.Name)
	}
	var others []string
	for name := range families {
		if !slices.Contains(known, name) && !lens.Bookkeeping(name) {
			others = append(others, name)
		}
	}
	text := fmt.Sprintf("%d declared", len(declared))
	if len(others) > 0 {
		slices.Sort(others)
		text += phrase.Clip("; not declared: " + strings.Join(others, ", "))
	}
	return text
}
