package mapfile

import (
	"time"

	"github.com/tabletop-emu/tabletop/internal/cells"
	"github.com/tabletop-emu/tabletop/internal/layout/codec"
	"github.com/tabletop-emu/tabletop/internal/layout/lens"
	"github.com/tabletop-emu/tabletop/internal/strictyaml"
)

// APIVersion is the version of the mapping file that this package reads.
const APIVersion = "migration/v1"

// Spec is a mapping file. Build one by hand or by Parse, write it by YAML.
type Spec struct {
	Source   Source `yaml:"source,required"`
	Target   Target `yaml:"target,required"`
	Fidelity string `yaml:"fidelity" words:"typed,idiomatic,blob"` // FidelityTyped (default), FidelityIdiomatic, FidelityBlob
	// DefaultTime is the timestamp of imported cells that have none of their
	// own; zero means the time of the export.
	DefaultTime time.Time `yaml:"timestamps.default"`
	// UnknownAttribute is UnknownError (default) or UnknownSidecar.
	UnknownAttribute string `yaml:"on.unknown-attribute" words:"error,sidecar"`
	// Collision is CollisionError (default) or CollisionQualifier.
	Collision string `yaml:"on.collision" words:"error,qualifier"`
	// Compat is "", or CompatGoogleUtility for the layout of another tool, which
	// needs no rules.
	Compat     string         `yaml:"compat" words:"google-utility"`
	AcceptLoss []AcceptedLoss `yaml:"accept_loss"`
	Rules      []Rule         `yaml:"rules"`                    // the first whose When matches takes the item
	Patterns   []string       `yaml:"patterns" expect:"a path"` // files or folders of access patterns, beside the file

	// Descriptors are the serialized FileDescriptorSets that codec proto names,
	// by file name.
	Descriptors map[string][]byte

	file string
	pos  strictyaml.Positions
	lint strictyaml.Value
}

// The fidelity profiles.
const (
	FidelityTyped     = "typed"     // values by the schema, exceptions in `_t`
	FidelityIdiomatic = "idiomatic" // values by the schema, no sidecar
	FidelityBlob      = "blob"      // one cell an item: its JSON
)

// What happens to an attribute that the schema does not name.
const (
	UnknownError   = "error"
	UnknownSidecar = "sidecar" // kept, its type in `_t`
)

// What happens to a rule whose items could meet on one cell, since neither row
// nor qualifier nor timestamp tells them apart.
const (
	CollisionError     = "error"
	CollisionQualifier = "qualifier" // what tells them apart is added to the qualifier
)

// CompatGoogleUtility lays items out like Google's DynamoDB to Bigtable migration utility,
// with its losses.
const CompatGoogleUtility = "google-utility"

// Source describes the DynamoDB table.
type Source struct {
	Table  string            `yaml:"table" expect:"a table name"`
	Key    lens.KeySchema    `yaml:"key,required"`
	Schema map[string]Schema `yaml:"schema"`   // type of each non-key attribute
	TTL    *TTL              `yaml:"ttl,null"` // nil: items do not expire
	GSIs   []GSI             `yaml:"gsis"`
}

// TTL is the time to live of a table: the attribute that holds the second,
// since 1970, in which an item expires.
type TTL struct {
	Attribute string `yaml:"attribute,required" expect:"an attribute name"`
	// Mode is TTLAttribute (default), TTLOneSecond, or shift(age) with a
	// duration, `shift(720h)`.
	Mode string `yaml:"mode" expect:"attribute, one-second or shift(720h)"`
}

// The modes of a TTL.
const (
	// TTLAttribute keeps the attribute; whoever reads it deletes the item.
	TTLAttribute = "attribute"
	// TTLOneSecond makes the expiry the timestamp of all cells of the item, in
	// families that garbage collection empties of what is a second old.
	TTLOneSecond = "one-second"
	// TTLShift, as shift(age), makes the expiry less an age the timestamp, in
	// families that garbage collection empties of what is that old.
	TTLShift = "shift"
)

// Schema is the type of an attribute, or of a value inside an attribute.
type Schema = codec.Schema

// GSI is a secondary index in a mapping file. The name stands for local
// indexes too.
type GSI struct {
	Name string         `yaml:"name,required" expect:"an index name"`
	Key  lens.KeySchema `yaml:",inline"`
	// Projection is ProjectAll, ProjectKeysOnly, or "" with Include.
	Projection string `yaml:"projection"`
	Include    []string
	As         string `yaml:"as" words:"table,view,none"` // IndexAsTable, IndexAsView or IndexAsNone
	// Shard spreads the entries over ranges of rows; nil: it does not.
	Shard *Shard `yaml:"shard"`
	// Row names the attributes that the row key is made of, after the shard.
	// Default: the index's key and the table's, without a hash key whose place
	// the shard takes. An author who leaves out a key attribute of the table
	// says that the others tell the entries apart.
	Row []string `yaml:"row" expect:"an attribute name"`
	// Joiner puts them together: plain('#') by default where there is a shard,
	// else oc. Under plain the first attribute alone may have the delimiter.
	Joiner string `yaml:"joiner" expect:"plain('#'), escaped('#') or oc"`
	// Lag is how long a write takes to reach the index, at most: a door that keeps
	// it lets reads of the index be as much behind. 0 leaves that to the door.
	Lag time.Duration `yaml:"lag"`
}

// Shard says how the shard of an index entry is computed.
type Shard struct {
	N int `yaml:"n,required" range:"1,1000"` // shards
	// By is a hash of an attribute, `fnv1a32(PK)`, or the name of an attribute
	// that is the shard's number itself.
	By string `yaml:"by,required" expect:"a hash of an attribute, fnv1a32(name), or the attribute that is the shard"`
}

// The projections of a secondary index.
const (
	ProjectAll      = "ALL"
	ProjectKeysOnly = "KEYS_ONLY"
)

// How a secondary index is laid out.
const (
	IndexAsTable = "table" // an own table, IndexTable
	IndexAsView  = "view"  // a continuous materialized view, whose SQL Mapping.Views gives
	IndexAsNone  = "none"  // not at all
)

// Target describes the Bigtable table.
type Target struct {
	Table    string            `yaml:"table,required" expect:"a table id"`
	Families []cells.Family    `yaml:"families,required"`
	Joiner   string            `yaml:"joiner" expect:"plain('#'), escaped('#'), escaped-all('#'), oc, fixed or auto"` // the default is auto
	Names    map[string]string `yaml:"names" expect:"a family name"`                                                  // attribute to the name its family has after the prefix
	// SetPrefix and MapPrefix begin the names of the families of sets and
	// maps: "s." and "m." by default, NoPrefix for the bare attribute name.
	SetPrefix string `yaml:"prefixes.set"`
	MapPrefix string `yaml:"prefixes.map"`
	// Shared is the family of the sets and maps of the schema that have no
	// family of their own, under qualifiers that begin with the attribute's name
	// and a zero byte; "" keeps them as one cell.
	Shared string `yaml:"shared" expect:"a family name"`
	// MaxFamilies is how many families sets and maps may have of their own; 0 is
	// DefaultMaxFamilies.
	MaxFamilies int `yaml:"max_families" range:"1,1000"`
}

// DefaultMaxFamilies stays below the recommended maximum of a hundred families a table.
// https://cloud.google.com/bigtable/docs/schema-design
const DefaultMaxFamilies = 90

// NoPrefix as Target.SetPrefix or MapPrefix means bare attribute names.
const NoPrefix = "-"

// AcceptedLoss is a loss that the author of a mapping accepts.
type AcceptedLoss struct {
	Rule string `yaml:"rule" expect:"a rule's name"` // "" for all rules
	What string `yaml:"what,required"`               // LossTypes, LossEmpty, LossRetention, LossAbsent, LossPrecision, LossNull
	Why  string `yaml:"why,required" expect:"a reason"`
}

// The losses that can be accepted.
const (
	LossTypes = "types" // a value whose type differs from the schema's comes back with the schema's
	LossEmpty = "empty" // empty maps and lists vanish
	// LossRetention: garbage collection removes cells that hold items, since a
	// column gets more of them than its family's versions, or they are older
	// than its maxAge. Without it, verification counts such cells as differences.
	LossRetention = "retention"
	// LossAbsent: a read of the newest cell of each column shows a value of an
	// older version where the newest has none, since there is no sidecar to
	// say so. Items come back all the same.
	LossAbsent = "absent"
	// LossPrecision: codec f64be rounds numbers that it does not hold exactly.
	LossPrecision = "precision"
	// LossNull: codec omit gives a NULL no cell, so that the attribute is absent.
	LossNull = "null"
)

var losses = []string{LossTypes, LossEmpty, LossRetention, LossAbsent, LossPrecision, LossNull}

// Rule sends items to rows and cells.
type Rule struct {
	Name string `yaml:"name,required" expect:"a rule name"`
	// When is the templates that the key attributes must match.
	When map[string]string `yaml:"when"`
	Same []string          // `same` in `when`: key attributes that must be equal
	// Schema is the attributes that the rule's items have: "*" stands for these. A
	// zero type is that of Source.Schema. nil: they are those of Source.Schema.
	Schema map[string]Schema
	Row    []string `yaml:"row,required" expect:"a segment template"` // row key segments
	Put    []Put    `yaml:"put,required"`
	// Latest is the start of the sort key of copies of the highest version, as
	// in `v0` for a When of "v{n:ver}_{rest}". They are checked and not stored:
	// they come back as copies of it.
	Latest string `yaml:"latest" expect:"the start of the sort keys of the copies, such as v0"`
	// Tag makes the rule write `_t:r/<cell>`, for rules that share a column.
	Tag bool `yaml:"tag"`
}

// Put places an attribute.
type Put struct {
	// Attr is the attribute's name; "*" stands for all others; Presence for
	// a cell without attribute that says that the item is there.
	Attr  string  `yaml:"attr,required"`
	Cell  string  `yaml:"cell,required" expect:"family:qualifier"` // family:qualifier template
	Codec string  `yaml:"codec" expect:"a codec, such as ddbjson"` // "" by type; s n b bool text b64 i64be f64be nord json ddbjson flatten omit proto(file, message)
	Time  PutTime `yaml:"ts"`
	// Order is which element of a list is its newest cell: OrderAppend
	// (default) the last, OrderNewestFirst the first.
	Order string `yaml:"order" words:"append,newest-first"`
}

// The orders of a list's cells.
const (
	OrderAppend      = "append"
	OrderNewestFirst = "newest-first"
)

// Presence is the Put.Attr of a cell that stands for the item itself (`attr:
// null` in YAML).
const Presence = ""

// PutTime is the source of the timestamp of a cell. The zero value is the default time.
type PutTime struct {
	Capture string // name of a capture that is a time
	Attr    string `yaml:"attr,required" expect:"an attribute name"` // name of an attribute, which is then not stored
	As      string `yaml:"as,required"`                              // iso(s), iso(ms), epoch(s), epoch(ms): the text of Attr
}
