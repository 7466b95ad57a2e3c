package admin

import (
	"context"
	"errors"
	"slices"

	btapb "cloud.google.com/go/bigtable/admin/apiv2/adminpb"
	"cloud.google.com/go/longrunning/autogen/longrunningpb"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/emptypb"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/tabletop-emu/tabletop/emu/internal/bundle"
	"github.com/tabletop-emu/tabletop/emu/internal/limits"
	"github.com/tabletop-emu/tabletop/emu/internal/refusal"
	"github.com/tabletop-emu/tabletop/emu/internal/resname"
	"github.com/tabletop-emu/tabletop/engine"
)

// A schema bundle is a resource under its table, with the same life as an
// authorized view. Package bundle checks its content, which is returned
// unchanged.

// CreateSchemaBundle adds a schema bundle to a table. The bundle is a descriptor set without
// missing dependencies, or a list of self-contained Avro schemas.
func (s tableAdminService) CreateSchemaBundle(ctx context.Context, req *btapb.CreateSchemaBundleRequest) (*longrunningpb.Operation, error) {
	if err := resname.CheckTable("parent", req.GetParent()); err != nil {
		return nil, err
	}
	if err := s.Limits.CheckID("schema_bundle_id", "an id", req.GetSchemaBundleId()); err != nil {
		return nil, err
	}
	b := &btapb.SchemaBundle{Name: req.GetParent() + "/schemaBundles/" + req.GetSchemaBundleId()}
	if given := req.GetSchemaBundle(); given != nil {
		b.Type = proto.CloneOf(given).GetType()
	}
	if _, err := s.checkBundle(b); err != nil {
		return nil, err
	}
	began := s.now()
	now, doneAt := timestamppb.New(began), timestamppb.New(began.Add(s.Delay))
	return changed(ctx, s.Control, func(tx *engine.CatalogTx) (*longrunningpb.Operation, error) {
		if _, err := FindTable(tx, "parent", req.GetParent()); err != nil {
			return nil, err
		}
		all, err := tx.Resources(kindSchemaBundle + req.GetParent() + "/")
		if err != nil {
			return nil, err
		}
		for _, r := range all {
			if r.Name == kindSchemaBundle+b.GetName() {
				return nil, refusal.Exists("Schema bundle", b.GetName())
			}
		}
		if s.Limits.Exceeds(len(all)+1, limits.MaxSchemaBundles) {
			return nil, refusal.TooManyBundles(req.GetParent(), limits.MaxSchemaBundles)
		}
		return s.storeUnder(tx, kindSchemaBundle, b, &b.Etag, &btapb.CreateSchemaBundleMetadata{Name: b.GetName(), StartTime: now, EndTime: doneAt}, doneAt)
	})
}

// checkBundle checks the content of a bundle, and returns its protobuf schema; nil for Avro.
func (s *Control) checkBundle(b *btapb.SchemaBundle) (*bundle.Schema, error) {
	const field = "schema_bundle"
	if err := s.Limits.Check(proto.Size(b), limits.MaxSchemaBundleBytes, field, "bytes"); err != nil {
		return nil, err
	}
	switch held := b.GetType().(type) {
	case *btapb.SchemaBundle_ProtoSchema:
		schema, err := bundle.Proto(held.ProtoSchema.GetProtoDescriptors())
		if err != nil {
			return nil, refusal.Invalid(field+".proto_schema.proto_descriptors", "%v", err)
		}
		return schema, nil
	case *btapb.SchemaBundle_AvroSchema:
		schemas := held.AvroSchema.GetJsonSchemas()
		if len(schemas) == 0 {
			return nil, refusal.Invalid(field+".avro_schema.json_schemas", "must specify at least one schema")
		}
		for i, schema := range schemas {
			if err := bundle.Avro(schema); err != nil {
				return nil, refusal.Invalid(refusal.Element(field+".avro_schema.json_schemas", i), "%v", err)
			}
		}
		return nil, nil
	default:
		return nil, refusal.Invalid(field+".type", "neither proto_schema nor avro_schema is set")
	}
}

// UpdateSchemaBundle replaces the schemas of a bundle, whose kind cannot
// change. A descriptor set must be compatible with its predecessor, unless
// ignore_warnings is set.
func (s tableAdminService) UpdateSchemaBundle(ctx context.Context, req *btapb.UpdateSchemaBundleRequest) (*longrunningpb.Operation, error) {
	given := req.GetSchemaBundle()
	if err := resname.CheckSchemaBundle("schema_bundle.name", given.GetName()); err != nil {
		return nil, err
	}
	is, err := s.checkBundle(given)
	if err != nil {
		return nil, err
	}
	if len(req.GetUpdateMask().GetPaths()) > 0 {
		allowed := []string{"avro_schema", "avro_schema.json_schemas"}
		if is != nil {
			allowed = []string{"proto_schema", "proto_schema.proto_descriptors"}
		}
		for _, p := range req.GetUpdateMask().GetPaths() {
			if !slices.Contains(allowed, p) {
				return nil, refusal.Invalid("update_mask", "%q does not match the schemas in schema_bundle; expected %s", p, allowed[0])
			}
		}
	}
	began := s.now()
	now, doneAt := timestamppb.New(began), timestamppb.New(began.Add(s.Delay))
	return changed(ctx, s.Control, func(tx *engine.CatalogTx) (*longrunningpb.Operation, error) {
		b, err := FindSchemaBundle(tx, "schema_bundle.name", given.GetName())
		if err != nil {
			return nil, err
		}
		if err := checkEtag(b.GetName(), given.GetEtag(), b.GetEtag()); err != nil {
			return nil, err
		}
		if (b.GetProtoSchema() != nil) != (is != nil) {
			return nil, refusal.Invalid("schema_bundle.type", "a bundle cannot change between protobuf and Avro schemas")
		}
		if is != nil && !req.GetIgnoreWarnings() {
			was, err := bundle.Proto(b.GetProtoSchema().GetProtoDescriptors())
			if err != nil {
				return nil, err
			}
			if err := is.Compatible(was); err != nil {
				return nil, refusal.Precondition("The schemas are not compatible with those of %s: %v; set ignore_warnings to replace them anyway.", b.GetName(), err)
			}
		}
		b.Type = proto.CloneOf(given).GetType()
		return s.storeUnder(tx, kindSchemaBundle, b, &b.Etag, &btapb.UpdateSchemaBundleMetadata{Name: b.GetName(), StartTime: now, EndTime: doneAt}, doneAt)
	})
}

// GetSchemaBundle returns a bundle.
func (s tableAdminService) GetSchemaBundle(_ context.Context, req *btapb.GetSchemaBundleRequest) (*btapb.SchemaBundle, error) {
	return FindSchemaBundle(s.DB, "name", req.GetName())
}

// ListSchemaBundles returns the bundles of a table, sorted by name, in pages.
func (s tableAdminService) ListSchemaBundles(ctx context.Context, req *btapb.ListSchemaBundlesRequest) (*btapb.ListSchemaBundlesResponse, error) {
	resp := &btapb.ListSchemaBundlesResponse{}
	err := s.change(ctx, func(tx *engine.CatalogTx) error {
		if _, err := FindTable(tx, "parent", req.GetParent()); err != nil {
			return err
		}
		var err error
		resp.SchemaBundles, err = loadAll[btapb.SchemaBundle](tx, kindSchemaBundle, req.GetParent()+"/schemaBundles/")
		return err
	})
	if err != nil {
		return nil, err
	}
	resp.SchemaBundles, resp.NextPageToken, err = page(resp.GetSchemaBundles(), req.GetPageSize(), req.GetPageToken(), (*btapb.SchemaBundle).GetName)
	if err != nil {
		return nil, err
	}
	return resp, nil
}

// DeleteSchemaBundle deletes a bundle and its IAM policy.
func (s tableAdminService) DeleteSchemaBundle(ctx context.Context, req *btapb.DeleteSchemaBundleRequest) (*emptypb.Empty, error) {
	return empty(s.change(ctx, func(tx *engine.CatalogTx) error {
		b, err := FindSchemaBundle(tx, "name", req.GetName())
		if err != nil {
			return err
		}
		if err := checkEtag(b.GetName(), req.GetEtag(), b.GetEtag()); err != nil {
			return err
		}
		return errors.Join(tx.DeleteResource(kindSchemaBundle+b.GetName()), remove(tx, KindPolicy+b.GetName()))
	}))
}

// FindSchemaBundle returns the bundle with the given name; errors name the request field. The
// bundles of a deleted table are not found until UndeleteTable.
func FindSchemaBundle(r Catalog, field, name string) (*btapb.SchemaBundle, error) {
	if err := resname.CheckSchemaBundle(field, name); err != nil {
		return nil, err
	}
	if _, err := r.Table(resname.First(name, 6)); err != nil {
		return nil, refusal.Of(err)
	}
	return find[btapb.SchemaBundle](r, kindSchemaBundle, "Schema bundle", name)
}
