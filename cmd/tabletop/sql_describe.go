package main

import (
	"cmp"
	"context"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	btapb "cloud.google.com/go/bigtable/admin/apiv2/adminpb"
	btpb "cloud.google.com/go/bigtable/apiv2/bigtablepb"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/tabletop-emu/tabletop/internal/btclient"
	"github.com/tabletop-emu/tabletop/internal/sqlclient"
)

// seenRows is the number of rows whose columns a description shows, and seenColumns the number of columns of a
// family.
const (
	seenRows    = 100
	seenColumns = 20
)

// The kinds of tables and views that a query can read.
const (
	kindTable            = "table"
	kindLogicalView      = "logical view"
	kindMaterializedView = "materialized view"
)

// list prints the tables and views.
func (s *sqlSession) list(ctx context.Context) error {
	found := [][]string{{"name", "kind"}}
	add := func(kind, name string) {
		found = append(found, []string{name[strings.LastIndexByte(name, '/')+1:], kind})
	}
	tables, err := s.bigtable().Tables(ctx)
	if err != nil {
		return err
	}
	for _, id := range tables {
		add(kindTable, id)
	}
	parent := s.instanceName()
	views := btapb.NewBigtableInstanceAdminClient(s.target.conn)
	for _, next := range []func(token string) (string, error){
		func(token string) (string, error) {
			page, err := views.ListLogicalViews(ctx, &btapb.ListLogicalViewsRequest{Parent: parent, PageToken: token})
			for _, v := range page.GetLogicalViews() {
				add(kindLogicalView, v.GetName())
			}
			return page.GetNextPageToken(), err
		},
		func(token string) (string, error) {
			page, err := views.ListMaterializedViews(ctx, &btapb.ListMaterializedViewsRequest{Parent: parent, PageToken: token})
			for _, v := range page.GetMaterializedViews() {
				add(kindMaterializedView, v.GetName())
			}
			return page.GetNextPageToken(), err
		},
	} {
		if err := eachPage(next); err != nil && status.Code(err) != codes.Unimplemented { // by an emulator without views
			return err
		}
	}
	return printAligned(s.out, found)
}

// bigtable returns a client of the target's tables.
func (s *sqlSession) bigtable() *btclient.Client {
	return btclient.New(s.target.conn, s.target.project, s.target.instance, btclient.Options{AppProfile: s.AppProfile})
}

var (
	// missingTable matches the error for a table or view that does not exist: group 1 is its name.
	missingTable = regexp.MustCompile(`^Table not found: ([^ ]+)`)
	// itemTable matches the id of a Bigtable table with items: group 1 is the name of the DynamoDB table, or
	// as much of a long one as fits.
	itemTable = regexp.MustCompile(`^ddb\.(.+)-[0-9a-f]{12}$`)
)

// maxTableID is the number of characters of the longest id of a Bigtable table.
const maxTableID = 50

// hint returns a line for the error of a query that names a DynamoDB table, with the Bigtable tables that may
// hold its items, or "".
func (s *sqlSession) hint(ctx context.Context, said string) string {
	missing := missingTable.FindStringSubmatch(said)
	if missing == nil {
		return ""
	}
	tables, err := s.bigtable().Tables(ctx)
	if err != nil {
		return "" // the error of the query counts
	}
	var found []string
	for _, id := range tables {
		if m := itemTable.FindStringSubmatch(id); m != nil && (m[1] == missing[1] || len(id) == maxTableID && strings.HasPrefix(missing[1], m[1])) {
			found = append(found, "`"+id+"`")
		}
	}
	if len(found) == 0 {
		return ""
	}
	return fmt.Sprintf("\nThe items of the DynamoDB table %s are in %s; keep the backticks.", missing[1], strings.Join(found, ", "))
}

// eachPage calls next with the token of each page; next returns that of the next page.
func eachPage(next func(token string) (string, error)) error {
	for token := ""; ; {
		following, err := next(token)
		if err != nil || following == "" {
			return err
		}
		token = following
	}
}

// describe prints the columns of a table or a view.
func (s *sqlSession) describe(ctx context.Context, name string) error {
	if strings.ContainsAny(name, "/`\\") {
		return badInput("%q is not the name of a table or a view", name)
	}
	t, err := btapb.NewBigtableTableAdminClient(s.target.conn).GetTable(ctx, &btapb.GetTableRequest{Name: s.instanceName() + "/tables/" + name, View: btapb.Table_SCHEMA_VIEW})
	if err == nil {
		return s.describeTable(ctx, name, t)
	}
	if status.Code(err) != codes.NotFound {
		return err
	}
	kind, query, err := s.view(ctx, name)
	if err != nil {
		return err
	}
	columns, wrong := s.columns(ctx, name)
	if wrong == nil {
		lines := [][]string{{"column", "type"}}
		for _, c := range columns {
			lines = append(lines, []string{sqlclient.Printable(c.GetName()), sqlclient.TypeText(c.GetType())})
		}
		if err := printAligned(s.out, lines); err != nil {
			return err
		}
	}
	shown := strings.Map(func(r rune) rune {
		if r == '\n' || strconv.IsPrint(r) {
			return r
		}
		return ' ' // a terminal could take it for a command
	}, query)
	_, err = fmt.Fprintf(s.out, "(%s of: %s)\n", kind, shown)
	return cmp.Or(wrong, err) // a table of the view may be gone
}

// view returns the kind and the statement of a view.
func (s *sqlSession) view(ctx context.Context, name string) (kind, query string, err error) {
	views := btapb.NewBigtableInstanceAdminClient(s.target.conn)
	logical, err := views.GetLogicalView(ctx, &btapb.GetLogicalViewRequest{Name: s.instanceName() + "/logicalViews/" + name})
	if err == nil {
		return kindLogicalView, logical.GetQuery(), nil
	}
	if code := status.Code(err); code != codes.NotFound && code != codes.Unimplemented {
		return "", "", err
	}
	materialized, err := views.GetMaterializedView(ctx, &btapb.GetMaterializedViewRequest{Name: s.instanceName() + "/materializedViews/" + name})
	switch status.Code(err) { //nolint:exhaustive // others are errors
	case codes.OK:
		return kindMaterializedView, materialized.GetQuery(), nil
	case codes.NotFound, codes.Unimplemented:
		return "", "", badInput(`there is no table or view %q; \d lists them`, name)
	}
	return "", "", err
}

// columns returns the columns of a table or a view as a query sees them.
func (s *sqlSession) columns(ctx context.Context, name string) ([]*btpb.ColumnMetadata, error) {
	prepared, err := btpb.NewBigtableClient(s.target.conn).PrepareQuery(ctx, &btpb.PrepareQueryRequest{
		InstanceName: s.instanceName(), AppProfileId: s.AppProfile, Query: "SELECT * FROM `" + name + "`",
		DataFormat: &btpb.PrepareQueryRequest_ProtoFormat{ProtoFormat: &btpb.ProtoFormat{}},
	})
	return prepared.GetMetadata().GetProtoSchema().GetColumns(), err
}

// describeTable prints the columns of a table with the rules of families and the qualifiers in the first rows.
func (s *sqlSession) describeTable(ctx context.Context, name string, t *btapb.Table) error {
	columns, err := s.columns(ctx, name)
	if err != nil {
		return err
	}
	seen, err := s.qualifiers(ctx, name)
	if err != nil {
		return err
	}
	lines := [][]string{{"column", "type", "garbage collection", "qualifiers"}}
	for _, c := range columns {
		line := []string{c.GetName(), sqlclient.TypeText(c.GetType()), "", ""}
		if f, ok := t.GetColumnFamilies()[c.GetName()]; ok {
			line[2], line[3] = gcText(f.GetGcRule()), strings.Join(seen[c.GetName()], ", ")
		}
		lines = append(lines, line)
	}
	if err := printAligned(s.out, lines); err != nil {
		return err
	}
	if schema := t.GetRowKeySchema(); schema != nil {
		if _, err := fmt.Fprintf(s.out, "(row key: %s)\n", keySchemaText(schema)); err != nil {
			return err
		}
	}
	_, err = fmt.Fprintf(s.out, "(qualifiers of the first %d rows)\n", seenRows)
	return err
}

// qualifiers returns the qualifiers in the first rows of a table, by family.
func (s *sqlSession) qualifiers(ctx context.Context, table string) (map[string][]string, error) {
	read := btclient.Read{Table: table, Spans: []btclient.Span{{}}, Limit: seenRows, Filter: btclient.Chain(
		btclient.Newest(1), &btpb.RowFilter{Filter: &btpb.RowFilter_StripValueTransformer{StripValueTransformer: true}},
	)}
	seen := map[[2]string]bool{}
	found := map[string][]string{}
	for row, err := range s.bigtable().Read(ctx, read) {
		if err != nil {
			return nil, err
		}
		for _, c := range row.Cells {
			of := [2]string{c.Family, string(c.Qualifier)}
			if seen[of] {
				continue
			}
			seen[of] = true
			switch n := len(found[c.Family]); {
			case n < seenColumns:
				found[c.Family] = append(found[c.Family], sqlclient.Printable(of[1]))
			case n == seenColumns:
				found[c.Family] = append(found[c.Family], "…")
			}
		}
	}
	return found, nil
}

// gcText returns a garbage-collection rule in the syntax of the cbt tool.
func gcText(rule *btapb.GcRule) string {
	joined := func(rules []*btapb.GcRule, by string) string {
		parts := make([]string, len(rules))
		for i, r := range rules {
			parts[i] = gcText(r)
		}
		return "(" + strings.Join(parts, by) + ")"
	}
	switch of := rule.GetRule().(type) {
	case *btapb.GcRule_MaxNumVersions:
		return "maxversions=" + strconv.Itoa(int(of.MaxNumVersions))
	case *btapb.GcRule_MaxAge:
		return "maxage=" + of.MaxAge.AsDuration().String()
	case *btapb.GcRule_Intersection_:
		return joined(of.Intersection.GetRules(), " and ")
	case *btapb.GcRule_Union_:
		return joined(of.Union.GetRules(), " or ")
	}
	return "never"
}

// keySchemaText returns the fields of a row key, and how they are joined.
func keySchemaText(schema *btapb.Type_Struct) string {
	names := make([]string, len(schema.GetFields()))
	for i, f := range schema.GetFields() {
		names[i] = f.GetFieldName()
	}
	text := strings.Join(names, ", ")
	switch of := schema.GetEncoding().GetEncoding().(type) {
	case *btapb.Type_Struct_Encoding_DelimitedBytes_:
		return fmt.Sprintf("%s, delimited by %q", text, of.DelimitedBytes.GetDelimiter())
	case *btapb.Type_Struct_Encoding_OrderedCodeBytes_:
		return text + ", in ordered code"
	}
	return text
}
