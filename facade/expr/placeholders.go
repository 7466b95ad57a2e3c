package expr

import (
	"cmp"
	"slices"
	"strings"

	"github.com/tabletop-emu/tabletop/facade/attr"
)

// Limits of placeholders. Source: developer guide, "Service, account, and
// table quotas", expression parameters.
const (
	// MaxPlaceholderBytes is the maximum length of a "#name" or ":value".
	MaxPlaceholderBytes = 255
	// MaxPlaceholdersBytes is the maximum size of all names and values together.
	MaxPlaceholdersBytes = 2 << 20
)

// Placeholders holds the ExpressionAttributeNames and ExpressionAttributeValues of a
// request. All expressions of the request share it, and it records which names and values
// they use. A nil *Placeholders is empty. It is not safe for concurrent use.
type Placeholders struct {
	names      map[string]string
	values     map[string]attr.Value
	usedNames  map[string]bool
	usedValues map[string]bool
	unlimited  bool
}

// UnlimitedPlaceholders returns placeholders for expressions that are built from other
// parameters. DynamoDB's limits apply only to expressions that users write, so sizes and
// attribute names are not restricted.
func UnlimitedPlaceholders(names map[string]string, values map[string]attr.Value) *Placeholders {
	return &Placeholders{
		names: names, values: values, usedNames: map[string]bool{}, usedValues: map[string]bool{}, unlimited: true,
	}
}

func (p *Placeholders) isUnlimited() bool { return p != nil && p.unlimited }

// NewPlaceholders returns placeholders with the given names, by "#name", and values, by
// ":value". A map is nil if the request does not have the parameter. NewPlaceholders
// returns an *Error if a key is malformed, a map is not nil but empty, or the
// placeholders are too large in total. It retains the maps and does not modify them.
func NewPlaceholders(names map[string]string, values map[string]attr.Value) (*Placeholders, error) {
	if names != nil && len(names) == 0 {
		return nil, newError(msgNamesEmpty)
	}
	size := 0
	for _, key := range sortedKeys(names) {
		name := names[key]
		if !isPlaceholder(key, '#') {
			return nil, newError(msgNameKey, key)
		}
		if name == "" {
			return nil, newError(msgNameEmpty, key)
		}
		if len(name) > attr.MaxNameBytes {
			return nil, newError(msgNameValue, key)
		}
		size += len(key) + len(name)
	}
	if values != nil && len(values) == 0 {
		return nil, newError(msgValuesEmpty)
	}
	for _, key := range sortedKeys(values) {
		if !isPlaceholder(key, ':') {
			return nil, newError(msgValueKey, key)
		}
		size += len(key) + values[key].Size()
	}
	if size > MaxPlaceholdersBytes {
		return nil, newError(msgTooLarge, MaxPlaceholdersBytes, size)
	}
	p := &Placeholders{names: names, values: values}
	if names != nil {
		p.usedNames = map[string]bool{}
	}
	if values != nil {
		p.usedValues = map[string]bool{}
	}
	return p, nil
}

// sortedKeys returns the keys of m in ascending order.
func sortedKeys[K cmp.Ordered, V any](m map[K]V) []K {
	if len(m) == 0 {
		return nil
	}
	keys := make([]K, 0, len(m))
	for key := range m {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	return keys
}

// isPlaceholder reports whether key is prefix plus at least one letter, digit or underscore, and
// not too long.
func isPlaceholder(key string, prefix byte) bool {
	if len(key) < 2 || len(key) > MaxPlaceholderBytes || key[0] != prefix {
		return false
	}
	for i := 1; i < len(key); i++ {
		if !isWordByte(key[i]) {
			return false
		}
	}
	return true
}

// name returns the name that a key such as "#name" stands for, and records its use.
func (p *Placeholders) name(key string) (string, bool) {
	if p == nil {
		return "", false
	}
	name, ok := p.names[key]
	if ok {
		p.usedNames[key] = true
	}
	return name, ok
}

// value returns the value that a key such as ":value" stands for, and records its use.
func (p *Placeholders) value(key string) (attr.Value, bool) {
	if p == nil {
		return attr.Value{}, false
	}
	v, ok := p.values[key]
	if ok {
		p.usedValues[key] = true
	}
	return v, ok
}

// CheckUsed returns an *Error if some names are not used in any expression parsed so far or,
// if all names are used, some values are not. Call it after parsing all expressions. The
// error lists the unused keys in sorted order, although DynamoDB does not promise an order.
func (p *Placeholders) CheckUsed() error {
	if p == nil {
		return nil
	}
	if unused := unusedKeys(p.names, p.usedNames); unused != "" {
		return newError(msgNamesUnused, unused)
	}
	if unused := unusedKeys(p.values, p.usedValues); unused != "" {
		return newError(msgValuesUnused, unused)
	}
	return nil
}

func unusedKeys[V any](all map[string]V, used map[string]bool) string {
	var unused []string
	for key := range all {
		if !used[key] {
			unused = append(unused, key)
		}
	}
	slices.Sort(unused)
	return strings.Join(unused, ", ")
}
