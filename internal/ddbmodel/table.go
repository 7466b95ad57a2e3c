package ddbmodel

import (
	"slices"
	"strings"
	"time"
)

// DB is a set of tables. Set Now before transactions with a token and before Expire, which need it.
type DB struct {
	Now func() time.Time

	tables map[string]*Table
	tokens map[string]tokenUse
}

// Table is a table with its schema and its items, in no particular order.
type Table struct {
	Name    string
	Key     []KeyAttribute // the partition key, and the sort key if the table has one
	Indexes []Index
	// TTL is the attribute that holds the expiry of items, or "".
	TTL string
	// Refuses reports whether the table cannot hold an item together with its other items. If it is
	// nil, the table can hold all items.
	Refuses func(others []Item, item Item) bool
	// Keeps returns the part of an item that is stored. If it is nil, the whole item is stored.
	Keeps func(Item) Item

	items []Item
}

// KeyAttribute is an attribute of a key: its name and type, S, N or B.
type KeyAttribute struct{ Name, Type string }

// Index is a secondary index.
type Index struct {
	Name       string
	Global     bool
	Key        []KeyAttribute
	Projection string   // ALL, KEYS_ONLY or INCLUDE
	NonKey     []string // the attributes of INCLUDE
}

// CreateTable adds a table.
func (db *DB) CreateTable(t *Table) {
	if db.tables == nil {
		db.tables, db.tokens = map[string]*Table{}, map[string]tokenUse{}
	}
	db.tables[t.Name] = t
}

// Items returns the items of a table in no particular order.
func (t *Table) Items() []Item { return t.items }

// Find returns the item with the given key, or nil.
func (t *Table) Find(key Item) Item {
	for _, item := range t.items {
		if Text(t.KeyOf(item)) == Text(t.KeyOf(key)) {
			return item
		}
	}
	return nil
}

// KeyOf returns the key attributes of an item.
func (t *Table) KeyOf(item Item) Item { return only(item, t.Key) }

func only(item Item, key []KeyAttribute) Item {
	out := Item{}
	for _, a := range key {
		if v, ok := item[a.Name]; ok {
			out[a.Name] = v
		}
	}
	return out
}

// Put replaces the item with the given key, or deletes it if the new item is nil.
func (t *Table) Put(key, item Item) {
	t.items = slices.DeleteFunc(slices.Clone(t.items), func(other Item) bool { return Text(t.KeyOf(other)) == Text(t.KeyOf(key)) })
	if item != nil && t.Keeps != nil {
		item = t.Keeps(item)
	}
	if item != nil {
		t.items = append(t.items, item)
	}
}

func (t *Table) isKey(name string) bool {
	return slices.ContainsFunc(t.Key, func(a KeyAttribute) bool { return a.Name == name })
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

// Entries returns the entries of an index: the projections of all items that have the index's key
// attributes.
func (t *Table) Entries(x *Index) []Item {
	var entries []Item
	for _, item := range t.items {
		if len(only(item, x.Key)) < len(x.Key) {
			continue
		}
		entry := only(item, slices.Concat(t.Key, x.Key))
		for name, v := range item {
			if x.Projection == "ALL" || x.Projection == "INCLUDE" && slices.Contains(x.NonKey, name) {
				entry[name] = v
			}
		}
		entries = append(entries, entry)
	}
	return entries
}

// maxOverdue is the largest delay of an expiry: items that should have expired earlier stay.
const maxOverdue = 5 * 365 * 24 * time.Hour

// Expire deletes the expired items.
func (db *DB) Expire() {
	now := db.Now()
	first, last := Number(Text(now.Add(-maxOverdue).Unix())), Number(Text(now.Unix()))
	for _, t := range db.tables {
		if t.TTL == "" {
			continue
		}
		t.items = slices.DeleteFunc(slices.Clone(t.items), func(item Item) bool {
			return compare(">=", item[t.TTL], first) && compare("<=", item[t.TTL], last)
		})
	}
}

// Error is an error that DynamoDB is expected to return.
type Error struct {
	Code string
	// Messages lists the accepted messages; nil accepts any message.
	Messages []string
	Item     Item     // the item of a failed condition
	Reasons  []Reason // the reasons of a canceled transaction
	// AnyInvalid accepts all Reasons that include a ValidationError.
	AnyInvalid bool
	// Or is another accepted error, for cases in which the order of two checks is not specified.
	Or *Error
}

// Reason is the reason why an action of a transaction failed.
type Reason struct {
	Code     string
	Messages []string
	Item     Item
}

func invalid(messages ...string) *Error {
	return &Error{Code: "ValidationException", Messages: messages}
}

func (db *DB) table(name string) (*Table, *Error) {
	if t := db.tables[name]; t != nil {
		return t, nil
	}
	return nil, &Error{Code: "ResourceNotFoundException", Messages: []string{"Requested resource not found"}}
}

const (
	parameter     = "One or more parameter values were invalid: "
	notValid      = "One or more parameter values are not valid. "
	emptyKeyValue = "The AttributeValue for a key attribute cannot contain an empty "
)

var typeWords = map[string]string{"S": "string", "B": "binary"}

func isEmpty(v Value) bool { return typeWords[v.Type] != "" && v.Text == "" }

// checkKey checks the Key of a request.
func (t *Table) checkKey(key Item) *Error {
	mismatch := len(key) != len(t.Key)
	for _, a := range t.Key {
		mismatch = mismatch || key[a.Name].Type != a.Type
	}
	if mismatch {
		return invalid("The provided key element does not match the schema")
	}
	return t.checkKeyValues(key)
}

func (t *Table) checkKeyValues(item Item) *Error {
	for _, a := range t.Key {
		if isEmpty(item[a.Name]) {
			return invalid(notValid + emptyKeyValue + typeWords[a.Type] + " value. Key: " + a.Name)
		}
	}
	return nil
}

// checkItem checks the Item of a request.
func (t *Table) checkItem(item Item) *Error {
	for _, a := range t.Key {
		v, ok := item[a.Name]
		if !ok {
			return invalid(parameter + "Missing the key " + a.Name + " in the item")
		}
		if v.Type != a.Type {
			return invalid(parameter + "Type mismatch for key " + a.Name + " expected: " + a.Type + " actual: " + v.Type)
		}
	}
	if err := t.checkKeyValues(item); err != nil {
		return err
	}
	return t.checkIndexKeys(nil, item, false)
}

// checkUpdateTypes checks the values that clauses assign to keys of indexes.
func (t *Table) checkUpdateTypes(clauses []Clause) *Error {
	var faults []string
	for _, x := range t.Indexes {
		for _, a := range x.Key {
			for _, c := range clauses {
				path, given := c.target(), c.known()
				if len(path) == 1 && path[0].Name == a.Name && given != "" && given != a.Type {
					faults = append(faults, t.indexKeyFault(a, given))
				}
			}
		}
	}
	if faults != nil {
		return invalid(faults...)
	}
	return nil
}

func (t *Table) indexKeyFault(a KeyAttribute, given string) string {
	return parameter + "Type mismatch for Index Key " + a.Name + " Expected: " + a.Type + " Actual: " + given + " IndexName: " + t.indexOf(a)
}

// indexOf returns the index that messages name for a key attribute: a global one before a
// local one, then the first by name.
func (t *Table) indexOf(a KeyAttribute) string {
	var global, local []string
	for _, x := range t.Indexes {
		switch {
		case !slices.Contains(x.Key, a):
		case x.Global:
			global = append(global, x.Name)
		default:
			local = append(local, x.Name)
		}
	}
	slices.Sort(global)
	slices.Sort(local)
	return append(global, local...)[0]
}

// emptyIndexKey returns the message for an empty key attribute of an index.
func (t *Table) emptyIndexKey(a KeyAttribute, updates bool) string {
	if updates {
		return notValid + "The update expression attempted to update a secondary index key to a value that is not supported. " + emptyKeyValue + typeWords[a.Type] + " value."
	}
	return notValid + "A value specified for a secondary index key is not supported. " + emptyKeyValue + typeWords[a.Type] + " value. IndexName: " + t.indexOf(a) + ", IndexKey: " + a.Name
}

// checkIndexKeys checks the changed attributes that are keys of indexes, in an item of a put or
// an update.
func (t *Table) checkIndexKeys(old, item Item, updates bool) *Error {
	var faults []string
	for _, x := range t.Indexes {
		for _, a := range x.Key {
			v, ok := item[a.Name]
			switch {
			case !ok || t.isKey(a.Name) || equal(old[a.Name], v):
			case v.Type != a.Type && updates:
				faults = append(faults, faultIndexed)
			case v.Type != a.Type:
				faults = append(faults, t.indexKeyFault(a, v.Type))
			case isEmpty(v):
				faults = append(faults, t.emptyIndexKey(a, updates))
			}
		}
	}
	if faults != nil {
		return invalid(faults...)
	}
	return nil
}

// Says reports whether the accepted messages of an error include message.
func Says(messages []string, message string) bool {
	return messages == nil || slices.Contains(messages, message)
}

// String describes the expected error.
func (e *Error) String() string {
	if e == nil {
		return "success"
	}
	text := e.Code + ": " + strings.Join(e.Messages, " | ")
	for _, r := range e.Reasons {
		text += "\n  " + r.Code + ": " + strings.Join(r.Messages, " | ") + " " + Text(r.Item)
	}
	if e.Item != nil {
		text += "\n  item " + Text(e.Item)
	}
	if e.Or != nil {
		text += "\nor " + e.Or.String()
	}
	return text
}
