package infer

import (
	"context"
	"fmt"
	"iter"

	"github.com/tabletop-emu/tabletop/facade/mapping"
	"github.com/tabletop-emu/tabletop/internal/layout"
	"github.com/tabletop-emu/tabletop/migrate/source"
)

// The bounds of memory.
const (
	// maxFamilies bounds the set and map attributes that get a separate family: Bigtable
	// recommends at most about a hundred families per table.
	maxFamilies = 90
	// maxSchemaNames bounds the attributes, and the keys of one map, that have a type each. A
	// map with more keys is a dictionary: one type for all.
	maxSchemaNames = 2000
	// maxCandidates bounds the attributes of the first item that the first pass tests as keys.
	// Each further attribute costs another pass.
	maxCandidates = 4
	// maxMixed bounds the attributes of several types that are reported one by one.
	maxMixed = 20
	// maxRepeats bounds the repeated values of one attribute that are kept.
	maxRepeats = 100_000
)

// Options configures Table. The zero value is ready to use.
type Options struct {
	// Progress, if set, is called periodically.
	Progress func(source.Progress)

	// TempDir is the folder for the hashes of large tables. Default: the temporary folder
	// of the system.
	TempDir string

	// OpenJoiner leaves the choice of the row key's joiner to the caller, who lays out
	// all items anyway and can then decide. Default: Table chooses the joiner, in one
	// more pass.
	OpenJoiner bool
}

// Choice is a decision that the inference made, with its reason.
type Choice struct {
	What   string `json:"what"`   // subject of the decision, such as "key"
	Chosen string `json:"chosen"` // decision
	Why    string `json:"why"`    // reason for the decision
}

// Inferred is a mapping that was inferred from the data.
type Inferred struct {
	Mapping *mapping.Mapping // mapping to use, or to write to a file
	Choices []Choice         // choices, in the order in which they were made
	Items   int64            // number of items in the table
	// Warnings are open questions about the data, such as a guessed key or values that
	// may be errors. Each is one sentence that names the table.
	Warnings []string
}

// Table finds a lossless mapping for a table from its description, if it has one, and
// from all of its data. It reads the data two to four times.
//
// One item becomes one row. The key is the declared key. If none is declared, the key is
// the pair of attributes named PK and SK, in upper or lower case. Otherwise it is the
// first attribute of type S, N or B, in file order, that has a different value in every
// item. A key that is not declared is a guess, with a warning. Table checks that all
// items have different keys, and returns an error if guessed names fail this check.
//
// The type of an attribute, or of a map key, is the type of most of its values, so that
// only the other values need a sidecar cell. Choices lists each attribute of several
// types with their shares. Warnings lists those with so few other values that these may
// be errors. Sets and maps get families. The joiner of the row key is plain('#') if every
// key in the data allows it, and escaped('#') otherwise.
//
// Table returns a [source.Error] if the data is damaged or has no key, or the error of
// ctx.
func Table(ctx context.Context, t *source.Table, o Options) (*Inferred, error) {
	p, err := profileOf(ctx, t, o)
	defer p.close()
	if err != nil {
		return nil, err
	}
	in := &Inferred{Items: p.items}
	for _, doubt := range t.Doubts() {
		in.Warnings = append(in.Warnings, fmt.Sprintf("table %s: %s", t.Name, doubt))
	}
	key, err := in.key(ctx, t, p, o)
	if err != nil {
		return nil, err
	}
	spec := in.spec(t, key, p)
	m, err := layout.Compile(spec)
	if err != nil {
		return nil, fmt.Errorf("compiling the inferred mapping of table %s: %w", t.Name, err)
	}
	if !o.OpenJoiner {
		if m, err = in.joiner(ctx, t, m, o); err != nil {
			return nil, err
		}
	}
	in.Mapping = (*mapping.Mapping)(m)
	return in, nil
}

// entriesOf returns the table's entries for one pass, which stops when ctx ends and reports its
// progress.
func entriesOf(ctx context.Context, t *source.Table, o Options) iter.Seq2[source.Entry, error] {
	return func(yield func(source.Entry, error) bool) {
		n := int64(0)
		for e, err := range t.Entries() {
			if err == nil {
				err = ctx.Err()
			}
			if !yield(e, err) || err != nil {
				return
			}
			if n++; n%256 == 0 && o.Progress != nil {
				o.Progress(source.Progress{Table: t.Name, Phase: "inferring", Items: n, Total: t.Total(n)})
			}
		}
	}
}

func (in *Inferred) chose(what, chosen, why string, args ...any) {
	in.Choices = append(in.Choices, Choice{what, chosen, fmt.Sprintf(why, args...)})
}
