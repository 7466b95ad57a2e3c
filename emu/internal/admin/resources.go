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

// store writes m as a resource.
func store(tx *engine.CatalogTx, key string, m proto.Message) error {
	raw, err := proto.MarshalOptions{Deterministic: true}.Marshal(m)
	if err != nil {
		return err
	}
	return tx.PutResource(key, raw)
}

// storeUntil writes m, which is as it says from doneAt on alone; see package pending.
func (s *Control) storeUntil(tx *engine.CatalogTx, key string, m proto.Message, doneAt time.Time) error {
	if doneAt.After(s.now()) {
		pending.Set(m, doneAt)
	}
	defer pending.Take(m)
	return store(tx, key, m)
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
	var out []Resource
	for _, kind := range []struct {
		prefix, kind string
		message      proto.Message
	}{
		{KindInstance, "instance", &btapb.Instance{}},
		{KindCluster, "cluster", &btapb.Cluster{}},
		{KindMemoryLayer, "memory layer", &btapb.MemoryLayer{}},
		{KindAppProfile, "app profile", &btapb.AppProfile{}},
		{KindAuthorizedView, "authorized view", &btapb.AuthorizedView{}},
		{KindSchemaBundle, "schema bundle", &btapb.SchemaBundle{}},
		{KindBackup, "backup", &btapb.Backup{}},
		{KindSnapshot, "snapshot", &btapb.Snapshot{}},
		{KindPolicy, "policy", &iampb.Policy{}},
	} {
		found, err := s.DB.Resources(kind.prefix)
		if err != nil {
			return nil, err
		}
		for _, r := range found {
			if name := strings.TrimPrefix(r.Name, kind.prefix); strings.Contains(name, "/tables/") {
				if _, err := s.DB.Table(resname.First(name, 6)); err != nil {
					continue
				}
			}
			m := kind.message.ProtoReflect().New().Interface()
			if err := unmarshalResource(r.Name, r.Value, m); err != nil {
				return nil, err
			}
			switch x := m.(type) {
			case *btapb.Cluster:
				instancedef.ClusterAt(x, s.now())
			case *btapb.Instance:
				instancedef.InstanceAt(x, s.now())
			case *btapb.Backup:
				m = BackupAt(x, s.now())
			case *btapb.Snapshot:
				shownSnapshot(x, s.now())
			case *btapb.MemoryLayer:
				pending.Take(x)
			}
			out = append(out, Resource{Kind: kind.kind, Name: strings.TrimPrefix(r.Name, kind.prefix), Message: m})
		}
	}
	return out, nil
}
