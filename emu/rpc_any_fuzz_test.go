package emu

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"

	btpb "cloud.google.com/go/bigtable/apiv2/bigtablepb"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/prototext"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
)

// rpcSeeds are meaningful requests to the server of fuzz targets, in the text format.
var rpcSeeds = map[string][]string{
	"Bigtable.ReadRows": {
		`table_name: "projects/p/instances/i/tables/t" rows {row_keys: "a" row_ranges {start_key_open: "a"}} filter {value_regex_filter: "(v|\\x00).*"} request_stats_view: REQUEST_STATS_FULL`,
	},
	"Bigtable.SampleRowKeys":     {`table_name: "projects/p/instances/i/tables/t" row_range {end_key_closed: "b"}`},
	"Bigtable.MutateRow":         {`table_name: "projects/p/instances/i/tables/t" row_key: "a" mutations {set_cell {family_name: "f" column_qualifier: "q" timestamp_micros: -1 value: "v"}} idempotency {token: "12345678" start_time {seconds: 1700000000}}`},
	"Bigtable.MutateRows":        {`table_name: "projects/p/instances/i/tables/t" entries {row_key: "a" mutations {delete_from_row {}}} entries {row_key: "n" mutations {set_cell {family_name: "none"}}}`},
	"Bigtable.CheckAndMutateRow": {`table_name: "projects/p/instances/i/tables/t" row_key: "a" predicate_filter {cells_per_row_offset_filter: 1} true_mutations {delete_from_family {family_name: "g"}} false_mutations {delete_from_row {}}`},
	"Bigtable.PingAndWarm":       {`name: "projects/p/instances/made" app_profile_id: "ap"`},
	"Bigtable.ReadModifyWriteRow": {
		`table_name: "projects/p/instances/i/tables/t" row_key: "a" rules {family_name: "f" column_qualifier: "q" increment_amount: 9223372036854775807} rules {family_name: "g" append_value: "y"}`,
	},
	"Bigtable.GenerateInitialChangeStreamPartitions": {`table_name: "projects/p/instances/i/tables/t"`},
	"Bigtable.ReadChangeStream":                      {`table_name: "projects/p/instances/i/tables/t" partition {row_range {start_key_closed: "" end_key_open: ""}} start_time {seconds: 1700000000} end_time {seconds: 1700000000}`},
	"Bigtable.GetClientConfiguration":                {`instance_name: "projects/p/instances/made" app_profile_id: "ap"`},

	"BigtableTableAdmin.CreateTable": {
		`parent: "projects/p/instances/made" table_id: "new" initial_splits {key: "m"} table {deletion_protection: true column_families {key: "f" value {gc_rule {union {rules {max_num_versions: 2} rules {max_age {seconds: 3600}}}}}}}`,
		`parent: "projects/p/instances/i" table_id: "new" table {change_stream_config {retention_period {seconds: 90000}} automated_backup_policy {retention_period {seconds: 604800} frequency {seconds: 86400}} row_key_schema {}}`,
	},
	"BigtableTableAdmin.ListTables": {`parent: "projects/p/instances/made" page_size: 1 view: SCHEMA_VIEW`},
	"BigtableTableAdmin.GetTable":   {`name: "projects/p/instances/i/tables/t" view: FULL`},
	"BigtableTableAdmin.UpdateTable": {
		`table {name: "projects/p/instances/made/tables/t" deletion_protection: true change_stream_config {retention_period {seconds: 90000}}} update_mask {paths: "deletion_protection" paths: "change_stream_config.retention_period"}`,
	},
	"BigtableTableAdmin.DeleteTable":   {`name: "projects/p/instances/i/tables/t"`},
	"BigtableTableAdmin.UndeleteTable": {`name: "projects/p/instances/made/tables/gone"`},
	"BigtableTableAdmin.CreateAuthorizedView": {
		`parent: "projects/p/instances/i/tables/t" authorized_view_id: "new" authorized_view {subset_view {row_prefixes: "a" family_subsets {key: "f" value {qualifiers: "q" qualifier_prefixes: ""}}} deletion_protection: true}`,
	},
	"BigtableTableAdmin.ListAuthorizedViews": {`parent: "projects/p/instances/i/tables/t" page_size: 1 view: FULL`},
	"BigtableTableAdmin.GetAuthorizedView":   {`name: "projects/p/instances/i/tables/t/authorizedViews/v" view: BASIC`},
	"BigtableTableAdmin.UpdateAuthorizedView": {
		`authorized_view {name: "projects/p/instances/i/tables/t/authorizedViews/v" subset_view {family_subsets {key: "g" value {}}}} update_mask {paths: "subset_view.family_subsets"}`,
		`authorized_view {name: "projects/p/instances/i/tables/t/authorizedViews/v" deletion_protection: true} update_mask {paths: "*"}`,
	},
	"BigtableTableAdmin.DeleteAuthorizedView": {`name: "projects/p/instances/i/tables/t/authorizedViews/v"`},
	"BigtableTableAdmin.CreateSchemaBundle": {
		`parent: "projects/p/instances/i/tables/t" schema_bundle_id: "new" schema_bundle {avro_schema {json_schemas: "{\"type\": \"array\", \"items\": \"int\"}"}}`,
		`parent: "projects/p/instances/i/tables/t" schema_bundle_id: "new" schema_bundle {proto_schema {proto_descriptors: "\n\x07\n\x05a.txt"}}`,
	},
	"BigtableTableAdmin.UpdateSchemaBundle": {
		`schema_bundle {name: "projects/p/instances/i/tables/t/schemaBundles/s" proto_schema {proto_descriptors: "\n\x07\n\x05b.txt"}} update_mask {paths: "proto_schema"}`,
	},
	"BigtableTableAdmin.GetSchemaBundle":    {`name: "projects/p/instances/i/tables/t/schemaBundles/s"`},
	"BigtableTableAdmin.ListSchemaBundles":  {`parent: "projects/p/instances/i/tables/t" page_size: 1`},
	"BigtableTableAdmin.DeleteSchemaBundle": {`name: "projects/p/instances/i/tables/t/schemaBundles/s"`},
	"BigtableTableAdmin.ModifyColumnFamilies": {
		`name: "projects/p/instances/i/tables/t" modifications {id: "n" create {value_type {aggregate_type {sum {} input_type {int64_type {encoding {big_endian_bytes {}}}}}}}} modifications {id: "f" update {gc_rule {max_num_versions: 1}} update_mask {paths: "gc_rule"}} modifications {id: "g" drop: true}`,
	},
	"BigtableTableAdmin.DropRowRange":             {`name: "projects/p/instances/i/tables/t" row_key_prefix: "b"`, `name: "projects/p/instances/i/tables/t" delete_all_data_from_table: true`},
	"BigtableTableAdmin.GenerateConsistencyToken": {`name: "projects/p/instances/i/tables/t"`},
	"BigtableTableAdmin.CheckConsistency":         {`name: "projects/p/instances/i/tables/t" consistency_token: "token" standard_read_remote_writes {}`},
	"BigtableTableAdmin.GetIamPolicy":             {`resource: "projects/p/instances/i/tables/t" options {requested_policy_version: 3}`},
	"BigtableTableAdmin.SetIamPolicy":             {`resource: "projects/p/instances/i/tables/t" policy {version: 1 bindings {role: "roles/bigtable.user" members: "allUsers"}} update_mask {paths: "bindings"}`},
	"BigtableTableAdmin.TestIamPermissions":       {`resource: "projects/p/instances/i/tables/t" permissions: "bigtable.tables.get"`},

	"BigtableTableAdmin.SnapshotTable":           {`name: "projects/p/instances/i/tables/t" cluster: "projects/p/instances/i/clusters/c" snapshot_id: "s" ttl {seconds: 60}`},
	"BigtableTableAdmin.GetSnapshot":             {`name: "projects/p/instances/i/clusters/c/snapshots/s"`},
	"BigtableTableAdmin.ListSnapshots":           {`parent: "projects/p/instances/i/clusters/-"`},
	"BigtableTableAdmin.DeleteSnapshot":          {`name: "projects/p/instances/i/clusters/c/snapshots/s"`},
	"BigtableTableAdmin.CreateTableFromSnapshot": {`parent: "projects/p/instances/i" table_id: "new" source_snapshot: "projects/p/instances/i/clusters/c/snapshots/s"`},

	"BigtableTableAdmin.CreateBackup": {`parent: "projects/p/instances/i/clusters/c" backup_id: "b" backup {source_table: "projects/p/instances/i/tables/t" expire_time {seconds: 1700100000} backup_type: HOT}`},
	"BigtableTableAdmin.GetBackup":    {`name: "projects/p/instances/i/clusters/c/backups/b"`},
	"BigtableTableAdmin.UpdateBackup": {`backup {name: "projects/p/instances/i/clusters/c/backups/b" expire_time {seconds: 1700200000}} update_mask {paths: "expire_time" paths: "hot_to_standard_time"}`},
	"BigtableTableAdmin.DeleteBackup": {`name: "projects/p/instances/i/clusters/c/backups/b"`},
	"BigtableTableAdmin.ListBackups":  {`parent: "projects/p/instances/i/clusters/-" filter: "NOT (state:ready) OR size_bytes>1" order_by: "name desc" page_size: 1`},
	"BigtableTableAdmin.RestoreTable": {`parent: "projects/p/instances/i" table_id: "new" backup: "projects/p/instances/i/clusters/c/backups/b"`},
	"BigtableTableAdmin.CopyBackup":   {`parent: "projects/p/instances/i/clusters/c" backup_id: "b2" source_backup: "projects/p/instances/i/clusters/c/backups/b" expire_time {seconds: 1700100000}`},

	"BigtableInstanceAdmin.CreateInstance": {
		`parent: "projects/p" instance_id: "another" instance {display_name: "Another" labels {key: "k" value: "v"}} clusters {key: "c1" value {location: "projects/p/locations/z1" serve_nodes: 1}}`,
	},
	"BigtableInstanceAdmin.GetInstance":           {`name: "projects/p/instances/made"`},
	"BigtableInstanceAdmin.ListInstances":         {`parent: "projects/p" page_token: "made"`},
	"BigtableInstanceAdmin.UpdateInstance":        {`name: "projects/p/instances/made" display_name: "New" type: PRODUCTION`},
	"BigtableInstanceAdmin.PartialUpdateInstance": {`instance {name: "projects/p/instances/made" labels {key: "k" value: "v"}} update_mask {paths: "labels"}`},
	"BigtableInstanceAdmin.DeleteInstance":        {`name: "projects/p/instances/made"`},
	"BigtableInstanceAdmin.CreateCluster": {
		`parent: "projects/p/instances/made" cluster_id: "c2" cluster {location: "projects/p/locations/z2" cluster_config {cluster_autoscaling_config {autoscaling_limits {min_serve_nodes: 1 max_serve_nodes: 5} autoscaling_targets {cpu_utilization_percent: 50}}}}`,
	},
	"BigtableInstanceAdmin.GetCluster":           {`name: "projects/p/instances/made/clusters/c1"`},
	"BigtableInstanceAdmin.ListClusters":         {`parent: "projects/p/instances/-"`},
	"BigtableInstanceAdmin.UpdateCluster":        {`name: "projects/p/instances/made/clusters/c1" serve_nodes: 3`},
	"BigtableInstanceAdmin.PartialUpdateCluster": {`cluster {name: "projects/p/instances/made/clusters/c1" serve_nodes: 2} update_mask {paths: "serve_nodes"}`},
	"BigtableInstanceAdmin.DeleteCluster":        {`name: "projects/p/instances/made/clusters/c1"`},
	"BigtableInstanceAdmin.CreateLogicalView":    {`parent: "projects/p/instances/i" logical_view_id: "v" logical_view {query: "SELECT _key FROM t" deletion_protection: true}`},
	"BigtableInstanceAdmin.GetLogicalView":       {`name: "projects/p/instances/i/logicalViews/v"`},
	"BigtableInstanceAdmin.ListLogicalViews":     {`parent: "projects/p/instances/-" page_size: 1`},
	"BigtableInstanceAdmin.UpdateLogicalView":    {`logical_view {name: "projects/p/instances/i/logicalViews/v" query: "SELECT 1 AS x"} update_mask {paths: "query"}`},
	"BigtableInstanceAdmin.DeleteLogicalView":    {`name: "projects/p/instances/i/logicalViews/v"`},
	"BigtableInstanceAdmin.CreateMaterializedView": {
		`parent: "projects/p/instances/i" materialized_view_id: "v" materialized_view {query: "SELECT _key AS k, f['q'] AS q FROM t ORDER BY k" deletion_protection: true}`,
		`parent: "projects/p/instances/i" materialized_view_id: "w" materialized_view {query: "SELECT f['q'] AS q, COUNT(*) AS n FROM t GROUP BY q"}`,
	},
	"BigtableInstanceAdmin.GetMaterializedView":    {`name: "projects/p/instances/i/materializedViews/v"`},
	"BigtableInstanceAdmin.ListMaterializedViews":  {`parent: "projects/p/instances/-" page_size: 1`},
	"BigtableInstanceAdmin.UpdateMaterializedView": {`materialized_view {name: "projects/p/instances/i/materializedViews/v"} update_mask {paths: "deletion_protection"}`},
	"BigtableInstanceAdmin.DeleteMaterializedView": {`name: "projects/p/instances/i/materializedViews/v"`},
	"Bigtable.PrepareQuery":                        {`instance_name: "projects/p/instances/i" query: "SELECT _key FROM t WHERE _key = @k" proto_format {} param_types {key: "k" value {bytes_type {}}}`},
	"Bigtable.ExecuteQuery":                        {`instance_name: "projects/p/instances/i" query: "SELECT * FROM t WHERE _key > @k" params {key: "k" value {type {bytes_type {}} bytes_value: "a"}}`},
	"BigtableInstanceAdmin.GetMemoryLayer":         {`name: "projects/p/instances/made/clusters/c1/memoryLayer"`},
	"BigtableInstanceAdmin.UpdateMemoryLayer":      {`memory_layer {name: "projects/p/instances/made/clusters/c1/memoryLayer" memory_config {}} update_mask {paths: "memory_config"}`},
	"BigtableInstanceAdmin.ListMemoryLayers":       {`parent: "projects/p/instances/made/clusters/-" page_size: 1`},
	"BigtableInstanceAdmin.ListHotTablets": {
		`parent: "projects/p/instances/made/clusters/c1" start_time {seconds: 1699990000} end_time {seconds: 1700000000} page_size: 1`,
		`parent: "projects/p/instances/made/clusters/c1" page_token: "AAAAAAAAAAAAAAAAAAAAAQAAAAEAAAAA"`,
	},
	"BigtableInstanceAdmin.CreateAppProfile": {
		`parent: "projects/p/instances/made" app_profile_id: "new" ignore_warnings: true app_profile {description: "d" multi_cluster_routing_use_any {cluster_ids: "c1"} standard_isolation {priority: PRIORITY_LOW}}`,
	},
	"BigtableInstanceAdmin.GetAppProfile":      {`name: "projects/p/instances/made/appProfiles/ap"`},
	"BigtableInstanceAdmin.ListAppProfiles":    {`parent: "projects/p/instances/made" page_size: 1`},
	"BigtableInstanceAdmin.UpdateAppProfile":   {`app_profile {name: "projects/p/instances/made/appProfiles/ap" description: "d" single_cluster_routing {cluster_id: "c1"}} update_mask {paths: "description" paths: "single_cluster_routing"} ignore_warnings: true`},
	"BigtableInstanceAdmin.DeleteAppProfile":   {`name: "projects/p/instances/made/appProfiles/ap" ignore_warnings: true`},
	"BigtableInstanceAdmin.GetIamPolicy":       {`resource: "projects/p/instances/made"`},
	"BigtableInstanceAdmin.SetIamPolicy":       {`resource: "projects/p/instances/made" policy {bindings {role: "roles/bigtable.admin" members: "allUsers" condition {expression: "true"}}}`},
	"BigtableInstanceAdmin.TestIamPermissions": {`resource: "projects/p/instances/made" permissions: "bigtable.instances.get" permissions: "*"`},

	"Operations.ListOperations":  {`name: "operations" page_size: 2`},
	"Operations.GetOperation":    {`name: "operations/projects/p/instances/made/operations/1"`},
	"Operations.DeleteOperation": {`name: "operations/projects/p/instances/made/operations/1"`},
	"Operations.CancelOperation": {`name: "operations/projects/p/instances/made/operations/1"`},
	"Operations.WaitOperation":   {`name: "operations/projects/p/instances/made/operations/1" timeout {seconds: 1}`},

	"Locations.ListLocations": {`name: "projects/p" page_size: 1`},
	"Locations.GetLocation":   {`name: "projects/p/locations/us-east1-b"`},
}

// changesNothing reports whether a method only reads.
func changesNothing(method string) bool {
	for _, prefix := range []string{"Get", "List", "Read", "Sample", "Ping", "Test", "Wait", "Cancel", "CheckConsistency", "GenerateConsistency", "GenerateInitial"} {
		if strings.HasPrefix(method, prefix) && method != "ReadModifyWriteRow" {
			return true
		}
	}
	return false
}

// newMessage returns an empty message of a type.
func newMessage(tb testing.TB, d protoreflect.MessageDescriptor) proto.Message {
	tb.Helper()
	kind, err := protoregistry.GlobalTypes.FindMessageByName(d.FullName())
	if err != nil {
		tb.Fatal(err)
	}
	return kind.New().Interface()
}

// FuzzRPC calls all methods of the server without client streams, with mutated meaningful
// requests that are merged with fields of another. Each returns a response that can be encoded,
// or a status of the server; a refused method's status names it. Failed calls and reads change
// nothing, and no call changes its request.
func FuzzRPC(f *testing.F) {
	z := newFuzzed(f)
	refused := map[string]bool{}
	for _, x := range Support() {
		refused[x.Group+"."+x.Name] = x.Status == Refused
	}
	var rpcs []sweptRPC
	for _, r := range registeredRPCs(f, z.srv.grpc) {
		name := shortService(r.service) + "." + r.method
		if _, ours := refused[name]; !ours || r.stream != nil && r.stream.ClientStreams {
			continue
		}
		seeds := rpcSeeds[name]
		if len(seeds) == 0 && !refused[name] {
			f.Errorf("%s has no seed", name)
		}
		if len(seeds) == 0 {
			seeds = []string{""}
		}
		for _, seed := range seeds {
			m := newMessage(f, r.request)
			if err := prototext.Unmarshal([]byte(seed), m); err != nil {
				f.Fatalf("%s: %v", name, err)
			}
			b, err := proto.Marshal(m)
			if err != nil {
				f.Fatal(err)
			}
			f.Add(uint8(len(rpcs)), b, []byte{})
			f.Add(uint8(len(rpcs)), []byte{}, b)
		}
		rpcs = append(rpcs, r)
	}
	f.Fuzz(func(t *testing.T, method uint8, base, patch []byte) {
		r := rpcs[int(method)%len(rpcs)]
		m := newMessage(t, r.request)
		if !decode(base, patch, m) {
			return
		}
		sent := proto.Clone(m)
		err := r.callMessage(t, z.srv.Conn(), m)
		checkStatus(t, sent, err)
		name := shortService(r.service) + "." + r.method
		if refused[name] && (status.Code(err) != codes.Unimplemented || !strings.Contains(err.Error(), r.method)) {
			t.Errorf("%s: got %v, want Unimplemented by name", name, err)
		}
		if changed := z.putBack(t); changed && (err != nil || changesNothing(r.method)) {
			t.Errorf("%s %v (%v) changed what the server holds", name, sent, err)
		}
		if !proto.Equal(m, sent) {
			t.Errorf("%s: the request changed from %v to %v", name, sent, m)
		}
	})
}

// callMessage sends a message and reads all responses, which must be encodable.
func (r sweptRPC) callMessage(t *testing.T, conn grpc.ClientConnInterface, m proto.Message) error {
	t.Helper()
	ctx, path := t.Context(), "/"+r.service+"/"+r.method
	received := func(reply proto.Message) {
		if _, err := proto.Marshal(reply); err != nil {
			t.Errorf("%s %v answers %v: %v", path, m, reply, err)
		}
	}
	if r.stream == nil {
		reply := newMessage(t, r.response)
		err := conn.Invoke(ctx, path, m, reply)
		received(reply)
		return err
	}
	s, err := conn.NewStream(ctx, r.stream, path)
	if err != nil {
		return err
	}
	err = errors.Join(s.SendMsg(m), s.CloseSend())
	for err == nil {
		reply := newMessage(t, r.response)
		if err = s.RecvMsg(reply); err == nil {
			received(reply)
		}
	}
	if errors.Is(err, io.EOF) {
		return nil
	}
	return err
}

// sentSession is a session with a fixed list of client messages.
type sentSession struct {
	grpc.ServerStream
	ctx      context.Context
	requests []*btpb.SessionRequest
	answers  []*btpb.SessionResponse
}

func (s *sentSession) Context() context.Context { return s.ctx }

func (s *sentSession) SetHeader(metadata.MD) error { return nil }

func (s *sentSession) Recv() (*btpb.SessionRequest, error) {
	if len(s.requests) == 0 {
		return nil, io.EOF
	}
	r := s.requests[0]
	s.requests = s.requests[1:]
	return r, nil
}

func (s *sentSession) Send(r *btpb.SessionResponse) error {
	s.answers = append(s.answers, r)
	return nil
}

// FuzzOpenTable opens sessions on a table and on a view and sends two virtual RPCs. Each merges
// a fuzzed message into a meaningful one.
func FuzzOpenTable(f *testing.F) {
	z := newFuzzed(f)
	marshal := func(m proto.Message) []byte {
		b, err := proto.Marshal(m)
		if err != nil {
			f.Fatal(err)
		}
		return b
	}
	open := &btpb.SessionRequest{}
	if err := proto.Unmarshal(openingOf(f), open); err != nil {
		f.Fatal(err)
	}
	virtual := func(id int64, m *btpb.TableRequest) []byte {
		return marshal(&btpb.SessionRequest{Payload: &btpb.SessionRequest_VirtualRpc{VirtualRpc: &btpb.VirtualRpcRequest{RpcId: id, Payload: marshal(m)}}})
	}
	read := &btpb.TableRequest{Payload: &btpb.TableRequest_ReadRow{ReadRow: &btpb.SessionReadRowRequest{Key: []byte("a"), Filter: fuzzedFilter}}}
	write := &btpb.TableRequest{Payload: &btpb.TableRequest_MutateRow{MutateRow: &btpb.SessionMutateRowRequest{Key: []byte("b"), Mutations: fuzzedMutations}}}
	f.Add(marshal(open), virtual(1, read), virtual(2, write))
	f.Add(marshal(open), virtual(1, write), marshal(&btpb.SessionRequest{Payload: &btpb.SessionRequest_CloseSession{CloseSession: &btpb.CloseSessionRequest{}}}))
	f.Add(virtual(1, read), virtual(2, read), virtual(2, read))
	// On the wire, both kinds of sessions differ only in the name.
	open.GetOpenSession().Payload = marshal(&btpb.OpenAuthorizedViewRequest{AuthorizedViewName: viewName("v"), Permission: btpb.OpenAuthorizedViewRequest_PERMISSION_READ_WRITE})
	f.Add(marshal(open), virtual(1, read), virtual(2, write))
	f.Fuzz(func(t *testing.T, first, second, third []byte) {
		s := &sentSession{ctx: t.Context()}
		for _, b := range [][]byte{first, second, third} {
			m := &btpb.SessionRequest{}
			if proto.Unmarshal(b, m) != nil {
				return
			}
			s.requests = append(s.requests, m)
		}
		kind := &tableSessions
		if name, _ := targetOf(s.requests[0]); strings.Contains(name, "/authorizedViews/") {
			kind = &authorizedViewSessions
		}
		err := (&call{Server: z.srv}).openSession(kind, s)
		checkStatus(t, &btpb.SessionRequest{}, err)
		wrote := false
		for _, a := range s.answers {
			if _, err := proto.Marshal(a); err != nil {
				t.Errorf("the answer %v cannot be sent: %v", a, err)
			}
			if e := a.GetError(); e != nil {
				checkStatus(t, a, status.ErrorProto(e.GetStatus()))
			}
			wrote = wrote || a.GetVirtualRpc() != nil
		}
		if changed := z.putBack(t); changed && !wrote {
			t.Error("no virtual RPC succeeded, and something has changed")
		}
	})
}
