package metamorphic

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	btapb "cloud.google.com/go/bigtable/admin/apiv2/adminpb"
	btpb "cloud.google.com/go/bigtable/apiv2/bigtablepb"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/tabletop-emu/tabletop/engine"
	"github.com/tabletop-emu/tabletop/internal/rowmerge"
	"github.com/tabletop-emu/tabletop/internal/test/model"
)

// Authorized views belong to the server, which stores them among the engine's resources and
// applies them to the engine's tables. So their operations run on a server over the engine under
// test, and their writes interact with backups, journals, crashes and snapshots like direct
// writes.

// takesNumbers is the server's metadata of a family that accumulates numbers, or numbers in
// sketches.
var takesNumbers = func() []byte {
	b, err := proto.Marshal(&btapb.ColumnFamily{ValueType: &btapb.Type{Kind: &btapb.Type_AggregateType{AggregateType: &btapb.Type_Aggregate{
		InputType: &btapb.Type{Kind: &btapb.Type_Int64Type{Int64Type: &btapb.Type_Int64{}}},
	}}}})
	if err != nil {
		panic(err)
	}
	return b
}()

// ofServer reports whether a resource belongs to the server itself.
func ofServer(name string) bool {
	return name == "etags" || name == "operations" || strings.HasPrefix(name, "operation/") || strings.HasPrefix(name, "authorizedView/")
}

// viewText returns the text of a definition in operations and answers.
func viewText(v model.View) string {
	var b strings.Builder
	fmt.Fprintf(&b, "rows %q", v.Rows)
	for _, family := range slices.Sorted(maps.Keys(v.Families)) {
		fmt.Fprintf(&b, " %s: %q, prefixes %q", family, v.Families[family].Qualifiers, v.Families[family].Prefixes)
	}
	return b.String()
}

// viewOutcome returns the name of the status of err.
func viewOutcome(err error) string {
	code := status.Code(err)
	if code == codes.Unknown {
		for of, is := range map[codes.Code][]error{
			codes.NotFound:           {engine.ErrTableNotFound, engine.ErrFamilyNotFound, model.ErrViewNotFound},
			codes.AlreadyExists:      {model.ErrViewExists},
			codes.PermissionDenied:   {model.ErrOutside},
			codes.InvalidArgument:    {engine.ErrInvalid, engine.ErrAggregate},
			codes.FailedPrecondition: {engine.ErrNotCounter},
		} {
			if slices.ContainsFunc(is, func(sentinel error) bool { return errors.Is(err, sentinel) }) {
				code = of
			}
		}
	}
	if code == codes.OK {
		return "ok\n"
	}
	if code == codes.Unknown || code == codes.Internal {
		return "unexpected error: " + err.Error() + "\n"
	}
	return code.String() + "\n"
}

func rowsText(rows []model.Row) string {
	var b strings.Builder
	for _, r := range rows {
		fmt.Fprintf(&b, "row %q\n", r.Key)
		for _, c := range r.Cells {
			c.Ordinal = 0 // the API does not show it
			writeCell(&b, []byte(r.Key), c)
		}
	}
	return b.String()
}

// runView runs an operation on a view.
func (s *modelStore) runView(o op) string {
	switch o.kind { //nolint:exhaustive // the others do not concern views
	case createView:
		return viewOutcome(s.db.CreateView(o.table, o.view, o.subset))
	case updateView:
		return viewOutcome(s.db.UpdateView(o.table, o.view, o.subset))
	case deleteView:
		return viewOutcome(s.db.DeleteView(o.table, o.view))
	case getView:
		v, err := s.db.GetView(o.table, o.view)
		return viewText(v) + "\n" + viewOutcome(err)
	case scanView:
		rows, err := s.db.ScanView(o.table, o.view, o.spans, o.reverse)
		return rowsText(rows) + viewOutcome(err)
	case mutateView:
		return viewOutcome(s.db.MutateView(o.table, o.view, o.row, o.muts))
	case checkView:
		matched, err := s.db.CheckView(o.table, o.view, o.row, o.muts, o.otherwise)
		return fmt.Sprintf("matched: %v\n", matched) + viewOutcome(err)
	case readModifyWriteView:
		cells, err := s.db.ReadModifyWriteView(o.table, o.view, o.row, o.rules)
		return rowsText([]model.Row{{Key: o.row, Cells: cells}}) + viewOutcome(err)
	}
	return "unknown operation\n"
}

// runView runs an operation on a view through the server.
func (s *engineStore) runView(ctx context.Context, o op) string {
	conn := s.server.Conn()
	admin, data := btapb.NewBigtableTableAdminClient(conn), btpb.NewBigtableClient(conn)
	name := o.table + "/authorizedViews/" + o.view
	switch o.kind { //nolint:exhaustive // the others do not concern views
	case createView:
		_, err := admin.CreateAuthorizedView(ctx, &btapb.CreateAuthorizedViewRequest{Parent: o.table, AuthorizedViewId: o.view, AuthorizedView: definitionOf("", o.subset)})
		return viewOutcome(err)
	case updateView:
		_, err := admin.UpdateAuthorizedView(ctx, &btapb.UpdateAuthorizedViewRequest{AuthorizedView: definitionOf(name, o.subset)})
		return viewOutcome(err)
	case deleteView:
		_, err := admin.DeleteAuthorizedView(ctx, &btapb.DeleteAuthorizedViewRequest{Name: name})
		return viewOutcome(err)
	case getView:
		v, err := admin.GetAuthorizedView(ctx, &btapb.GetAuthorizedViewRequest{Name: name})
		return viewText(subsetOf(v)) + "\n" + viewOutcome(err)
	case scanView:
		rows, err := readView(ctx, data, name, o)
		return rowsText(rows) + viewOutcome(err)
	case mutateView:
		_, err := data.MutateRow(ctx, &btpb.MutateRowRequest{AuthorizedViewName: name, RowKey: []byte(o.row), Mutations: mutationsOf(o.muts)})
		return viewOutcome(err)
	case checkView:
		resp, err := data.CheckAndMutateRow(ctx, &btpb.CheckAndMutateRowRequest{
			AuthorizedViewName: name, RowKey: []byte(o.row), TrueMutations: mutationsOf(o.muts), FalseMutations: mutationsOf(o.otherwise),
		})
		return fmt.Sprintf("matched: %v\n", resp.GetPredicateMatched()) + viewOutcome(err)
	case readModifyWriteView:
		req := &btpb.ReadModifyWriteRowRequest{AuthorizedViewName: name, RowKey: []byte(o.row)}
		for _, r := range o.rules {
			rule := &btpb.ReadModifyWriteRule{FamilyName: r.Family, ColumnQualifier: r.Qualifier, Rule: &btpb.ReadModifyWriteRule_IncrementAmount{IncrementAmount: r.Increment}}
			if r.Append != nil {
				rule.Rule = &btpb.ReadModifyWriteRule_AppendValue{AppendValue: r.Append}
			}
			req.Rules = append(req.Rules, rule)
		}
		resp, err := data.ReadModifyWriteRow(ctx, req)
		return rowsText([]model.Row{{Key: o.row, Cells: cellsOf(resp.GetRow())}}) + viewOutcome(err)
	}
	return "unknown operation\n"
}

func definitionOf(name string, v model.View) *btapb.AuthorizedView {
	d := &btapb.AuthorizedView_SubsetView{FamilySubsets: map[string]*btapb.AuthorizedView_FamilySubsets{}}
	for _, p := range v.Rows {
		d.RowPrefixes = append(d.RowPrefixes, []byte(p))
	}
	for family, columns := range v.Families {
		s := &btapb.AuthorizedView_FamilySubsets{}
		for _, q := range columns.Qualifiers {
			s.Qualifiers = append(s.Qualifiers, []byte(q))
		}
		for _, p := range columns.Prefixes {
			s.QualifierPrefixes = append(s.QualifierPrefixes, []byte(p))
		}
		d.FamilySubsets[family] = s
	}
	return &btapb.AuthorizedView{Name: name, AuthorizedView: &btapb.AuthorizedView_SubsetView_{SubsetView: d}}
}

// subsetOf is the reverse of definitionOf.
func subsetOf(v *btapb.AuthorizedView) model.View {
	texts := func(all [][]byte) (out []string) {
		for _, b := range all {
			out = append(out, string(b))
		}
		return out
	}
	out := model.View{Rows: texts(v.GetSubsetView().GetRowPrefixes()), Families: map[string]model.Columns{}}
	for family, s := range v.GetSubsetView().GetFamilySubsets() {
		out.Families[family] = model.Columns{Qualifiers: texts(s.GetQualifiers()), Prefixes: texts(s.GetQualifierPrefixes())}
	}
	return out
}

// readView reads rows through a view.
func readView(ctx context.Context, data btpb.BigtableClient, name string, o op) ([]model.Row, error) {
	flags, err := proto.Marshal(&btpb.FeatureFlags{ReverseScans: true})
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(metadata.AppendToOutgoingContext(ctx, "bigtable-features", base64.URLEncoding.EncodeToString(flags)))
	defer cancel()
	req := &btpb.ReadRowsRequest{AuthorizedViewName: name, Reversed: o.reverse}
	for _, s := range o.spans {
		r := &btpb.RowRange{}
		if len(s.Start) > 0 {
			r.StartKey = &btpb.RowRange_StartKeyClosed{StartKeyClosed: s.Start}
		}
		if len(s.End) > 0 {
			r.EndKey = &btpb.RowRange_EndKeyOpen{EndKeyOpen: s.End}
		}
		if req.GetRows() == nil {
			req.Rows = &btpb.RowSet{}
		}
		req.Rows.RowRanges = append(req.Rows.RowRanges, r)
	}
	stream, err := data.ReadRows(ctx, req)
	if err != nil {
		return nil, err
	}
	var rows []model.Row
	merger := rowmerge.New(o.reverse, func(c rowmerge.Cell) engine.Cell {
		return engine.Cell{Family: c.Family, Qualifier: c.Qualifier, Timestamp: c.TimestampMicros, Value: c.Value}
	})
	for {
		resp, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			return rows, merger.End()
		}
		if err != nil {
			return nil, err
		}
		for row, err := range merger.Merge(resp) {
			if err != nil {
				return nil, err
			}
			rows = append(rows, model.Row{Key: string(row.Key), Cells: slices.Clone(row.Cells)})
		}
	}
}

// mutationsOf converts mutations of the kinds that are drawn for views.
func mutationsOf(muts []engine.Mutation) []*btpb.Mutation {
	var out []*btpb.Mutation
	for _, m := range muts {
		to := &btpb.Mutation{}
		switch m.Kind {
		case engine.SetCell:
			to.Mutation = &btpb.Mutation_SetCell_{SetCell: &btpb.Mutation_SetCell{FamilyName: m.Family, ColumnQualifier: m.Qualifier, TimestampMicros: m.Timestamp, Value: m.Value}}
		case engine.DeleteFromColumn:
			to.Mutation = &btpb.Mutation_DeleteFromColumn_{DeleteFromColumn: &btpb.Mutation_DeleteFromColumn{
				FamilyName: m.Family, ColumnQualifier: m.Qualifier, TimeRange: &btpb.TimestampRange{StartTimestampMicros: m.Start, EndTimestampMicros: m.End},
			}}
		case engine.DeleteFromFamily:
			to.Mutation = &btpb.Mutation_DeleteFromFamily_{DeleteFromFamily: &btpb.Mutation_DeleteFromFamily{FamilyName: m.Family}}
		case engine.DeleteFromRow:
			to.Mutation = &btpb.Mutation_DeleteFromRow_{DeleteFromRow: &btpb.Mutation_DeleteFromRow{}}
		case engine.AddToCell:
			to.Mutation = &btpb.Mutation_AddToCell_{AddToCell: &btpb.Mutation_AddToCell{
				FamilyName: m.Family, ColumnQualifier: &btpb.Value{Kind: &btpb.Value_RawValue{RawValue: m.Qualifier}},
				Timestamp: &btpb.Value{Kind: &btpb.Value_RawTimestampMicros{RawTimestampMicros: m.Timestamp}},
				Input:     &btpb.Value{Kind: &btpb.Value_IntValue{IntValue: m.Input}},
			}}
		case engine.MergeToCell: // not drawn; a mutation of unknown kind is rejected
		}
		out = append(out, to)
	}
	return out
}

func cellsOf(row *btpb.Row) []engine.Cell {
	var out []engine.Cell
	for _, f := range row.GetFamilies() {
		for _, column := range f.GetColumns() {
			for _, c := range column.GetCells() {
				out = append(out, engine.Cell{Family: f.GetName(), Qualifier: column.GetQualifier(), Timestamp: c.GetTimestampMicros(), Value: c.GetValue()})
			}
		}
	}
	return out
}
