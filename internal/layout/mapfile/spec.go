package mapfile

import (
	"time"

	"github.com/tabletop-emu/tabletop/cells"
	"github.com/tabletop-emu/tabletop/facade/attr"
	"github.com/tabletop-emu/tabletop/internal/layout/codec"
	"github.com/tabletop-emu/tabletop/internal/strictyaml"
)

// APIVersion is the version of the mapping file that this package reads.
const APIVersion = "migration/v1"

// Spec is a mapping file. Build one by hand or by Parse, write it by YAML.
type Spec struct {
	Source   Source `yaml:"source,required"`
	Target   Target `yaml:"target,required"`
	Fidelity string `yaml:"fidelity" words:"typed,idiomatic,blob"` // FidelityTyped (default), FidelityIdiomatic, FidelityBlob
	// DefaultTime is the timestamp of imported cells without one of their own; zero means the
	// time of the export.
	DefaultTime time.Time `yaml:"timestamps.default"`
	// UnknownAttribute is UnknownError (default) or UnknownSidecar.
	UnknownAttribute string `yaml:"on.unknown-attribute" words:"error,sidecar"`
	// Collision is CollisionError (default) or CollisionQualifier.
	Collision string `yaml:"on.collision" words:"error,qualifier"`
	// Compat is "", or CompatGoogleUtility for the layout of another tool, which
	// needs no rules.
	Compat     string         `yaml:"compat" words:"google-utility"`
	AcceptLoss []AcceptedLoss `yaml:"accept_loss"`
	Rules      []Rule         `yaml:"rules"`                    // the first rule whose When matches lays the item out
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
	FidelityBlob      = "blob"      // one cell per item: its JSON
)

// The treatment of attributes outside the schema.
const (
	UnknownError   = "error"
	UnknownSidecar = "sidecar" // kept, its type in `_t`
)

// The treatment of rules whose items could meet on one cell, if neither row nor qualifier nor
// timestamp distinguishes them.
const (
	CollisionError     = "error"
	CollisionQualifier = "qualifier" // distinguishing variables are added to the qualifier
)

// CompatGoogleUtility lays items out like Google's DynamoDB to Bigtable migration utility,
// with its losses.
const CompatGoogleUtility = "google-utility"

// Source describes the DynamoDB table.
type Source struct {
	Table  string            `yaml:"table" expect:"a table name"`
	Key    attr.KeySchema    `yaml:"key,required"`
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

// TTLAttribute returns the attribute by which items of the table expire: that of the table, or
// of the first rule with a ttl; "" without one.
func (s *Spec) TTLAttribute() string {
	if s.Source.TTL != nil {
		return s.Source.TTL.Attribute
	}
	for i := range s.Rules {
		if t := s.Rules[i].TTL; t != nil {
			return t.Attribute
		}
	}
	return ""
}

// The modes of a TTL.
const (
	// TTLAttribute keeps the attribute; readers delete expired items.
	TTLAttribute = "attribute"
	// TTLOneSecond uses the expiry as the timestamp of all cells of the item, in families
	// where garbage collection deletes cells that are a second old.
	TTLOneSecond = "one-second"
	// TTLShift, as shift(age), uses the expiry minus an age as the timestamp, in families
	// where garbage collection deletes cells of that age.
	TTLShift = "shift"
)

// Schema is the type of an attribute, or of a value inside an attribute.
type Schema = codec.Schema

// GSI is a secondary index in a mapping file, global or local.
type GSI struct {
	Name string         `yaml:"name,required" expect:"an index name"`
	Key  attr.KeySchema `yaml:",inline"`
	// Projection is ProjectAll, ProjectKeysOnly, or "" with Include.
	Projection string `yaml:"projection"`
	Include    []string
	As         string `yaml:"as" words:"table,view,none"` // IndexAsTable, IndexAsView or IndexAsNone
	// Shard spreads the entries over ranges of rows; nil: one range.
	Shard *Shard `yaml:"shard"`
	// Row names the attributes in the row key, after the shard. Default: the keys of the index
	// and of the table, without a hash key that the shard replaces. If a key attribute of the
	// table is omitted, the others must identify the entries.
	Row []string `yaml:"row" expect:"an attribute name"`
	// Joiner joins them: by default plain('#') with a shard, else oc. Under plain, only the
	// first attribute may contain the delimiter.
	Joiner string `yaml:"joiner" expect:"plain('#'), escaped('#') or oc"`
	// Lag is the longest time until a write reaches the index: a DynamoDB endpoint that
	// simulates it lets reads of the index be this stale. 0 leaves the lag to the endpoint.
	Lag time.Duration `yaml:"lag"`
}

// Shard defines the computation of an index entry's shard.
type Shard struct {
	N int `yaml:"n,required" range:"1,1000"` // shards
	// By is a hash of an attribute, `fnv1a32(PK)`, or the name of an attribute with the number
	// of the shard.
	By string `yaml:"by,required" expect:"a hash of an attribute, fnv1a32(name), or the attribute that is the shard"`
}

// The projections of a secondary index.
const (
	ProjectAll      = "ALL"
	ProjectKeysOnly = "KEYS_ONLY"
)

// The layouts of a secondary index.
const (
	IndexAsTable = "table" // a table of its own, IndexTable
	IndexAsView  = "view"  // a continuous materialized view, whose SQL is in Mapping.Views
	IndexAsNone  = "none"  // not laid out
)

// Target describes the Bigtable table.
type Target struct {
	Table    string            `yaml:"table,required" expect:"a table id"`
	Families []cells.Family    `yaml:"families,required"`
	Joiner   string            `yaml:"joiner" expect:"plain('#'), escaped('#'), escaped-all('#'), oc, fixed or auto"` // the default is auto
	Names    map[string]string `yaml:"names" expect:"a family name"`                                                  // attribute to its family's name after the prefix
	// SetPrefix and MapPrefix begin the names of the families of sets and
	// maps: "s." and "m." by default, NoPrefix for the bare attribute name.
	SetPrefix string `yaml:"prefixes.set"`
	MapPrefix string `yaml:"prefixes.map"`
	// Shared is the family of the sets and maps of the schema that have no
	// family of their own, under qualifiers that begin with the attribute's name
	// and a zero byte; "" keeps them as one cell.
	Shared string `yaml:"shared" expect:"a family name"`
	// MaxFamilies limits the number of families of single sets and maps; 0 is
	// DefaultMaxFamilies.
	MaxFamilies int `yaml:"max_families" range:"1,1000"`
}

// DefaultMaxFamilies is below the recommended maximum of a hundred families per table.
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
	LossTypes = "types" // a value of another type than the schema's comes back with the schema's type
	LossEmpty = "empty" // empty maps and lists vanish
	// LossRetention: garbage collection removes cells of items, because a column has more
	// cells than the family's versions, or they are older than its maxAge. Without it,
	// verification counts such cells as differences.
	LossRetention = "retention"
	// LossAbsent: a read of the newest cell of each column shows the value of an older version
	// if the newest version lacks the attribute, since no sidecar records that. Items are
	// restored nevertheless.
	LossAbsent = "absent"
	// LossPrecision: codec f64be rounds numbers that it cannot represent exactly.
	LossPrecision = "precision"
	// LossNull: codec omit stores no cell for a NULL, so the attribute becomes absent.
	LossNull = "null"
)

var losses = []string{LossTypes, LossEmpty, LossRetention, LossAbsent, LossPrecision, LossNull}

// Rule assigns items to rows and cells.
type Rule struct {
	Name string `yaml:"name,required" expect:"a rule name"`
	// When has the templates that the key attributes must match.
	When map[string]string `yaml:"when"`
	Same []string          // `same` in `when`: key attributes that must be equal
	// Schema has the attributes of the rule's items, which "*" stands for. A zero type means
	// the type of Source.Schema. nil: the attributes of Source.Schema.
	Schema map[string]Schema
	// TTL overrides Source.TTL for the rule's items; its attribute is that of the table.
	TTL *TTL `yaml:"ttl"`
	// Derive has templates of captures and attributes. An attribute that equals its template
	// has no cell.
	Derive map[string]string `yaml:"derive" expect:"a template or const(text)"`
	Row    []string          `yaml:"row,required" expect:"a segment template"` // row key segments
	Put    []Put             `yaml:"put,required"`
	// Latest is the start of the sort key of copies of the highest version, such as `v0` with
	// a When of "v{n:ver}_{rest}". They are checked and not stored: they are read as copies of
	// that version.
	Latest string `yaml:"latest" expect:"the start of the sort keys of the copies, such as v0"`
	// Tag makes the rule write `_t:r/<cell>`, for rules that share a column.
	Tag bool `yaml:"tag"`
}

// Put places an attribute.
type Put struct {
	// Attr is the attribute's name; "*" stands for all others; Presence for a cell without
	// attribute that records the presence of the item.
	Attr  string  `yaml:"attr,required"`
	Cell  string  `yaml:"cell,required" expect:"family:qualifier"` // family:qualifier template
	Codec string  `yaml:"codec" expect:"a codec, such as ddbjson"` // "" by type; s n b bool text b64 i64be f64be nord json ddbjson flatten omit proto(file, message)
	Time  PutTime `yaml:"ts"`
	// Order determines the element of a list in its newest cell: OrderAppend (default) the
	// last, OrderNewestFirst the first.
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
	Capture string // name of a capture with a time
	Attr    string `yaml:"attr,required" expect:"an attribute name"` // name of an attribute, which is then not stored
	As      string `yaml:"as,required"`                              // iso(s), iso(ms), epoch(s), epoch(ms): the text of Attr
}
