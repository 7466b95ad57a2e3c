package emu

import (
	"encoding/base64"
	"fmt"
	"strings"
	"testing"
	"time"

	btapb "cloud.google.com/go/bigtable/admin/apiv2/adminpb"
	btpb "cloud.google.com/go/bigtable/apiv2/bigtablepb"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/prototext"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/tabletop-emu/tabletop/engine"
	"github.com/tabletop-emu/tabletop/internal/clock"
)

// pagedLists has requests of all paged lists, by service and method. Each has several elements
// in the server of newPaged.
var pagedLists = map[string]string{
	"BigtableTableAdmin.ListTables":          `parent: "projects/p/instances/i"`,
	"BigtableTableAdmin.ListAuthorizedViews": `parent: "projects/p/instances/i/tables/t"`,
	"BigtableTableAdmin.ListSchemaBundles":   `parent: "projects/p/instances/i/tables/t"`,
	"BigtableTableAdmin.ListBackups":         `parent: "projects/p/instances/i/clusters/c1"`,
	"BigtableTableAdmin.ListSnapshots":       `parent: "projects/p/instances/i/clusters/c1"`,
	"BigtableInstanceAdmin.ListAppProfiles":  `parent: "projects/p/instances/i"`,
	"BigtableInstanceAdmin.ListHotTablets":   `parent: "projects/p/instances/i/clusters/c1"`,
	"BigtableInstanceAdmin.ListMemoryLayers": `parent: "projects/p/instances/i/clusters/-"`,
	"Operations.ListOperations":              `name: "operations"`,
	"Locations.ListLocations":                `name: "projects/p"`,
}

// unpaged has lists with page fields that the server answers in one page, as the API allows.
var unpaged = map[string]bool{"BigtableInstanceAdmin.ListInstances": true, "BigtableInstanceAdmin.ListClusters": true, "BigtableTableAdmin.ListSnapshots": true}

// newPaged returns a server with four elements in each list, created through the API.
func newPaged(f *testing.F) *Server {
	f.Helper()
	c := clock.NewFrozen(start) // the size of a backup appears after a minute
	db, err := engine.Open(engine.Options{Now: c.Now})
	if err != nil {
		f.Fatal(err)
	}
	srv, err := New(Options{DB: db, Clock: c})
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(func() { _, _ = srv.Close(), db.Close() })
	tables, instances, data := btapb.NewBigtableTableAdminClient(srv.Conn()), btapb.NewBigtableInstanceAdminClient(srv.Conn()), btpb.NewBigtableClient(srv.Conn())
	ctx := f.Context()
	must := func(_ any, err error) {
		f.Helper()
		if err != nil {
			f.Fatal(err)
		}
	}
	clusters := map[string]*btapb.Cluster{}
	for i := range 4 {
		clusters[fmt.Sprintf("c%d", i)] = nodes(fmt.Sprintf("us-east%d-b", i+1), 1)
	}
	must(instances.CreateInstance(ctx, &btapb.CreateInstanceRequest{Parent: "projects/p", InstanceId: "i", Instance: &btapb.Instance{}, Clusters: clusters}))
	for _, id := range []string{"t", "t0", "t1", "t2"} {
		must(tables.CreateTable(ctx, &btapb.CreateTableRequest{Parent: testInstance, TableId: id, Table: &btapb.Table{ColumnFamilies: map[string]*btapb.ColumnFamily{"f": {}}}}))
	}
	for i := range 4 {
		id := fmt.Sprintf("x%d", i)
		must(instances.CreateAppProfile(ctx, &btapb.CreateAppProfileRequest{Parent: testInstance, AppProfileId: id, AppProfile: singleCluster("c1", true)}))
		must(tables.CreateAuthorizedView(ctx, &btapb.CreateAuthorizedViewRequest{Parent: testTable, AuthorizedViewId: id, AuthorizedView: viewOf(subset([]string{""}))}))
		must(tables.CreateSchemaBundle(ctx, &btapb.CreateSchemaBundleRequest{Parent: testTable, SchemaBundleId: id, SchemaBundle: protoBundle([]byte("\n\x07\n\x05a.txt"))}))
		must(tables.CreateBackup(ctx, &btapb.CreateBackupRequest{
			Parent: testInstance + "/clusters/c1", BackupId: id, Backup: &btapb.Backup{SourceTable: testTable, ExpireTime: timestamppb.New(srv.now().Add(100 * time.Hour))},
		}))
		must(tables.SnapshotTable(ctx, &btapb.SnapshotTableRequest{Name: testTable, Cluster: testInstance + "/clusters/c1", SnapshotId: id}))
		must(data.MutateRow(ctx, &btpb.MutateRowRequest{TableName: testTable, AppProfileId: "x0", RowKey: []byte(id), Mutations: []*btpb.Mutation{set("f", "q", 0, "v")}}))
	}
	return srv
}

// FuzzPageToken requests pages of all lists with arbitrary tokens: bare, encoded like the
// server's tokens, and valid tokens with a changed byte. Each list returns INVALID_ARGUMENT, or
// at most the requested number of its elements and tokens that lead to its end.
func FuzzPageToken(f *testing.F) {
	srv := newPaged(f)
	type list struct {
		sweptRPC
		name    string
		request proto.Message
		all     map[string]bool // its serialized elements
	}
	page := func(tb testing.TB, l *list, token string, size int32) (elements []string, next string, err error) {
		tb.Helper()
		m := proto.Clone(l.request).ProtoReflect()
		fields := m.Descriptor().Fields()
		m.Set(fields.ByName("page_token"), protoreflect.ValueOfString(token))
		if size != 0 {
			m.Set(fields.ByName("page_size"), protoreflect.ValueOfInt32(size))
		}
		reply := newMessage(tb, l.response)
		if err := srv.Conn().Invoke(tb.Context(), "/"+l.service+"/"+l.method, m.Interface(), reply); err != nil {
			return nil, "", err
		}
		reply.ProtoReflect().Range(func(fd protoreflect.FieldDescriptor, v protoreflect.Value) bool {
			if fd.IsList() && fd.Message() != nil {
				for i := range v.List().Len() {
					b, err := proto.MarshalOptions{Deterministic: true}.Marshal(v.List().Get(i).Message().Interface())
					if err != nil {
						tb.Fatal(err)
					}
					elements = append(elements, string(b))
				}
			} else if fd.Name() == "next_page_token" {
				next = v.String()
			}
			return true
		})
		return elements, next, nil
	}
	var lists []*list
	for _, r := range registeredRPCs(f, srv.grpc) {
		name := shortService(r.service) + "." + r.method
		if r.request.Fields().ByName("page_token") == nil || pagedLists[name] == "" && strings.Contains(name, "View") && strings.Contains(name, "Instance") {
			continue // refused RPCs
		}
		if pagedLists[name] == "" {
			if !unpaged[name] {
				f.Errorf("%s has pages and no request", name)
			}
			continue
		}
		l := &list{sweptRPC: r, name: name, request: newMessage(f, r.request), all: map[string]bool{}}
		if err := prototext.Unmarshal([]byte(pagedLists[name]), l.request); err != nil {
			f.Fatal(err)
		}
		whole, next, err := page(f, l, "", 0)
		if err != nil || len(whole) < 2 || next != "" {
			f.Fatalf("%s: %d elements, then %q, %v", name, len(whole), next, err)
		}
		for _, e := range whole {
			l.all[e] = true
		}
		_, token, err := page(f, l, "", 1)
		if err != nil || (token == "") != unpaged[name] {
			f.Fatalf("%s: a page of one, then %q, %v", name, token, err)
		}
		for _, raw := range []string{"", "\xff", "a", token} {
			f.Add(uint8(len(lists)), []byte(raw), int32(1), uint8(0))
		}
		lists = append(lists, l)
	}
	if len(lists) != len(pagedLists) {
		f.Errorf("%d of %d lists are there", len(lists), len(pagedLists))
	}
	f.Fuzz(func(t *testing.T, which uint8, raw []byte, size int32, at uint8) {
		l := lists[int(which)%len(lists)]
		_, own, err := page(t, l, "", 1)
		if err != nil {
			t.Fatal(err)
		}
		tokens := []string{strings.ToValidUTF8(string(raw), "?"), base64.RawURLEncoding.EncodeToString(raw)}
		if decoded, err := base64.RawURLEncoding.DecodeString(own); err == nil && len(decoded) > 0 && len(raw) > 0 {
			decoded[int(at)%len(decoded)] ^= raw[0]
			tokens = append(tokens, base64.RawURLEncoding.EncodeToString(decoded))
		}
		for _, token := range tokens {
			for n := 0; ; n++ {
				elements, next, err := page(t, l, token, size)
				checkStatus(t, l.request, err)
				if err != nil && status.Code(err) != codes.InvalidArgument {
					t.Errorf("%s after %q, %d: %v", l.name, token, size, err)
				}
				if size > 0 && !unpaged[l.name] && len(elements) > int(size) {
					t.Errorf("%s after %q: %d elements of at most %d", l.name, token, len(elements), size)
				}
				for _, e := range elements {
					if !l.all[e] && l.method != "ListHotTablets" { // whose tokens contain times
						t.Errorf("%s after %q has an element that the list has not", l.name, token)
					}
				}
				if err != nil || next == "" {
					break
				}
				if n > len(l.all) {
					t.Fatalf("%s after %q has no end", l.name, token)
				}
				token = next
			}
		}
	})
}
