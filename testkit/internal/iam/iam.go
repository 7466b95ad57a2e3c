// Package iam checks access: it determines which permissions an RPC needs on which resources, and
// whether policies grant them. The permissions of RPCs come from the service's audit log
// documentation, and the permissions of roles from its list of predefined roles.
package iam

import (
	"slices"
	"strings"
	"sync"

	btpb "cloud.google.com/go/bigtable/apiv2/bigtablepb"
	"cloud.google.com/go/iam/apiv1/iampb"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// Need is a permission on a resource.
type Need struct {
	Permission string // such as bigtable.tables.readRows
	Resource   string // the name of the resource
}

// needs are the permissions of an RPC, by service and method: "field permission …; …". The
// field is the path of the resource's name in the request; permissions are without
// "bigtable.". A field can also be data, the table or view of a request for data; session, the
// opened table or view; operation, the instance or project of an operation; project, the
// project of a location. An empty field needs no permission.
var needs = map[string]string{
	"BigtableTableAdmin/CreateTable":              "parent tables.create",
	"BigtableTableAdmin/ListTables":               "parent tables.list",
	"BigtableTableAdmin/GetTable":                 "name tables.get",
	"BigtableTableAdmin/UpdateTable":              "table.name tables.update",
	"BigtableTableAdmin/DeleteTable":              "name tables.delete",
	"BigtableTableAdmin/UndeleteTable":            "name tables.undelete",
	"BigtableTableAdmin/ModifyColumnFamilies":     "name tables.update",
	"BigtableTableAdmin/DropRowRange":             "name tables.mutateRows",
	"BigtableTableAdmin/GenerateConsistencyToken": "name tables.generateConsistencyToken",
	"BigtableTableAdmin/CheckConsistency":         "name tables.checkConsistency",
	"BigtableTableAdmin/CreateAuthorizedView":     "parent authorizedViews.create tables.mutateRows tables.readRows",
	"BigtableTableAdmin/ListAuthorizedViews":      "parent authorizedViews.list",
	"BigtableTableAdmin/GetAuthorizedView":        "name authorizedViews.get",
	"BigtableTableAdmin/UpdateAuthorizedView":     "authorized_view.name authorizedViews.update",
	"BigtableTableAdmin/DeleteAuthorizedView":     "name authorizedViews.delete",
	"BigtableTableAdmin/CreateSchemaBundle":       "parent schemaBundles.create",
	"BigtableTableAdmin/ListSchemaBundles":        "parent schemaBundles.list",
	"BigtableTableAdmin/GetSchemaBundle":          "name schemaBundles.get",
	"BigtableTableAdmin/UpdateSchemaBundle":       "schema_bundle.name schemaBundles.update",
	"BigtableTableAdmin/DeleteSchemaBundle":       "name schemaBundles.delete",
	"BigtableTableAdmin/CreateBackup":             "parent backups.create",
	"BigtableTableAdmin/CopyBackup":               "parent backups.create; source_backup backups.read",
	"BigtableTableAdmin/ListBackups":              "parent backups.list",
	"BigtableTableAdmin/GetBackup":                "name backups.get",
	"BigtableTableAdmin/UpdateBackup":             "backup.name backups.update",
	"BigtableTableAdmin/DeleteBackup":             "name backups.delete",
	"BigtableTableAdmin/RestoreTable":             "parent tables.create; backup backups.restore",
	"BigtableTableAdmin/GetIamPolicy":             "resource getIamPolicy",
	"BigtableTableAdmin/SetIamPolicy":             "resource setIamPolicy",
	"BigtableTableAdmin/TestIamPermissions":       "",
	// The service lists no permissions of snapshots: they are the backups of their time.
	"BigtableTableAdmin/SnapshotTable":           "cluster backups.create",
	"BigtableTableAdmin/ListSnapshots":           "parent backups.list",
	"BigtableTableAdmin/GetSnapshot":             "name backups.get",
	"BigtableTableAdmin/DeleteSnapshot":          "name backups.delete",
	"BigtableTableAdmin/CreateTableFromSnapshot": "parent tables.create; source_snapshot backups.restore",

	"BigtableInstanceAdmin/CreateInstance":         "parent instances.create",
	"BigtableInstanceAdmin/ListInstances":          "parent instances.list",
	"BigtableInstanceAdmin/GetInstance":            "name instances.get",
	"BigtableInstanceAdmin/UpdateInstance":         "name instances.update",
	"BigtableInstanceAdmin/PartialUpdateInstance":  "instance.name instances.update",
	"BigtableInstanceAdmin/DeleteInstance":         "name instances.delete",
	"BigtableInstanceAdmin/CreateCluster":          "parent clusters.create",
	"BigtableInstanceAdmin/GetCluster":             "name clusters.get",
	"BigtableInstanceAdmin/ListClusters":           "parent clusters.list",
	"BigtableInstanceAdmin/UpdateCluster":          "name clusters.update",
	"BigtableInstanceAdmin/PartialUpdateCluster":   "cluster.name clusters.update",
	"BigtableInstanceAdmin/DeleteCluster":          "name clusters.delete",
	"BigtableInstanceAdmin/CreateAppProfile":       "parent appProfiles.create",
	"BigtableInstanceAdmin/GetAppProfile":          "name appProfiles.get",
	"BigtableInstanceAdmin/ListAppProfiles":        "parent appProfiles.list",
	"BigtableInstanceAdmin/UpdateAppProfile":       "app_profile.name appProfiles.update",
	"BigtableInstanceAdmin/DeleteAppProfile":       "name appProfiles.delete",
	"BigtableInstanceAdmin/ListHotTablets":         "parent hotTablets.list",
	"BigtableInstanceAdmin/CreateLogicalView":      "parent logicalViews.create",
	"BigtableInstanceAdmin/GetLogicalView":         "name logicalViews.get",
	"BigtableInstanceAdmin/ListLogicalViews":       "parent logicalViews.list",
	"BigtableInstanceAdmin/UpdateLogicalView":      "logical_view.name logicalViews.update",
	"BigtableInstanceAdmin/DeleteLogicalView":      "name logicalViews.delete",
	"BigtableInstanceAdmin/CreateMaterializedView": "parent materializedViews.create",
	"BigtableInstanceAdmin/GetMaterializedView":    "name materializedViews.get",
	"BigtableInstanceAdmin/ListMaterializedViews":  "parent materializedViews.list",
	"BigtableInstanceAdmin/UpdateMaterializedView": "materialized_view.name materializedViews.update",
	"BigtableInstanceAdmin/DeleteMaterializedView": "name materializedViews.delete",
	"BigtableInstanceAdmin/GetIamPolicy":           "resource getIamPolicy",
	"BigtableInstanceAdmin/SetIamPolicy":           "resource setIamPolicy",
	"BigtableInstanceAdmin/TestIamPermissions":     "",
	// The service lists no permissions of memory layers: they are settings of clusters.
	"BigtableInstanceAdmin/GetMemoryLayer":    "name clusters.get",
	"BigtableInstanceAdmin/ListMemoryLayers":  "parent clusters.list",
	"BigtableInstanceAdmin/UpdateMemoryLayer": "memory_layer.name clusters.update",

	"Bigtable/ReadRows":           "data readRows",
	"Bigtable/SampleRowKeys":      "data sampleRowKeys",
	"Bigtable/MutateRow":          "data mutateRows",
	"Bigtable/MutateRows":         "data mutateRows",
	"Bigtable/CheckAndMutateRow":  "data readRows mutateRows",
	"Bigtable/ReadModifyWriteRow": "data readRows mutateRows",
	"Bigtable/ReadChangeStream":   "data readRows",
	"Bigtable/PrepareQuery":       "instance_name instances.executeQuery",
	"Bigtable/ExecuteQuery":       "instance_name instances.executeQuery",
	// Not in the audit logs: the permission of the read that they prepare.
	"Bigtable/GenerateInitialChangeStreamPartitions": "data readRows",
	"Bigtable/PingAndWarm":                           "name instances.ping",
	"Bigtable/GetClientConfiguration":                "instance_name instances.ping",
	"Bigtable/OpenTable":                             "session",
	"Bigtable/OpenAuthorizedView":                    "session",
	"Bigtable/OpenMaterializedView":                  "session",

	// The service lists no permissions of operations: they belong to instances.
	"Operations/GetOperation":    "operation instances.get",
	"Operations/WaitOperation":   "operation instances.get",
	"Operations/ListOperations":  "operation instances.get",
	"Operations/CancelOperation": "operation instances.update",
	"Operations/DeleteOperation": "operation instances.update",

	"Locations/ListLocations": "project locations.list",
	"Locations/GetLocation":   "project locations.list",

	// Parts of a server without a resource.
	"Health/Check":                          "",
	"Health/List":                           "",
	"Health/Watch":                          "",
	"ServerReflection/ServerReflectionInfo": "",
}

// NeedsOf returns the permissions that a request needs, given the full method name of its RPC. It
// returns false for an unknown RPC, which only the owner may call.
func NeedsOf(fullMethod string, req any) ([]Need, bool) {
	method := fullMethod[strings.LastIndexByte(fullMethod, '.')+1:]
	spec, known := needs[method]
	m, ok := req.(proto.Message)
	if !known || !ok {
		return nil, false
	}
	var out []Need
	for part := range strings.SplitSeq(spec, ";") {
		words := strings.Fields(part)
		if len(words) == 0 {
			continue
		}
		resource, permissions := "", words[1:]
		switch field := words[0]; field {
		case "data":
			resource = dataOf(m)
		case "session":
			s, _ := m.(*btpb.SessionRequest)
			open := &btpb.OpenTableRequest{} // the same wire form as that of a view
			if proto.Unmarshal(s.GetOpenSession().GetPayload(), open) != nil {
				return nil, false
			}
			resource, permissions = dataOf(open), verbsOf(open.GetPermission())
		case "operation":
			resource, _, _ = strings.Cut(strings.TrimPrefix(text(m, "name"), "operations/"), "/operations")
		case "project":
			resource, _, _ = strings.Cut(text(m, "name"), "/locations")
		default:
			resource = text(m, field)
		}
		for _, p := range permissions {
			if !strings.Contains(p, ".") { // relative to the kind of the resource
				p = kindOf(resource) + "." + p
			}
			out = append(out, Need{Permission: "bigtable." + p, Resource: resource})
		}
	}
	return out, true
}

// verbsOf returns the permissions of a session.
func verbsOf(p btpb.OpenTableRequest_Permission) []string {
	if p == btpb.OpenTableRequest_PERMISSION_READ {
		return []string{"readRows"}
	}
	if p == btpb.OpenTableRequest_PERMISSION_WRITE {
		return []string{"mutateRows"}
	}
	return []string{"readRows", "mutateRows"}
}

// dataOf returns the view or the table of a request.
func dataOf(m proto.Message) string {
	for _, field := range []string{"authorized_view_name", "materialized_view_name", "table_name"} {
		if name := text(m, field); name != "" {
			return name
		}
	}
	return ""
}

// kindOf returns the collection of a resource: "tables".
func kindOf(resource string) string {
	parts := strings.Split(resource, "/")
	return parts[max(len(parts)-2, 0)]
}

// text returns the text at a path of fields, "" without such a field.
func text(m proto.Message, path string) string {
	at := m.ProtoReflect()
	names := strings.Split(path, ".")
	for i, name := range names {
		f := at.Descriptor().Fields().ByName(protoreflect.Name(name))
		switch {
		case f == nil:
			return ""
		case i < len(names)-1 && f.Message() != nil:
			at = at.Get(f).Message()
		case f.Kind() == protoreflect.StringKind && !f.IsList():
			return at.Get(f).String()
		default:
			return ""
		}
	}
	return ""
}

// Above returns the resources whose policies apply to a resource: the resource itself, and its
// ancestors that can have a policy.
func Above(resource string) []string {
	parts := strings.Split(resource, "/")
	var out []string
	for n := len(parts) - len(parts)%2; n >= 4; n -= 2 {
		switch parts[n-2] {
		case "instances", "tables", "authorizedViews", "logicalViews", "materializedViews", "schemaBundles", "backups":
			out = append(out, strings.Join(parts[:n], "/"))
		}
	}
	return out
}

// Roles holds the defined roles, and the members that have a role on the project. The project's
// policy is not part of Bigtable's API. Roles is safe for concurrent use.
type Roles struct {
	mu      sync.Mutex
	defined map[string][]string
	project iampb.Policy
}

// Bind grants members a role on the project.
func (r *Roles) Bind(role string, members ...string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.project.Bindings = append(r.project.GetBindings(), &iampb.Binding{Role: role, Members: slices.Clone(members)})
}

// Project returns a copy of the project's policy.
func (r *Roles) Project() *iampb.Policy {
	r.mu.Lock()
	defer r.mu.Unlock()
	return proto.CloneOf(&r.project)
}

// Define defines a role, or replaces its definition.
func (r *Roles) Define(name string, permissions ...string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.defined == nil {
		r.defined = map[string][]string{}
	}
	r.defined[name] = slices.Clone(permissions)
}

// The permissions of the predefined roles, without "bigtable.".
var (
	viewer = strings.Fields(`appProfiles.get appProfiles.list authorizedViews.get authorizedViews.list backups.get backups.list
		clusters.get clusters.list hotTablets.list instances.get instances.list locations.list logicalViews.get logicalViews.list
		materializedViews.get materializedViews.list schemaBundles.get schemaBundles.list
		tables.checkConsistency tables.generateConsistencyToken tables.get tables.list`)
	reader = append(strings.Fields(`authorizedViews.readRows authorizedViews.sampleRowKeys instances.executeQuery instances.ping
		logicalViews.readRows materializedViews.readRows materializedViews.sampleRowKeys tables.readRows tables.sampleRowKeys`), viewer...)
	user = append(strings.Fields(`authorizedViews.mutateRows tables.mutateRows`), reader...)

	predefined = map[string][]string{"roles/bigtable.viewer": viewer, "roles/bigtable.reader": reader, "roles/bigtable.user": user}
)

// grants reports whether a role has a permission.
func (r *Roles) grants(role, permission string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if has, ok := r.defined[role]; ok {
		return slices.Contains(has, permission)
	}
	short, ok := strings.CutPrefix(permission, "bigtable.")
	return ok && (role == "roles/bigtable.admin" || slices.Contains(predefined[role], short))
}

// Grants reports whether a policy grants a permission to a principal. It ignores bindings with a
// condition.
func (r *Roles) Grants(p *iampb.Policy, principal, permission string) bool {
	for _, b := range p.GetBindings() {
		if b.GetCondition() != nil || !slices.ContainsFunc(b.GetMembers(), func(m string) bool { return isMember(m, principal) }) {
			continue
		}
		if r.grants(b.GetRole(), permission) {
			return true
		}
	}
	return false
}

// isMember reports whether the member of a binding is, or includes, a principal.
func isMember(member, principal string) bool {
	kind, of, _ := strings.Cut(member, ":")
	switch kind {
	case "allUsers", "allAuthenticatedUsers":
		return true
	case "domain":
		return strings.HasSuffix(principal, "@"+of)
	}
	return member == principal
}
