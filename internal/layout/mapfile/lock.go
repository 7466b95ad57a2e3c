package mapfile

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// LockFile is the name of the file next to a mapping file that holds its Lock.
const LockFile = "mapping.lock.json"

// Lock holds the compiler's decisions about a mapping file that affect the loaded rows. A
// mapping that compiles to another lock reads and writes different rows.
type Lock struct {
	APIVersion string `json:"apiVersion"`
	// Hash is the SHA-256 of the mapping, the joiner of the rows, and the descriptor sets that the
	// mapping names. It covers the mapping as Spec.YAML writes it, so comments and formatting do
	// not matter.
	Hash   string `json:"hash"`
	Source string `json:"source,omitempty"` // DynamoDB table
	Target string `json:"target"`           // Bigtable table
	// Joiner is the joiner of the rows. For auto, it is the outcome once that is proven.
	Joiner    string       `json:"joiner,omitempty"`
	ListEpoch int64        `json:"listEpoch"` // ListEpochMillis
	Families  []LockFamily `json:"families"`
	// Shared lists the attributes that share the family target.shared.
	Shared []string `json:"shared,omitempty"`
}

// LockFamily is a family of the table. If the family belongs to a single attribute, Attribute is
// its name, and the members or keys of the attribute are the columns.
type LockFamily struct {
	Name      string `json:"name"`
	Versions  int    `json:"versions,omitempty"`
	MaxAge    string `json:"maxAge,omitempty"`
	Attribute string `json:"attribute,omitempty"`
}

// JSON returns the text of the lock file.
func (l Lock) JSON() ([]byte, error) {
	text, err := json.MarshalIndent(l, "", "  ")
	return append(text, '\n'), err
}

// ParseLock strictly parses a text that Lock.JSON returned.
func ParseLock(text []byte) (Lock, error) {
	var l Lock
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(&l); err != nil {
		return Lock{}, fmt.Errorf("%s: %w", LockFile, err)
	}
	if l.APIVersion != APIVersion {
		return Lock{}, fmt.Errorf("%s: apiVersion %q; expected %s", LockFile, l.APIVersion, APIVersion)
	}
	return l, nil
}

// Changes returns the differences between the mappings with the locks l and now, one line each. It
// returns nil if both mappings produce the same rows according to their locks.
func (l Lock) Changes(now Lock) []string {
	var changes []string
	differ := func(what, was, is string) {
		if was != is {
			changes = append(changes, fmt.Sprintf("%s was %s, and is %s", what, was, is))
		}
	}
	differ("the Bigtable table", l.Target, now.Target)
	differ("the DynamoDB table", l.Source, now.Source)
	differ("the joiner", l.Joiner, now.Joiner)
	differ("the first element of a list", fmt.Sprint(l.ListEpoch), fmt.Sprint(now.ListEpoch))
	family := func(f LockFamily) string {
		text := "declared"
		if f.Versions > 0 {
			text += fmt.Sprintf(" versions %d", f.Versions)
		}
		if f.MaxAge != "" {
			text += " maxAge " + f.MaxAge
		}
		if f.Attribute != "" {
			text += " of attribute " + f.Attribute
		}
		return text
	}
	was, is := map[string]string{}, map[string]string{}
	for _, f := range l.Families {
		was[f.Name] = family(f)
	}
	for _, f := range now.Families {
		is[f.Name] = family(f)
	}
	all := maps.Clone(was)
	maps.Copy(all, is)
	for _, name := range slices.Sorted(maps.Keys(all)) {
		a, b := was[name], is[name]
		if a == "" {
			a = "not there"
		}
		if b == "" {
			b = "not there"
		}
		differ("family "+name, a, b)
	}
	differ("the shared family", strings.Join(l.Shared, " "), strings.Join(now.Shared, " "))
	if len(changes) == 0 && l.Hash != now.Hash {
		changes = append(changes, "the rules or the schema of the mapping differ")
	}
	return changes
}
