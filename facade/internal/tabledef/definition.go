package tabledef

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/tabletop-emu/tabletop/facade/attr"
)

// Statuses of tables and indexes, in DynamoDB's words.
const (
	StatusCreating = "CREATING"
	StatusActive   = "ACTIVE"
	StatusUpdating = "UPDATING"
	StatusDeleting = "DELETING"
)

// Kinds of index projections, in DynamoDB's words.
const (
	ProjectAll      = "ALL"
	ProjectKeysOnly = "KEYS_ONLY"
	ProjectInclude  = "INCLUDE"
)

// Table is the definition of a table, as the catalog stores it. A *Table that the store
// returns is shared and must not be modified. UpdateTable passes a copy to its function.
type Table struct {
	Name string `json:"name"`
	ID   string `json:"id"` // TableId in the form of a UUID; set by CreateTable
	// BigtableTable is the id of the Bigtable table that holds the rows. CreateTable sets
	// it.
	BigtableTable string `json:"bigtableTable"`
	// Mapped means that a mapping lays out the rows of the table. CreateTable sets it.
	Mapped bool `json:"mapped,omitempty"`
	// Note identifies that mapping, in the form that noteOf returns. The store sets it.
	Note       map[string][]byte `json:"note,omitempty"`
	Key        attr.KeySchema    `json:"key"`
	Attributes []attr.KeyAttr    `json:"attributes"` // value of AttributeDefinitions, in the given order
	Status     string            `json:"status"`     // set by the store
	Created    time.Time         `json:"created"`    // set by CreateTable
	// Transition temporarily overrides Status.
	Transition Transition `json:"transition,omitzero"`
	// Encrypting is the last change to the encryption.
	Encrypting  Encrypting `json:"encrypting,omitzero"`
	BillingMode string     `json:"billingMode,omitempty"`
	Provisioned
	Class string `json:"class,omitempty"`
	// ClassChanged is the time of the last update that set Class, or zero.
	ClassChanged time.Time `json:"classChanged,omitzero"`
	// ClassChangedBefore is the time of the update before that one.
	ClassChangedBefore time.Time `json:"classChangedBefore,omitzero"`
	DeletionProtection bool      `json:"deletionProtection,omitempty"`
	StreamEnabled      bool      `json:"streamEnabled,omitempty"`
	StreamView         string    `json:"streamView,omitempty"` // value of StreamViewType
	// StreamLabel is the label of the newest stream, or "" without a stream.
	StreamLabel string `json:"streamLabel,omitempty"`
	// Log is the change log of the table, or nil if the table never had one. The store
	// sets it.
	Log *Log `json:"log,omitempty"`
	// Streams lists all known streams, with the newest last. The store sets it.
	Streams []Stream `json:"streams,omitempty"`
	// Kinesis lists the current and former Kinesis data streams for changes. At most one
	// of them is current.
	Kinesis []KinesisDestination `json:"kinesis,omitempty"`
	// Recovery is set while point-in-time recovery is on.
	Recovery *Recovery `json:"recovery,omitempty"`
	// Copies lists the jobs that copy a past state of the table.
	Copies []string `json:"copies,omitempty"`
	// Restore is the source of a restored table.
	Restore *Restore `json:"restore,omitempty"`
	// Deleted is the time at which the table was deleted. The store sets it.
	Deleted time.Time `json:"deleted,omitzero"`
	// OnDemandSince is the time at which the billing mode last changed to on-demand. It
	// is zero if the mode never changed.
	OnDemandSince time.Time  `json:"onDemandSince,omitzero"`
	Throughput    Throughput `json:"throughput,omitzero"`
	// TTLAttribute is the attribute that holds the expiry time, or "" if items do not
	// expire.
	TTLAttribute string `json:"ttlAttribute,omitempty"`
	// TTLChanged is the time at which TTLAttribute last changed. It is zero if it never
	// changed.
	TTLChanged time.Time `json:"ttlChanged,omitzero"`
	// TTLTable is the id of the Bigtable table with the due times. The store sets it.
	TTLTable string `json:"ttlTable,omitempty"`
	// TTLFilling means that the due times of older items are still missing. The store
	// sets it.
	TTLFilling bool `json:"ttlFilling,omitempty"`
	// TTLFillAgain is like Index.FillAgain, but applies to the due times.
	TTLFillAgain time.Time         `json:"ttlFillAgain,omitzero"`
	Tags         map[string]string `json:"tags,omitempty"`
	// Policies holds the policies of the table, under "", and of its streams, under their
	// labels.
	Policies map[string]Policy `json:"policies,omitempty"`
	// Insights holds the settings of the table, under "", and of its indexes, under their
	// names.
	Insights map[string]Insights `json:"insights,omitempty"`
	Indexes  []Index             `json:"indexes,omitempty"` // local and global indexes, in the given order
	// Leaving lists the deleted indexes that still appear as DELETING. The store sets it.
	Leaving []Index `json:"leaving,omitempty"`
	// Vectors lists the vector indexes in the given order, including deleted ones that
	// still appear as DELETING.
	Vectors []VectorIndex `json:"vectors,omitempty"`
	// Extra holds request members that are only returned in descriptions, by name, as
	// JSON.
	Extra map[string]string `json:"extra,omitempty"`
}

// Restore identifies the source of a restored table.
type Restore struct {
	Job       string    `json:"job,omitempty"`       // id of the restore job; "" after all items are restored
	BackupARN string    `json:"backupArn,omitempty"` // ARN of the backup; "" if the source is a point in time
	TableARN  string    `json:"tableArn"`
	Time      time.Time `json:"time"`
}

// Restoring reports whether the table is still being restored.
func (t *Table) Restoring() bool { return t.Restore != nil && t.Status == StatusCreating }

// OnDemandThroughput limits the throughput of an on-demand table or index. In a request,
// -1 removes a limit.
type OnDemandThroughput struct {
	MaxReadRequestUnits  *int64 `json:",omitzero"`
	MaxWriteRequestUnits *int64 `json:",omitzero"`
}

// WarmThroughput is the throughput that a table or an index can handle immediately.
type WarmThroughput struct {
	ReadUnitsPerSecond  *int64 `json:",omitzero"`
	WriteUnitsPerSecond *int64 `json:",omitzero"`
}

// Throughput is the on-demand and warm throughput of a request, a table or an index.
type Throughput struct {
	OnDemand *OnDemandThroughput `json:"onDemandThroughput,omitempty"`
	Warm     *WarmThroughput     `json:"warmThroughput,omitempty"`
}

// Index is a secondary index of a table.
type Index struct {
	Name       string   `json:"name"`
	Global     bool     `json:"global"`
	Key        IndexKey `json:"key"`
	Projection string   `json:"projection"`       // ProjectAll, ProjectKeysOnly or ProjectInclude
	NonKey     []string `json:"nonKey,omitempty"` // attributes of ProjectInclude
	Provisioned
	Throughput Throughput `json:"throughput,omitzero"`
	// The store sets the following fields.
	Status        string `json:"status"`
	Backfilling   bool   `json:"backfilling,omitempty"`
	BigtableTable string `json:"bigtableTable"`
	// View means that BigtableTable is the id of a materialized view, which Bigtable keeps.
	View bool `json:"view,omitempty"`
	// Transition temporarily overrides Status.
	Transition Transition `json:"transition,omitzero"`
	// FillFrom is the time from which descriptions show an added index as backfilling. It is
	// zero for an index that was created with its table.
	FillFrom time.Time `json:"fillFrom,omitzero"`
	// FillAgain is the time from which no process uses a definition without the index, so
	// that the index can be completed. After that it is zero.
	FillAgain time.Time `json:"fillAgain,omitzero"`
}

// Index returns the index with the given name, or nil.
func (t *Table) Index(name string) *Index {
	for i := range t.Indexes {
		if t.Indexes[i].Name == name {
			return &t.Indexes[i]
		}
	}
	return nil
}

// FillTimes returns the times at which indexes and due times must be filled again.
func (t *Table) FillTimes() map[string]time.Time {
	times := map[string]time.Time{} // by Bigtable table
	for i := range t.Indexes {
		if ix := &t.Indexes[i]; !ix.FillAgain.IsZero() && !ix.Backfilling {
			times[ix.BigtableTable] = ix.FillAgain
		}
	}
	if !t.TTLFillAgain.IsZero() && !t.TTLFilling {
		times[t.TTLTable] = t.TTLFillAgain
	}
	return times
}

// The stored form of a definition: types are stored as their wire tags.
type (
	storedTable struct {
		plainTable
		Key        storedKey     `json:"key"`
		Attributes []storedAttr  `json:"attributes"`
		Indexes    []storedIndex `json:"indexes,omitempty"`
		Leaving    []storedIndex `json:"leaving,omitempty"`
	}
	storedIndex struct {
		plainIndex
		Key storedIndexKey `json:"key"`
	}
	// storedIndexKey is stored like a table's key if it has the same form.
	storedIndexKey struct {
		storedKey
		MoreHash  []storedAttr `json:"moreHash,omitempty"`
		MoreRange []storedAttr `json:"moreRange,omitempty"`
	}
	storedKey struct {
		Hash  storedAttr  `json:"hash"`
		Range *storedAttr `json:"range,omitempty"`
	}
	storedAttr struct {
		Name string `json:"name"`
		Type string `json:"type"`
	}
	plainTable Table
	plainIndex Index
)

// Encode returns the text that the catalog stores for the table.
func Encode(def *Table) ([]byte, error) {
	t := storedTable{plainTable: plainTable(*def), Key: storeKey(def.Key)}
	for _, a := range def.Attributes {
		t.Attributes = append(t.Attributes, storeAttr(a))
	}
	t.Indexes, t.Leaving = storeIndexes(def.Indexes), storeIndexes(def.Leaving)
	return json.Marshal(t)
}

func storeIndexes(indexes []Index) []storedIndex {
	var stored []storedIndex
	for i := range indexes {
		stored = append(stored, storedIndex{plainIndex: plainIndex(indexes[i]), Key: storeIndexKey(indexes[i].Key)})
	}
	return stored
}

func indexesOf(stored []storedIndex) ([]Index, error) {
	var indexes []Index
	for _, x := range stored {
		ix := Index(x.plainIndex)
		var err error
		if ix.Key, err = x.Key.indexKey(); err != nil {
			return nil, err
		}
		indexes = append(indexes, ix)
	}
	return indexes, nil
}

// Decode parses the text that Encode returns.
func Decode(text []byte) (*Table, error) {
	var t storedTable
	err := json.Unmarshal(text, &t)
	if err != nil {
		return nil, err
	}
	def := (*Table)(&t.plainTable)
	if def.Key, err = t.Key.key(); err != nil {
		return nil, err
	}
	for _, a := range t.Attributes {
		k, err := a.attr()
		if err != nil {
			return nil, err
		}
		def.Attributes = append(def.Attributes, k)
	}
	if def.Indexes, err = indexesOf(t.Indexes); err != nil {
		return nil, err
	}
	def.Leaving, err = indexesOf(t.Leaving)
	return def, err
}

// Clone returns a deep copy that has passed through the stored form, so that a definition
// never has values that the catalog would lose.
func (t *Table) Clone() (*Table, error) {
	text, err := Encode(t)
	if err != nil {
		return nil, err
	}
	return Decode(text)
}

func storeKey(k attr.KeySchema) storedKey {
	stored := storedKey{Hash: storeAttr(k.Hash)}
	if k.Range.Name != "" {
		r := storeAttr(k.Range)
		stored.Range = &r
	}
	return stored
}

func storeIndexKey(k IndexKey) storedIndexKey {
	stored := storedIndexKey{storedKey: storeKey(k.Schema())}
	for _, a := range k.Hash[1:] {
		stored.MoreHash = append(stored.MoreHash, storeAttr(a))
	}
	for i, a := range k.Range {
		if i > 0 {
			stored.MoreRange = append(stored.MoreRange, storeAttr(a))
		}
	}
	return stored
}

func storeAttr(a attr.KeyAttr) storedAttr { return storedAttr{a.Name, a.Type.String()} }

func (k storedKey) key() (schema attr.KeySchema, err error) {
	if schema.Hash, err = k.Hash.attr(); err == nil && k.Range != nil {
		schema.Range, err = k.Range.attr()
	}
	return schema, err
}

func (k storedIndexKey) indexKey() (IndexKey, error) {
	schema, err := k.key()
	if err != nil {
		return IndexKey{}, err
	}
	key := IndexKeyOf(schema)
	for _, more := range []struct {
		stored []storedAttr
		to     *[]attr.KeyAttr
	}{{k.MoreHash, &key.Hash}, {k.MoreRange, &key.Range}} {
		for _, stored := range more.stored {
			a, err := stored.attr()
			if err != nil {
				return IndexKey{}, err
			}
			*more.to = append(*more.to, a)
		}
	}
	return key, nil
}

func (a storedAttr) attr() (attr.KeyAttr, error) {
	t, ok := attr.ParseType(a.Type)
	if !ok {
		return attr.KeyAttr{}, fmt.Errorf("attribute %s has the unknown type %q", a.Name, a.Type)
	}
	return attr.KeyAttr{Name: a.Name, Type: t}, nil
}
