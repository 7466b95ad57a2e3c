package emu

import (
	"context"
	"maps"
	"slices"
	"strings"
	"time"

	btpb "cloud.google.com/go/bigtable/apiv2/bigtablepb"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/tabletop-emu/tabletop/emu/internal/admin"
	"github.com/tabletop-emu/tabletop/emu/internal/bundle"
	"github.com/tabletop-emu/tabletop/emu/internal/materialized"
	"github.com/tabletop-emu/tabletop/emu/internal/refusal"
	"github.com/tabletop-emu/tabletop/emu/internal/resname"
	"github.com/tabletop-emu/tabletop/emu/internal/sql/analysis"
	"github.com/tabletop-emu/tabletop/emu/internal/sql/plan"
	"github.com/tabletop-emu/tabletop/emu/internal/sql/value"
)

// planValid is the time from the preparation of a query to the valid_until of its response, as in
// the service.
const planValid = 10 * time.Second

// PrepareQuery analyzes a query, and keeps its plan for ExecuteQuery.
//
// https://cloud.google.com/bigtable/docs/reference/data/rpc/google.bigtable.v2#google.bigtable.v2.Bigtable.PrepareQuery
func (c *call) PrepareQuery(_ context.Context, req *btpb.PrepareQueryRequest) (*btpb.PrepareQueryResponse, error) {
	if err := c.admitQuery(req, req.GetInstanceName(), req.GetAppProfileId()); err != nil {
		return nil, err
	}
	c.ended.Query = &CallQuery{Text: req.GetQuery()}
	prepared, err := c.prepare(req.GetInstanceName(), req.GetQuery(), req.GetParamTypes())
	if err != nil {
		return nil, err
	}
	c.ended.Query = prepared.described()
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
	text     string
	plan     *plan.Query
	types    map[string]*btpb.Type // of the parameters
	params   map[string]value.Type
	metadata *btpb.ResultSetMetadata
}

// described returns the query as Options.Observe sees it.
func (p *preparedQuery) described() *CallQuery {
	q := &CallQuery{Text: p.text}
	for _, use := range p.plan.Tables {
		q.Tables = append(q.Tables, resname.TablesOf(p.instance)+use.Table)
	}
	return q
}

// prepare analyzes a query of an instance.
func (c *call) prepare(instance, text string, types map[string]*btpb.Type) (*preparedQuery, error) {
	p := &preparedQuery{at: c.now(), instance: instance, text: text, types: types, params: map[string]value.Type{}}
	for _, name := range slices.Sorted(maps.Keys(types)) {
		t, err := value.TypeFromProto(types[name])
		if err != nil {
			return nil, refusal.Invalid("param_types", "%s: %v", name, err)
		}
		p.params[strings.ToLower(name)] = t
	}
	var err error
	if p.plan, err = analysis.Analyze(text, analysis.Options{Catalog: c.catalog(c.db, instance), Params: p.params}); err != nil {
		return nil, refusal.OfQuery(err)
	}
	analysis.Optimize(p.plan)
	schema := &btpb.ProtoSchema{}
	for _, column := range p.plan.Columns {
		schema.Columns = append(schema.Columns, &btpb.ColumnMetadata{Name: column.Name, Type: column.Type.Proto()})
	}
	p.metadata = &btpb.ResultSetMetadata{Schema: &btpb.ResultSetMetadata_ProtoSchema{ProtoSchema: schema}}
	return p, nil
}

// checkViewQuery checks the query of a logical view.
func (s *Server) checkViewQuery(r admin.Catalog, instance, query string) error {
	_, err := analysis.Analyze(query, analysis.Options{Catalog: s.catalog(r, instance)})
	return refusal.OfQuery(err)
}

// catalog finds the tables and views of an instance.
type catalog struct {
	r        admin.Catalog
	views    *materialized.Views
	instance string
	bundles  map[string]*linked // by name, of the bundles whose types were found
}

// linked is a schema bundle with its messages and enums.
type linked struct {
	schema *bundle.Schema
	etag   string
}

func (s *Server) catalog(r admin.Catalog, instance string) catalog {
	return catalog{r, s.views, instance, map[string]*linked{}}
}

// View returns the query of a logical view.
func (c catalog) View(id string) (query string, ok bool) {
	v, err := admin.LogicalView(c.r, c.instance+"/logicalViews/"+id)
	return v.GetQuery(), err == nil
}

// Type returns a message or enum in a schema bundle of a table. A bundle is linked once, however
// many types of it the query names.
func (c catalog) Type(table, id, name string) (of value.Type, version string, ok bool) {
	full := c.bundleName(table, id)
	l := c.bundles[full]
	if l == nil {
		b, err := admin.FindSchemaBundle(c.r, "name", full)
		if err != nil {
			return of, "", false
		}
		l = &linked{etag: b.GetEtag()}
		if l.schema, err = bundle.Proto(b.GetProtoSchema().GetProtoDescriptors()); err != nil { // of Avro schemas
			return of, "", false
		}
		c.bundles[full] = l
	}
	if m := l.schema.Message(name); m != nil {
		return value.ProtoOf(id, m), l.etag, true
	}
	if e := l.schema.Enum(name); e != nil {
		return value.EnumOf(id, e), l.etag, true
	}
	return of, "", false
}

func (c catalog) bundleName(table, id string) string {
	return resname.TablesOf(c.instance) + table + "/schemaBundles/" + id
}

// Table returns a table or a materialized view by its id.
func (c catalog) Table(id string) (*analysis.Table, bool) {
	t, err := c.r.Table(resname.TablesOf(c.instance) + id)
	if err == nil {
		return materialized.TableOf(t), true
	}
	v, err := c.views.Table(c.instance + "/materializedViews/" + id)
	return v, err == nil
}
