package engine

import (
	"context"
	"errors"
	"time"
)

// DB is a store.
type DB struct{}

var errStub = errors.New("under construction")

func Open(o Options) (*DB, error)                                      { return nil, errStub }
func (d *DB) Close() error                                             { return errStub }
func (d *DB) CreateTable(ctx context.Context, t Table) (*Table, error) { return nil, errStub }
func (d *DB) Table(name string) (*Table, error)                        { return nil, errStub }
func (d *DB) Tables(prefix string) []*Table                            { return nil }
func (d *DB) UpdateTable(ctx context.Context, name string, fn func(*Table) error) (*Table, error) {
	return nil, errStub
}
func (d *DB) ModifyFamilies(ctx context.Context, name string, changes []FamilyChange) (*Table, error) {
	return nil, errStub
}
func (d *DB) DeleteTable(ctx context.Context, name string) error          { return errStub }
func (d *DB) DropRows(ctx context.Context, table string, span Span) error { return errStub }
func (d *DB) Mutate(ctx context.Context, table string, row []byte, muts []Mutation) error {
	return errStub
}
func (d *DB) ReadModifyWrite(ctx context.Context, table string, row []byte, rules []RuleReadModifyWrite) ([]Cell, error) {
	return nil, errStub
}
func (d *DB) Update(ctx context.Context, table string, row []byte, fn func(tx *RowTx) error) error {
	return errStub
}
func (d *DB) Scan(ctx context.Context, table string, o ScanOptions) (*Scan, error) {
	return nil, errStub
}
func (d *DB) SampleRowKeys(ctx context.Context, table string) ([]Sample, error) { return nil, errStub }
func (d *DB) RunGC(ctx context.Context) (GCStats, error)                        { return GCStats{}, errStub }

var _ api = (*DB)(nil)

type scan struct{}
type rowTx struct{}

func (s *Scan) NextRow() bool                              { return false }
func (s *Scan) Row() []byte                                { return nil }
func (s *Scan) NextCell() bool                             { return false }
func (s *Scan) Cell() *Cell                                { return nil }
func (s *Scan) SkipColumn()                                {}
func (s *Scan) SkipFamily()                                {}
func (s *Scan) SeekColumn(family string, qualifier []byte) {}
func (s *Scan) Rewind()                                    {}
func (s *Scan) Err() error                                 { return nil }
func (s *Scan) Close() error                               { return nil }
func (tx *RowTx) Scan() *Scan                              { return nil }
func (tx *RowTx) Mutate(muts []Mutation) error             { return nil }
func (tx *RowTx) Now() time.Time                           { return time.Time{} }
