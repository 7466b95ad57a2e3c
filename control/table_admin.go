package control

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"time"

	btapb "cloud.google.com/go/bigtable/admin/apiv2/adminpb"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/fieldmaskpb"
)

// tableAdmin changes Bigtable tables with the calls of administration clients.
type tableAdmin struct{ *Server }

func (s tableAdmin) api() btapb.BigtableTableAdminClient {
	return btapb.NewBigtableTableAdminClient(s.opts.Lab.Bigtable().Conn())
}

// there returns the name of the existing table in a path.
func (s tableAdmin) there(r *http.Request) (string, error) {
	name := s.tableName(r)
	if _, err := s.opts.Lab.DB().Table(name); err != nil {
		return "", noTable(own(r), s.Server, name)
	}
	return name, nil
}

// create creates a table with families, in the JSON of CreateTable.
func (s tableAdmin) create(r *http.Request) (any, error) {
	var in struct {
		Families map[string]json.RawMessage `json:"families"`
	}
	if err := read(r, &in); err != nil {
		return nil, err
	}
	parent, id, _ := strings.Cut(s.tableName(r), "/tables/")
	request := &btapb.CreateTableRequest{Parent: parent, TableId: id, Table: &btapb.Table{ColumnFamilies: map[string]*btapb.ColumnFamily{}}}
	for name, text := range in.Families {
		f := &btapb.ColumnFamily{}
		if err := protojson.Unmarshal(text, f); err != nil {
			return nil, badRequest(`family %q is %.200s, want {} or a family such as {"gcRule":{"maxNumVersions":1}}: %v`, name, text, err)
		}
		request.Table.ColumnFamilies[name] = f
	}
	if _, err := s.api().CreateTable(own(r), request); err != nil {
		return nil, err
	}
	return s.table(r)
}

// families creates, updates and drops column families, in the JSON of ModifyColumnFamilies.
func (s tableAdmin) families(r *http.Request) (any, error) {
	name, err := s.there(r)
	if err != nil {
		return nil, err
	}
	var in struct {
		Modifications []json.RawMessage `json:"modifications"`
	}
	if err := read(r, &in); err != nil {
		return nil, err
	}
	request := &btapb.ModifyColumnFamiliesRequest{Name: name}
	for i, text := range in.Modifications {
		m := &btapb.ModifyColumnFamiliesRequest_Modification{}
		if err := protojson.Unmarshal(text, m); err != nil {
			return nil, badRequest(`modification %d is %.200s, want a modification such as {"id":"f","create":{"gcRule":{"maxNumVersions":1}}}: %v`, i, text, err)
		}
		request.Modifications = append(request.Modifications, m)
	}
	if _, err := s.api().ModifyColumnFamilies(own(r), request); err != nil {
		return nil, err
	}
	return s.table(r)
}

// drop deletes the rows that begin with a prefix, or all.
func (s tableAdmin) drop(r *http.Request) (any, error) {
	name, err := s.there(r)
	if err != nil {
		return nil, err
	}
	var in struct {
		Prefix *Bytes `json:"prefix"`
		All    bool   `json:"all"`
	}
	if err := read(r, &in); err != nil {
		return nil, err
	}
	request := &btapb.DropRowRangeRequest{Name: name}
	switch {
	case in.All && in.Prefix == nil:
		request.Target = &btapb.DropRowRangeRequest_DeleteAllDataFromTable{DeleteAllDataFromTable: true}
	case in.Prefix != nil && !in.All:
		prefix, err := in.Prefix.decode()
		if err != nil {
			return nil, err
		}
		request.Target = &btapb.DropRowRangeRequest_RowKeyPrefix{RowKeyPrefix: prefix}
	default:
		return nil, badRequest(`want either "prefix" with bytes, or "all" with true`)
	}
	if _, err := s.api().DropRowRange(own(r), request); err != nil {
		return nil, err
	}
	return nothing{}, nil
}

// record enables the change stream of a table.
func (s tableAdmin) record(r *http.Request) (any, error) {
	name, err := s.there(r)
	if err != nil {
		return nil, err
	}
	if err := s.enableChangeStream(own(r), name); err != nil {
		return nil, err
	}
	return nothing{}, nil
}

// enableChangeStream makes a table record its changes, each for a day.
func (s *Server) enableChangeStream(ctx context.Context, table string) error {
	_, err := tableAdmin{s}.api().UpdateTable(ctx, &btapb.UpdateTableRequest{
		Table:      &btapb.Table{Name: table, ChangeStreamConfig: &btapb.ChangeStreamConfig{RetentionPeriod: durationpb.New(24 * time.Hour)}},
		UpdateMask: &fieldmaskpb.FieldMask{Paths: []string{"change_stream_config"}},
	})
	return err
}

// remove deletes a table.
func (s tableAdmin) remove(r *http.Request) (any, error) {
	name, err := s.there(r)
	if err != nil {
		return nil, err
	}
	if _, err := s.api().DeleteTable(own(r), &btapb.DeleteTableRequest{Name: name}); err != nil {
		return nil, err
	}
	return nothing{}, nil
}
