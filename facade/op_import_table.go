package facade

import (
	"context"

	"github.com/tabletop-emu/tabletop/facade/internal/bucketjobs"
	"github.com/tabletop-emu/tabletop/facade/internal/request"
	"github.com/tabletop-emu/tabletop/facade/internal/tabledef"
	"github.com/tabletop-emu/tabletop/facade/internal/tablespec"
	"github.com/tabletop-emu/tabletop/facade/internal/wire"
)

// tableCreationParameters describes the table that an import creates.
type tableCreationParameters struct {
	TableName              *string
	AttributeDefinitions   []tablespec.AttributeDefinition
	KeySchema              []tablespec.KeySchemaElement
	BillingMode            *string
	ProvisionedThroughput  *tablespec.ProvisionedThroughput
	OnDemandThroughput     *tabledef.OnDemandThroughput
	SSESpecification       *tablespec.SSESpecification
	GlobalSecondaryIndexes []tablespec.GlobalSecondaryIndex
	VectorIndexes          []tablespec.VectorIndex
}

// create returns the equivalent request of CreateTable.
func (p *tableCreationParameters) create() *createTableInput {
	return &createTableInput{
		TableName: p.TableName, AttributeDefinitions: p.AttributeDefinitions, KeySchema: p.KeySchema, BillingMode: p.BillingMode,
		ProvisionedThroughput: p.ProvisionedThroughput, OnDemandThroughput: p.OnDemandThroughput, SSESpecification: p.SSESpecification,
		GlobalSecondaryIndexes: p.GlobalSecondaryIndexes, VectorIndexes: p.VectorIndexes,
	}
}

// importTable starts an import of a bucket's files into a new table.
// https://docs.aws.amazon.com/amazondynamodb/latest/APIReference/API_ImportTable.html
func (s *Server) importTable(ctx context.Context, in *bucketjobs.ImportRequest) (*bucketjobs.ImportOutput, error) {
	return throughBuckets(ctx, s, "ImportTable", in, func(b *bucketjobs.Service, ctx context.Context, v *request.Validator, in *bucketjobs.ImportRequest) (*bucketjobs.ImportOutput, error) {
		return s.importInto(ctx, b, v, in)
	})
}

// importInto checks a request of ImportTable, including the new table that it describes, and
// starts the import.
func (s *Server) importInto(ctx context.Context, b *bucketjobs.Service, checks *request.Validator, in *bucketjobs.ImportRequest) (*bucketjobs.ImportOutput, error) {
	v := &validator{*checks}
	in.Constraints(&v.Validator)
	var given tableCreationParameters
	if isGiven(in.TableCreationParameters) {
		const path = "TableCreationParameters."
		if err := wire.Decode(in.TableCreationParameters, &given); err != nil {
			return nil, err
		}
		if err := given.create().unsupported("ImportTable"); err != nil {
			return nil, err
		}
		if v.Required(path+"TableName", given.TableName != nil); given.TableName != nil {
			v.Name(path+"TableName", *given.TableName)
		}
		given.create().constraints(v, path)
	}
	if err := v.Constrained(); err != nil {
		return nil, err
	}
	def, err := s.tableOf(ctx, *given.TableName, given.create())
	if err != nil {
		return nil, err
	}
	return b.Import(ctx, in, def)
}

func (s *Server) describeImport(ctx context.Context, in *bucketjobs.DescribeImportRequest) (*bucketjobs.ImportOutput, error) {
	return throughBuckets(ctx, s, "DescribeImport", in, (*bucketjobs.Service).DescribeImport)
}

func (s *Server) listImports(ctx context.Context, in *bucketjobs.ListImportsRequest) (*bucketjobs.ListImportsOutput, error) {
	return throughBuckets(ctx, s, "ListImports", in, (*bucketjobs.Service).ListImports)
}
