package admin

import (
	"context"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	btapb "cloud.google.com/go/bigtable/admin/apiv2/adminpb"
	"cloud.google.com/go/iam/apiv1/iampb"
	"cloud.google.com/go/longrunning/autogen/longrunningpb"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/emptypb"
	"google.golang.org/protobuf/types/known/fieldmaskpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/tabletop-emu/tabletop/emu/internal/instancedef"
	"github.com/tabletop-emu/tabletop/emu/internal/pending"
	"github.com/tabletop-emu/tabletop/emu/internal/refusal"
	"github.com/tabletop-emu/tabletop/emu/internal/resname"
	"github.com/tabletop-emu/tabletop/engine"
)

// The engine stores all objects of the API other than tables as resources: the
// serialized message, under its kind and name. Each change of tables and
// resources runs as one engine.UpdateCatalog. Its checks therefore still hold
// when it is applied, and it is atomic, even if the process crashes.
const (
	kindProject          = "project/"          // empty; a project in which an instance was created
	kindInstance         = "instance/"         // btapb.Instance
	kindCluster          = "cluster/"          // btapb.Cluster
	kindMemoryLayer      = "memoryLayer/"      // btapb.MemoryLayer, if it was set
	kindAppProfile       = "appProfile/"       // btapb.AppProfile
	kindLogicalView      = "logicalView/"      // btapb.LogicalView
	kindMaterializedView = "materializedView/" // btapb.MaterializedView
	KindAuthorizedView   = "authorizedView/"   // btapb.AuthorizedView
	kindSchemaBundle     = "schemaBundle/"     // btapb.SchemaBundle
	KindBackup           = "backup/"           // btapb.Backup, with its final size
	KindSnapshot         = "snapshot/"         // btapb.Snapshot
	KindPartitions       = "changePartitions/" // Partitions, by the name of the table
	KindPolicy           = "policy/"           // iampb.Policy, by the name of its resource
	kindOperation        = "operation/"        // longrunningpb.Operation, by its number in 20 digits
	operationCount       = "operations"        // the number of the newest operation, a decimal
	etagCount            = "etags"             // the number of the newest etag, a decimal
)

// Catalog reads tables and resources. Both the store and a running change implement it.
type Catalog interface {
	Table(name string) (*engine.Table, error)
	Tables(prefix string) []*engine.Table
	Resource(name string) ([]byte, error)
	Resources(prefix string) ([]engine.Resource, error)
}

// empty returns err or, if err is nil, an empty response.
func empty(err error) (*emptypb.Empty, error) {
	if err != nil {
		return nil, err
	}
	return &emptypb.Empty{}, nil
}

// loadOne reads a resource into m, and reports whether it exists.
func loadOne(r Catalog, key string, m proto.Message) (bool, error) {
	raw, err := r.Resource(key)
	if errors.Is(err, engine.ErrResourceNotFound) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	return true, unmarshalResource(key, raw, m)
}

// message constrains *M to be a proto.Message.
type message[M any] interface {
	*M
	proto.Message
}

// find reads a resource that must exist. Errors are statuses that describe the
// resource by the text what.
func find[M any, P message[M]](r Catalog, kind, what, name string) (P, error) {
	m := P(new(M))
	if found, err := loadOne(r, kind+name, m); err != nil {
		return nil, refusal.Of(err)
	} else if !found {
		return nil, refusal.NotFound(what, name)
	}
	return m, nil
}

func unmarshalResource(key string, raw []byte, m proto.Message) error {
	if err := proto.Unmarshal(raw, m); err != nil {
		return fmt.Errorf("resource %s: %w", key, err)
	}
	return nil
}

// loadAll reads the resources of a kind whose names begin with prefix, sorted
// by name.
func loadAll[M any, P message[M]](r Catalog, kind, prefix string) ([]P, error) {
	found, err := r.Resources(kind + prefix)
	if err != nil {
		return nil, err
	}
	out := make([]P, len(found))
	for i, f := range found {
		out[i] = new(M)
		if err := unmarshalResource(f.Name, f.Value, out[i]); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// loadRecord reads a resource with a pending state, and reports whether it
// exists. The message of a missing resource is empty.
func loadRecord[M any, P message[M]](r Catalog, key string) (*pending.Record[P], bool, error) {
	out := &pending.Record[P]{Message: new(M)}
	raw, err := r.Resource(key)
	if errors.Is(err, engine.ErrResourceNotFound) {
		return out, false, nil
	}
	if err != nil {
		return nil, false, err
	}
	return out, true, decodeRecord(key, raw, out)
}

// findRecord acts like find for a resource with a pending state.
func findRecord[M any, P message[M]](r Catalog, kind, what, name string) (*pending.Record[P], error) {
	out, found, err := loadRecord[M, P](r, kind+name)
	if err != nil {
		return nil, refusal.Of(err)
	} else if !found {
		return nil, refusal.NotFound(what, name)
	}
	return out, nil
}

// loadRecords acts like loadAll for resources with a pending state.
func loadRecords[M any, P message[M]](r Catalog, kind, prefix string) ([]*pending.Record[P], error) {
	found, err := r.Resources(kind + prefix)
	if err != nil {
		return nil, err
	}
	out := make([]*pending.Record[P], len(found))
	for i, f := range found {
		out[i] = &pending.Record[P]{Message: new(M)}
		if err := decodeRecord(f.Name, f.Value, out[i]); err != nil {
			return nil, err
		}
	}
	return out, nil
}

func decodeRecord[P proto.Message](key string, raw []byte, out *pending.Record[P]) error {
	var err error
	if out.State, err = pending.Decode(raw, out.Message); err != nil {
		return fmt.Errorf("resource %s: %w", key, err)
	}
	return nil
}

// messagesOf returns the messages of records.
func messagesOf[P proto.Message](records []*pending.Record[P]) []P {
	out := make([]P, len(records))
	for i, r := range records {
		out[i] = r.Message
	}
	return out
}

// storeRecord writes a resource: m, in its final state, and the pending state until then.
func storeRecord(tx *engine.CatalogTx, key string, m proto.Message, state pending.State) error {
	raw, err := pending.Encode(m, state)
	if err != nil {
		return err
	}
	return tx.PutResource(key, raw)
}

// until returns the state of a record that reaches its message at doneAt.
func (s *Control) until(doneAt time.Time) pending.State {
	if doneAt.After(s.now()) {
		return pending.State{At: doneAt}
	}
	return pending.State{}
}

// store writes m as a resource.
func store(tx *engine.CatalogTx, key string, m proto.Message) error {
	raw, err := proto.MarshalOptions{Deterministic: true}.Marshal(m)
	if err != nil {
		return err
	}
	return tx.PutResource(key, raw)
}

// storeUnder writes m, a resource under an instance or a table, after it set *etag, a field of m,
// to a new etag. It starts the operation of that change, which is done at doneAt.
func (s *Control) storeUnder(
	tx *engine.CatalogTx, kind string, m interface {
		proto.Message
		GetName() string
	}, etag *string, metadata proto.Message, doneAt *timestamppb.Timestamp,
) (*longrunningpb.Operation, error) {
	var err error
	if *etag, err = newEtag(tx); err != nil {
		return nil, err
	}
	if err := store(tx, kind+m.GetName(), m); err != nil {
		return nil, err
	}
	return s.start(tx, resname.First(m.GetName(), 4), metadata, m, doneAt.AsTime())
}

// remove deletes a resource if it exists.
func remove(tx *engine.CatalogTx, key string) error {
	if err := tx.DeleteResource(key); !errors.Is(err, engine.ErrResourceNotFound) {
		return err
	}
	return nil
}

// change runs fn as one change of the catalog. Its errors are statuses. It also
// gives several reads a consistent view: an empty change is not written.
func (s *Control) change(ctx context.Context, fn func(tx *engine.CatalogTx) error) error {
	return refusal.Of(s.DB.UpdateCatalog(ctx, fn))
}

// changed acts like change for an fn with a result. After an error it returns the zero value.
func changed[T any](ctx context.Context, s *Control, fn func(tx *engine.CatalogTx) (T, error)) (T, error) {
	var out T
	err := s.change(ctx, func(tx *engine.CatalogTx) (err error) {
		out, err = fn(tx)
		return err
	})
	if err != nil {
		return *new(T), err
	}
	return out, nil
}

// count increments a stored counter and returns it.
func count(tx *engine.CatalogTx, key string) (int64, error) {
	raw, err := tx.Resource(key)
	var n int64
	switch {
	case errors.Is(err, engine.ErrResourceNotFound):
	case err != nil:
		return 0, err
	default:
		if n, err = strconv.ParseInt(string(raw), 10, 64); err != nil {
			return 0, fmt.Errorf("resource %s: %w", key, err)
		}
	}
	n++
	return n, tx.PutResource(key, strconv.AppendInt(nil, n, 10))
}

// newEtag returns an etag that no earlier call has returned for this store.
func newEtag(tx *engine.CatalogTx) (string, error) {
	n, err := count(tx, etagCount)
	return base64.StdEncoding.EncodeToString(binary.BigEndian.AppendUint64(nil, uint64(n))), err
}

// checkEtag returns an error if the etag of a request differs from that of the
// resource. It accepts an empty etag.
func checkEtag(name, given, is string) error {
	if given != "" && given != is {
		return refusal.Aborted("%s has changed: its etag is not %q.", name, given)
	}
	return nil
}

// removeAll deletes the policy of a resource and everything below the resource. It keeps tables,
// materialized views, backups, snapshots and operations. This covers all that UndeleteTable would
// restore with a table.
func removeAll(tx *engine.CatalogTx, name string) error {
	for _, kind := range []string{kindCluster, kindMemoryLayer, kindAppProfile, kindLogicalView, KindAuthorizedView, kindSchemaBundle, KindPartitions, KindPolicy} {
		under, err := tx.Resources(kind + name + "/")
		if err != nil {
			return err
		}
		for _, u := range under {
			if err := tx.DeleteResource(u.Name); err != nil {
				return err
			}
		}
	}
	return errors.Join(remove(tx, KindPartitions+name), remove(tx, KindPolicy+name))
}

// maskPaths returns the paths of a mask. It returns an error if the mask is empty, or names "*"
// or a path that is neither an allowed field nor below one.
func maskPaths(mask *fieldmaskpb.FieldMask, allowed ...string) ([]string, error) {
	if len(mask.GetPaths()) == 0 {
		return nil, refusal.Invalid("update_mask", "A non-empty 'update_mask' must be specified")
	}
	for _, path := range mask.GetPaths() {
		if path == "*" {
			return nil, refusal.Invalid("update_mask", "the wildcard * is not supported; name the fields")
		}
		ok := false
		for _, a := range allowed {
			ok = ok || path == a || strings.HasPrefix(path, a+".")
		}
		if !ok {
			return nil, refusal.Invalid("update_mask", "%q cannot be updated; expected one of %s", path, strings.Join(allowed, ", "))
		}
	}
	return mask.GetPaths(), nil
}

// applyMask copies the fields at paths from src to dst. It clears fields that
// src does not have.
func applyMask(dst, src proto.Message, paths []string) error {
	for _, path := range paths {
		if !copyField(dst.ProtoReflect(), src.ProtoReflect(), path) {
			return refusal.Invalid("update_mask", "%q is not a field of %s", path, dst.ProtoReflect().Descriptor().Name())
		}
	}
	return nil
}

// KeepRecords makes the tables whose names begin with a prefix record their changes for
// replication, and retain the records for keep; 0 stops the recording.
func (s *Control) KeepRecords(ctx context.Context, tables string, keep time.Duration) error {
	return s.change(ctx, func(tx *engine.CatalogTx) error {
		for _, t := range tx.Tables(tables) {
			if _, err := tx.UpdateTable(t.Name, func(t *engine.Table) error {
				t.Journal[engine.JournalReplication].Keep = keep
				return nil
			}); err != nil {
				return err
			}
		}
		return nil
	})
}

// Resource is a created resource other than a table.
type Resource struct {
	Kind    string // "instance" and so on
	Name    string // resource name; for a policy, the name of the resource it governs
	Message proto.Message
}

// Resources returns the created resources, grouped by kind and sorted by name. It omits tables,
// operations, and resources of deleted tables.
func (s *Control) Resources() ([]Resource, error) {
	now := s.now()
	var out []Resource
	for _, kind := range []struct {
		prefix, kind string
		shown        func(key string, raw []byte) (proto.Message, error)
	}{
		{kindInstance, "instance", shownRecord(func(r *instancedef.StoredInstance) *btapb.Instance { return instancedef.InstanceAt(r, now) })},
		{kindCluster, "cluster", shownRecord(func(r *instancedef.StoredCluster) *btapb.Cluster { return instancedef.ClusterAt(r, now) })},
		{kindMemoryLayer, "memory layer", shownRecord(func(r *storedMemoryLayer) *btapb.MemoryLayer { return r.Message })},
		{kindAppProfile, "app profile", shownMessage(&btapb.AppProfile{})},
		{kindLogicalView, "logical view", shownMessage(&btapb.LogicalView{})},
		{kindMaterializedView, "materialized view", shownMessage(&btapb.MaterializedView{})},
		{KindAuthorizedView, "authorized view", shownMessage(&btapb.AuthorizedView{})},
		{kindSchemaBundle, "schema bundle", shownMessage(&btapb.SchemaBundle{})},
		{KindBackup, "backup", func(key string, raw []byte) (proto.Message, error) {
			b := &btapb.Backup{}
			err := unmarshalResource(key, raw, b)
			return BackupAt(b, now), err
		}},
		{KindSnapshot, "snapshot", shownRecord(func(r *storedSnapshot) *btapb.Snapshot { return shownSnapshot(r, now) })},
		{KindPolicy, "policy", shownMessage(&iampb.Policy{})},
	} {
		found, err := s.DB.Resources(kind.prefix)
		if err != nil {
			return nil, err
		}
		for _, r := range found {
			name := strings.TrimPrefix(r.Name, kind.prefix)
			if strings.Contains(name, "/tables/") {
				if _, err := s.DB.Table(resname.First(name, 6)); err != nil {
					continue
				}
			}
			m, err := kind.shown(r.Name, r.Value)
			if err != nil {
				return nil, err
			}
			out = append(out, Resource{Kind: kind.kind, Name: name, Message: m})
		}
	}
	return out, nil
}

// shownMessage returns a decoder for messages of the type of m.
func shownMessage(m proto.Message) func(string, []byte) (proto.Message, error) {
	return func(key string, raw []byte) (proto.Message, error) {
		out := m.ProtoReflect().New().Interface()
		return out, unmarshalResource(key, raw, out)
	}
}

// shownRecord returns a decoder for records that converts them by show.
func shownRecord[M any, P message[M]](show func(*pending.Record[P]) P) func(string, []byte) (proto.Message, error) {
	return func(key string, raw []byte) (proto.Message, error) {
		out := &pending.Record[P]{Message: new(M)}
		if err := decodeRecord(key, raw, out); err != nil {
			return nil, err
		}
		return show(out), nil
	}
}
