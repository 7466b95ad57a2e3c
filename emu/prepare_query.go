package emu

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"time"

	btpb "cloud.google.com/go/bigtable/apiv2/bigtablepb"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/tabletop-emu/tabletop/emu/internal/admin"
	"github.com/tabletop-emu/tabletop/emu/internal/refusal"
	"github.com/tabletop-emu/tabletop/emu/internal/resname"
	"github.com/tabletop-emu/tabletop/emu/internal/rowkey"
	"github.com/tabletop-emu/tabletop/emu/internal/sql/analysis"
	"github.com/tabletop-emu/tabletop/emu/internal/sql/plan"
	"github.com/tabletop-emu/tabletop/emu/internal/sql/value"
	"github.com/tabletop-emu/tabletop/engine"
)

// planValid is how long a prepared query is said to be valid. This is the time of the service.
const planValid = 10 * time.Second

// PrepareQuery analyzes a query, and keeps its plan for ExecuteQuery.
//
// https://cloud.google.com/bigtable/docs/reference/data/rpc/google.bigtable.v2#google.bigtable.v2.Bigtable.PrepareQuery
func (c *call) PrepareQuery(_ context.Context, req *btpb.PrepareQueryRequest) (*btpb.PrepareQueryResponse, error) {
	if err := c.admitQuery(req, req.GetInstanceName(), req.GetAppProfileId()); err != nil {
		return nil, err
	}
	prepared, err := c.prepare(req.GetInstanceName(), req.GetQuery(), req.GetParamTypes())
	if err != nil {
		return nil, err
	}
	return &btpb.PrepareQueryResponse{
		Metadata:      prepared.metadata,
		PreparedQuery: c.queries.add(prepared),
		ValidUntil:    timestamppb.New(prepared.at.Add(planValid)),
	}, nil
}

// admitQuery checks and routes a request with a query.
func (c *call) admitQuery(req any, instance, profile string) error {
	if err := resname.CheckInstance("instance_name", instance); err != nil {
		return err
	}
	return c.admit(req, instance, profile, reads)
}

// preparedQuery is an analyzed query.
type preparedQuery struct {
	at       time.Time // of its preparation
	instance string
	plan     *plan.Query
	types    map[string]*btpb.Type // of the parameters
	params   map[string]value.Type
	metadata *btpb.ResultSetMetadata
}

// prepare analyzes a query of an instance.
func (c *call) prepare(instance, text string, types map[string]*btpb.Type) (*preparedQuery, error) {
	p := &preparedQuery{at: c.now(), instance: instance, types: types, params: map[string]value.Type{}}
	for _, name := range slices.Sorted(maps.Keys(types)) {
		t, err := value.TypeFromProto(types[name])
		if err != nil {
			return nil, refusal.Invalid("param_types", "%s: %v", name, err)
		}
		p.params[strings.ToLower(name)] = t
	}
	var err error
	if p.plan, err = analysis.Analyze(text, analysis.Options{Catalog: catalog{c.db, instance}, Params: p.params}); err != nil {
		return nil, queryError(err)
	}
	analysis.Optimize(p.plan)
	schema := &btpb.ProtoSchema{}
	for _, column := range p.plan.Columns {
		schema.Columns = append(schema.Columns, &btpb.ColumnMetadata{Name: column.Name, Type: column.Type.Proto()})
	}
	p.metadata = &btpb.ResultSetMetadata{Schema: &btpb.ResultSetMetadata_ProtoSchema{ProtoSchema: schema}}
	return p, nil
}

// queryError converts an error of a query to a status.
func queryError(err error) error {
	if e, ok := errors.AsType[*value.Error](err); ok {
		return refusal.New(e.Code, "%s", e.Text)
	}
	return refusal.Of(err)
}

// checkViewQuery checks the query of a logical view.
func checkViewQuery(r admin.Catalog, instance, query string) error {
	_, err := analysis.Analyze(query, analysis.Options{Catalog: catalog{r, instance}})
	return queryError(err)
}

// catalog finds the tables and views of an instance.
type catalog struct {
	r        admin.Catalog
	instance string
}

// View returns the query of a logical view.
func (c catalog) View(id string) (query string, ok bool) {
	v, err := admin.LogicalView(c.r, c.instance+"/logicalViews/"+id)
	return v.GetQuery(), err == nil
}

// Table returns a table by its id.
func (c catalog) Table(id string) (*analysis.Table, bool) {
	t, err := c.r.Table(resname.TablesOf(c.instance) + id)
	if err != nil {
		return nil, false
	}
	out := &analysis.Table{}
	if schema := admin.RowKeySchema(t); schema != nil {
		out.Key = rowkey.New(schema)
	}
	for _, f := range t.Families {
		of := value.BytesType
		if f.Aggregate != engine.NoAggregate {
			of = value.Int64Type
		}
		out.Families = append(out.Families, analysis.Family{Name: f.Name, Value: of})
	}
	slices.SortFunc(out.Families, func(a, b analysis.Family) int { return strings.Compare(a.Name, b.Name) })
	return out, true
}
