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

// Spec is the content of a mapping file. Parse reads it, and YAML writes it; it can also be built
// in Go.
type Spec struct {
	Source   Source `yaml:"source,required"`
	Target   Target `yaml:"target,required"`
	Fidelity string `yaml:"fidelity" words:"typed,idiomatic,blob"` // FidelityTyped (default), FidelityIdiomatic, FidelityBlob
	// DefaultTime is the timestamp of imported cells without a specific timestamp. Zero means the
	// time of the export.
	DefaultTime time.Time `yaml:"timestamps.default"`
	// UnknownAttribute is UnknownError (default) or UnknownSidecar.
	UnknownAttribute string `yaml:"on.unknown-attribute" words:"error,sidecar"`
	// Collision is CollisionError (default) or CollisionQualifier.
	Collision string `yaml:"on.collision" words:"error,qualifier"`
	// Compat is "", or CompatGoogleUtility for the layout of that tool, which needs no rules.
	Compat     string         `yaml:"compat" words:"google-utility"`
	AcceptLoss []AcceptedLoss `yaml:"accept_loss"`
	Rules      []Rule         `yaml:"rules"`                    // the first rule whose When matches an item lays it out
	Patterns   []string       `yaml:"patterns" expect:"a path"` // files or folders of access patterns, relative to the mapping file

	// Descriptors holds the serialized FileDescriptorSets that codec proto names, by file name.
	Descriptors map[string][]byte

	file string
	pos  strictyaml.Positions
	lint strictyaml.Value
}

// These are the fidelity profiles.
const (
	FidelityTyped     = "typed"     // values by the schema, exceptions in `_t`
	FidelityIdiomatic = "idiomatic" // values by the schema, no sidecar
	FidelityBlob      = "blob"      // one cell per item: its JSON
)

// These constants select how attributes outside the schema are treated.
const (
	UnknownError   = "error"
	UnknownSidecar = "sidecar" // the attribute is kept, with its type in `_t`
)

// These constants select how rules are treated if their items could share a cell because neither
// row, qualifier nor timestamp distinguishes them.
const (
	CollisionError     = "error"
	CollisionQualifier = "qualifier" // adds distinguishing variables to the qualifier
)

// CompatGoogleUtility lays out items like Google's DynamoDB to Bigtable migration utility,
// including its losses.
const CompatGoogleUtility = "google-utility"

// Source describes the DynamoDB table.
type Source struct {
	Table  string            `yaml:"table" expect:"a table name"`
	Key    attr.KeySchema    `yaml:"key,required"`
	Schema map[string]Schema `yaml:"schema"`   // type of each non-key attribute
	TTL    *TTL              `yaml:"ttl,null"` // nil if items do not expire
	GSIs   []GSI             `yaml:"gsis"`
}

// TTL is the time to live of a table. An attribute holds the time at which an item expires, in
// seconds since 1970.
type TTL struct {
	Attribute string `yaml:"attribute,required" expect:"an attribute name"`
	// Mode is TTLAttribute (default), TTLOneSecond, or shift(age) with a duration, such as
	// `shift(720h)`.
	Mode string `yaml:"mode" expect:"attribute, one-second or shift(720h)"`
}

// TTLAttribute returns the attribute by which items of the table expire: that of the table, or
// of the first rule with a ttl. It returns "" if no ttl is set.
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
	// TTLOneSecond uses the expiry as the timestamp of all cells of the item, in families whose
	// garbage collection deletes cells that are a second old.
	TTLOneSecond = "one-second"
	// TTLShift, written shift(age), uses the expiry minus an age as the timestamp, in families
	// whose garbage collection deletes cells of that age.
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
	// Shard spreads the entries over several ranges of rows. If it is nil, they are in one range.
	Shard *Shard `yaml:"shard"`
	// Row lists the attributes in the row key, after the shard. Default: the key attributes of the
	// index and of the table, except for a hash key that the shard replaces. If Row omits a key
	// attribute of the table, the other attributes must identify the entries.
	Row []string `yaml:"row" expect:"an attribute name"`
	// Joiner joins the attributes. Default: plain('#') with a shard, oc otherwise. With plain, only
	// the first attribute may contain the delimiter.
	Joiner string `yaml:"joiner" expect:"plain('#'), escaped('#') or oc"`
	// Lag is the longest time until a write reaches the index. A DynamoDB endpoint that simulates
	// it returns data up to this stale from the index. If it is 0, the endpoint chooses the lag.
	Lag time.Duration `yaml:"lag"`
}

// Shard defines how the shard of an index entry is computed.
type Shard struct {
	N int `yaml:"n,required" range:"1,1000"` // number of shards
	// By is a hash of an attribute, such as `fnv1a32(PK)`, or the name of an attribute that holds
	// the number of the shard.
	By string `yaml:"by,required" expect:"a hash of an attribute, fnv1a32(name), or the attribute that is the shard"`
}

// These are the projections of a secondary index.
const (
	ProjectAll      = "ALL"
	ProjectKeysOnly = "KEYS_ONLY"
)

// These are the layouts of a secondary index.
const (
	IndexAsTable = "table" // a separate table, IndexTable
	IndexAsView  = "view"  // a continuous materialized view, whose SQL is in Mapping.Views
	IndexAsNone  = "none"  // not laid out
)

// Target describes the Bigtable table.
type Target struct {
	Table    string            `yaml:"table,required" expect:"a table id"`
	Families []cells.Family    `yaml:"families,required"`
	Joiner   string            `yaml:"joiner" expect:"plain('#'), escaped('#'), escaped-all('#'), oc, fixed or auto"` // the default is auto
	Names    map[string]string `yaml:"names" expect:"a family name"`                                                  // maps attributes to the names of their families, without prefix
	// SetPrefix and MapPrefix are the prefixes of the names of families for sets and maps. Default:
	// "s." and "m."; NoPrefix means the bare attribute name.
	SetPrefix string `yaml:"prefixes.set"`
	MapPrefix string `yaml:"prefixes.map"`
	// Shared is the family of the sets and maps of the schema that do not have a separate family.
	// Their qualifiers begin with the attribute's name and a zero byte. If it is empty, each of
	// them is stored as one cell.
	Shared string `yaml:"shared" expect:"a family name"`
	// MaxFamilies limits the number of families for single sets and maps; 0 means
	// DefaultMaxFamilies.
	MaxFamilies int `yaml:"max_families" range:"1,1000"`
}

// DefaultMaxFamilies is the default of Target.MaxFamilies. It is below the recommended maximum of a
// hundred families per table.
// https://cloud.google.com/bigtable/docs/schema-design
const DefaultMaxFamilies = 90

// NoPrefix is the value of Target.SetPrefix or MapPrefix for bare attribute names.
const NoPrefix = "-"

// AcceptedLoss is a loss that the author of a mapping accepts.
type AcceptedLoss struct {
	Rule string `yaml:"rule" expect:"a rule's name"` // name of the rule; "" for all rules
	What string `yaml:"what,required"`               // one of LossTypes, LossEmpty, LossRetention, LossAbsent, LossPrecision and LossNull
	Why  string `yaml:"why,required" expect:"a reason"`
}

// These are the losses that can be accepted.
const (
	LossTypes = "types" // a value whose type differs from the schema is read back with the schema's type
	LossEmpty = "empty" // empty maps and lists vanish
	// LossRetention accepts that garbage collection removes cells of items, because a column has
	// more cells than the family's versions, or cells are older than its maxAge. Otherwise
	// verification counts such cells as differences.
	LossRetention = "retention"
	// LossAbsent accepts that a read of the newest cell of each column shows the value of an older
	// version if the newest version lacks the attribute, because no sidecar records that. Items are
	// still restored correctly.
	LossAbsent = "absent"
	// LossPrecision accepts that codec f64be rounds numbers that it cannot represent exactly.
	LossPrecision = "precision"
	// LossNull accepts that codec omit stores no cell for a NULL, so that the attribute becomes
	// absent.
	LossNull = "null"
)

var losses = []string{LossTypes, LossEmpty, LossRetention, LossAbsent, LossPrecision, LossNull}

// Rule assigns items to rows and cells.
type Rule struct {
	Name string `yaml:"name,required" expect:"a rule name"`
	// When holds the templates that the key attributes must match.
	When map[string]string `yaml:"when"`
	Same []string          // `same` in `when`: key attributes that must be equal
	// Schema holds the attributes of the rule's items, for which "*" stands. A zero type means the
	// type of Source.Schema. If Schema is nil, the rule has the attributes of Source.Schema.
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

// Put places an attribute in a cell, or in several cells.
type Put struct {
	// Attr is the attribute's name. "*" stands for all other attributes, and Presence for a cell
	// that records the presence of the item instead of an attribute.
	Attr  string  `yaml:"attr,required"`
	Cell  string  `yaml:"cell,required" expect:"family:qualifier"` // family:qualifier template
	Codec string  `yaml:"codec" expect:"a codec, such as ddbjson"` // s n b bool text b64 i64be f64be nord json ddbjson flatten omit proto(file, message); "" if the type decides
	Time  PutTime `yaml:"ts"`
	// Order determines which element of a list is in its newest cell: the last with OrderAppend
	// (default), the first with OrderNewestFirst.
	Order string `yaml:"order" words:"append,newest-first"`
}

// These are the orders of a list's cells.
const (
	OrderAppend      = "append"
	OrderNewestFirst = "newest-first"
)

// Presence is the value of Put.Attr for a cell that stands for the item itself (`attr: null` in
// YAML).
const Presence = ""

// PutTime is the source of the timestamp of a cell. The zero value is the default time.
type PutTime struct {
	Capture string // name of a capture that holds a time
	Attr    string `yaml:"attr,required" expect:"an attribute name"` // name of an attribute, which is then not stored
	As      string `yaml:"as,required"`                              // format of Attr: iso(s), iso(ms), epoch(s), epoch(ms)
}
