// Package iam says who may do what: which permissions an RPC needs, on which
// resource, and which of them policies grant. Permissions of RPCs are those of
// the service's audit logs, those of roles from the list of its predefined roles.
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
	Resource   string // its name
}

// needs are the permissions of an RPC, by service and method: "field permission",
// where field is the path of the name of the resource in the request and the permission goes
// without "bigtable.".
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
	"BigtableTableAdmin/CopyBackup":               "parent backups.create",
	"BigtableTableAdmin/ListBackups":              "parent backups.list",
	"BigtableTableAdmin/GetBackup":                "name backups.get",
	"BigtableTableAdmin/UpdateBackup":             "backup.name backups.update",
	"BigtableTableAdmin/DeleteBackup":             "name backups.delete",
	"BigtableTableAdmin/RestoreTable":             "backup backups.restore",
	"BigtableTableAdmin/GetIamPolicy":             "resource getIamPolicy",
	"BigtableTableAdmin/SetIamPolicy":             "resource setIamPolicy",
	"BigtableTableAdmin/TestIamPermissions":       "resource",

	"BigtableInstanceAdmin/GetInstance":           "name instances.get",
	"BigtableInstanceAdmin/UpdateInstance":        "name instances.update",
	"BigtableInstanceAdmin/PartialUpdateInstance": "instance.name instances.update",
	"BigtableInstanceAdmin/DeleteInstance":        "name instances.delete",
	"BigtableInstanceAdmin/CreateCluster":         "parent clusters.create",
	"BigtableInstanceAdmin/GetCluster":            "name clusters.get",
	"BigtableInstanceAdmin/ListClusters":          "parent clusters.list",
	"BigtableInstanceAdmin/UpdateCluster":         "name clusters.update",
	"BigtableInstanceAdmin/PartialUpdateCluster":  "cluster.name clusters.update",
	"BigtableInstanceAdmin/DeleteCluster":         "name clusters.delete",
	"BigtableInstanceAdmin/CreateAppProfile":      "parent appProfiles.create",
	"BigtableInstanceAdmin/GetAppProfile":         "name appProfiles.get",
	"BigtableInstanceAdmin/ListAppProfiles":       "parent appProfiles.list",
	"BigtableInstanceAdmin/UpdateAppProfile":      "app_profile.name appProfiles.update",
	"BigtableInstanceAdmin/DeleteAppProfile":      "name appProfiles.delete",
	"BigtableInstanceAdmin/ListHotTablets":        "parent hotTablets.list",
	"BigtableInstanceAdmin/GetIamPolicy":          "resource getIamPolicy",
	"BigtableInstanceAdmin/SetIamPolicy":          "resource setIamPolicy",
	"BigtableInstanceAdmin/TestIamPermissions":    "resource",

	"Bigtable/ReadRows":           "data readRows",
	"Bigtable/SampleRowKeys":      "data sampleRowKeys",
	"Bigtable/MutateRow":          "data mutateRows",
	"Bigtable/MutateRows":         "data mutateRows",
	"Bigtable/CheckAndMutateRow":  "data readRows mutateRows",
	"Bigtable/ReadModifyWriteRow": "data readRows mutateRows",
	"Bigtable/ReadChangeStream":   "data readRows",
	// Not in the audit logs: what they prepare.
	"Bigtable/GenerateInitialChangeStreamPartitions": "data readRows",
	"Bigtable/PingAndWarm":                           "name instances.ping",
	"Bigtable/GetClientConfiguration":                "instance_name instances.ping",
	"Bigtable/OpenTable":                             "session",
	"Bigtable/OpenAuthorizedView":                    "session",
}

// NeedsOf returns what a request of an RPC, by its full method name, needs; false
// for an RPC that nobody but the owner may call.
func NeedsOf(fullMethod string, req any) ([]Need, bool) {
	method := fullMethod[strings.LastIndexByte(fullMethod, '.')+1:]
	spec, known := needs[method]
	m, ok := req.(proto.Message)
	if !known || !ok {
		return nil, false
	}
	field, permissions, _ := strings.Cut(spec, " ")
	var out []Need
	switch field {
	case "data":
		out = needsData(m, strings.Fields(permissions))
	case "session":
		s, _ := m.(*btpb.SessionRequest)
		open := &btpb.OpenTableRequest{} // the same on the wire as that of a view
		if proto.Unmarshal(s.GetOpenSession().GetPayload(), open) != nil {
			return nil, false
		}
		verbs := map[btpb.OpenTableRequest_Permission][]string{
			btpb.OpenTableRequest_PERMISSION_READ: {"readRows"}, btpb.OpenTableRequest_PERMISSION_WRITE: {"mutateRows"},
		}[open.GetPermission()]
		if verbs == nil {
			verbs = []string{"readRows", "mutateRows"}
		}
		out = needsData(open, verbs)
	default:
		resource := text(m, field)
		for _, p := range strings.Fields(permissions) {
			if !strings.Contains(p, ".") { // of what the resource is
				p = kindOf(resource) + "." + p
			}
			out = append(out, Need{Permission: "bigtable." + p, Resource: resource})
		}
	}
	return out, true
}

// needsData returns what verbs need on the table or the view of a request.
func needsData(m proto.Message, verbs []string) []Need {
	resource := text(m, "authorized_view_name")
	if resource == "" {
		resource = text(m, "table_name")
	}
	var out []Need
	for _, verb := range verbs {
		out = append(out, Need{Permission: "bigtable." + kindOf(resource) + "." + verb, Resource: resource})
	}
	return out
}

// kindOf returns the collection that a resource lies in: "tables".
func kindOf(resource string) string {
	parts := strings.Split(resource, "/")
	return parts[max(len(parts)-2, 0)]
}

// text returns the text at a path of fields, "" if there is no such field.
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

// Above returns the resources whose policies hold for one: itself, and its ancestors
// that can have a policy.
func Above(resource string) []string {
	parts := strings.Split(resource, "/")
	var out []string
	for n := len(parts) - len(parts)%2; n >= 4; n -= 2 {
		switch parts[n-2] {
		case "instances", "tables", "authorizedViews", "schemaBundles", "backups":
			out = append(out, strings.Join(parts[:n], "/"))
		}
	}
	return out
}

// Roles are the roles that there are. It is safe for concurrent use.
type Roles struct {
	mu      sync.Mutex
	defined map[string][]string
}

// Define defines a role, or defines it anew.
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

// Grants reports whether a policy gives a permission to a principal. Bindings with
// a condition give nothing.
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

// isMember reports whether a principal is the member of a binding, or one of those whom it means.
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
