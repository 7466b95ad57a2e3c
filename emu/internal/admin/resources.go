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
	"google.golang.org/protobuf/types/known/fieldmaskpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/tabletop-emu/tabletop/emu/internal/instancedef"
	"github.com/tabletop-emu/tabletop/emu/internal/pending"
	"github.com/tabletop-emu/tabletop/emu/internal/refusal"
	"github.com/tabletop-emu/tabletop/emu/internal/resname"
	"github.com/tabletop-emu/tabletop/engine"
)

// What the API manages beside tables lies in the engine as resources: the
// serialized message of the API, under its kind and its name. A change, be it
// of tables, of resources or of both, runs as one engine.UpdateCatalog: what was
// checked still holds when it is made, and all of it is there afterwards or
// none, also over a crash.
const (
	KindProject        = "project/"          // a project in which an instance was created: nothing
	KindInstance       = "instance/"         // btapb.Instance
	KindCluster        = "cluster/"          // btapb.Cluster
	KindMemoryLayer    = "memoryLayer/"      // btapb.MemoryLayer, once it was set
	KindAppProfile     = "appProfile/"       // btapb.AppProfile
	KindAuthorizedView = "authorizedView/"   // btapb.AuthorizedView
	KindSchemaBundle   = "schemaBundle/"     // btapb.SchemaBundle
	KindBackup         = "backup/"           // btapb.Backup, with its size from the beginning
	KindSnapshot       = "snapshot/"         // btapb.Snapshot
	KindPartitions     = "changePartitions/" // a Partitions, by the name of its table
	KindPolicy         = "policy/"           // iampb.Policy, by the name of what it governs
	KindOperation      = "operation/"        // longrunningpb.Operation, by its number in 20 digits
	operationCount     = "operations"        // the number of the newest operation, a decimal
	etagCount          = "etags"             // the number of the newest etag, a decimal
)

// Catalog reads tables and resources: as they are, or inside a change.
type Catalog interface {
	Table(name string) (*engine.Table, error)
	Tables(prefix string) []*engine.Table
	Resource(name string) ([]byte, error)
	Resources(prefix string) ([]engine.Resource, error)
}

// loadOne reads a resource into m and reports whether it is there.
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

// message is a message of type M that can be changed.
type message[M any] interface {
	*M
	proto.Message
}

// find reads a resource that must be there, and answers with a status. what says
// what it is.
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

// loadRecord reads a resource that reaches a state at a time, and reports whether it is there.
// Its message is empty if not.
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

// findRecord is find for a resource that reaches a state at a time.
func findRecord[M any, P message[M]](r Catalog, kind, what, name string) (*pending.Record[P], error) {
	out, found, err := loadRecord[M, P](r, kind+name)
	if err != nil {
		return nil, refusal.Of(err)
	} else if !found {
		return nil, refusal.NotFound(what, name)
	}
	return out, nil
}

// loadRecords is loadAll for resources that reach a state at a time.
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

// storeRecord writes a resource that reaches the state of m at a time.
func storeRecord(tx *engine.CatalogTx, key string, m proto.Message, state pending.State) error {
	raw, err := pending.Encode(m, state)
	if err != nil {
		return err
	}
	return tx.PutResource(key, raw)
}

// until returns the state of a record that is as its message says from doneAt on.
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

// storeUnder writes m, which lies under a table, with a new etag, and records the
// operation that makes it so, done at a time.
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

// remove deletes a resource, if it is there.
func remove(tx *engine.CatalogTx, key string) error {
	if err := tx.DeleteResource(key); !errors.Is(err, engine.ErrResourceNotFound) {
		return err
	}
	return nil
}

// change runs fn as one change of the catalog and answers with a status. What
// only reads, and more than once, reads one moment by it: a change of nothing
// is not written.
func (s *Control) change(ctx context.Context, fn func(tx *engine.CatalogTx) error) error {
	return refusal.Of(s.DB.UpdateCatalog(ctx, fn))
}

// count adds one to a stored counter and returns it.
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

// newEtag returns an etag that no other content has, of the same resource or of
// an earlier one of its name.
func newEtag(tx *engine.CatalogTx) (string, error) {
	n, err := count(tx, etagCount)
	return base64.StdEncoding.EncodeToString(binary.BigEndian.AppendUint64(nil, uint64(n))), err
}

// checkEtag refuses the etag of a request that is not the one of the resource.
// An empty one is not checked.
func checkEtag(name, given, is string) error {
	if given != "" && given != is {
		return refusal.Aborted("%s has changed: its etag is not %q.", name, given)
	}
	return nil
}

// removeAll deletes what a resource of that name has, and all that lies under it:
// its policy, and everything of a table that UndeleteTable would bring back with
// it, or of an instance but its tables.
func removeAll(tx *engine.CatalogTx, name string) error {
	for _, kind := range []string{KindCluster, KindMemoryLayer, KindAppProfile, KindAuthorizedView, KindSchemaBundle, KindPartitions, KindPolicy} {
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

// maskPaths returns the paths of the mask in a request, which must have one.
// allowed are the fields that can be updated; a path may go deeper.
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

// applyMask replaces the fields of dst that paths name by those of src. A
// field that src does not have is cleared.
func applyMask(dst, src proto.Message, paths []string) error {
	for _, path := range paths {
		if !copyField(dst.ProtoReflect(), src.ProtoReflect(), path) {
			return refusal.Invalid("update_mask", "%q is not a field of %s", path, dst.ProtoReflect().Descriptor().Name())
		}
	}
	return nil
}

// KeepRecords makes tables record their changes for replication, or no longer.
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

// Resource is a created resource that is not a table.
type Resource struct {
	Kind    string // "instance" and so on
	Name    string // its resource name; for a policy, that of the resource it governs
	Message proto.Message
}

// Resources returns all resources of the kinds that the API shows, by kind and name, but for
// those of deleted tables.
func (s *Control) Resources() ([]Resource, error) {
	now := s.now()
	var out []Resource
	for _, kind := range []struct {
		prefix, kind string
		shown        func(key string, raw []byte) (proto.Message, error)
	}{
		{KindInstance, "instance", shownRecord(func(r *instancedef.StoredInstance) *btapb.Instance { return instancedef.InstanceAt(r, now) })},
		{KindCluster, "cluster", shownRecord(func(r *instancedef.StoredCluster) *btapb.Cluster { return instancedef.ClusterAt(r, now) })},
		{KindMemoryLayer, "memory layer", shownRecord(func(r *storedMemoryLayer) *btapb.MemoryLayer { return r.Message })},
		{KindAppProfile, "app profile", shownMessage(&btapb.AppProfile{})},
		{KindAuthorizedView, "authorized view", shownMessage(&btapb.AuthorizedView{})},
		{KindSchemaBundle, "schema bundle", shownMessage(&btapb.SchemaBundle{})},
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

// shownMessage returns a function that decodes messages of the type of m.
func shownMessage(m proto.Message) func(string, []byte) (proto.Message, error) {
	return func(key string, raw []byte) (proto.Message, error) {
		out := m.ProtoReflect().New().Interface()
		return out, unmarshalResource(key, raw, out)
	}
}

// shownRecord returns a function that decodes records and shows them.
func shownRecord[M any, P message[M]](show func(*pending.Record[P]) P) func(string, []byte) (proto.Message, error) {
	return func(key string, raw []byte) (proto.Message, error) {
		out := &pending.Record[P]{Message: new(M)}
		if err := decodeRecord(key, raw, out); err != nil {
			return nil, err
		}
		return show(out), nil
	}
}
