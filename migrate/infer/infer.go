package infer

import (
	"context"
	"fmt"
	"iter"

	"github.com/tabletop-emu/tabletop/facade/mapping"
	"github.com/tabletop-emu/tabletop/internal/layout"
	"github.com/tabletop-emu/tabletop/migrate/source"
)

// The bounds of what inference keeps in memory.
const (
	// maxFamilies is how many set and map attributes get families of their
	// own: Bigtable advises at most about a hundred a table.
	maxFamilies = 90
	// maxSchemaNames bounds the attributes, and the keys of one map, whose
	// types are told one by one. Maps of more keys are dictionaries: one type
	// stands for all.
	maxSchemaNames = 2000
	// maxCandidates is how many attributes of the first item are looked at as
	// keys in the first pass. Each further one costs a pass of its own.
	maxCandidates = 4
	// maxMixed is how many attributes of several types are told one by one.
	maxMixed = 20
	// maxRepeats is how many values of one attribute that came twice are kept.
	maxRepeats = 100_000
)

// Options configure Table. The zero value is ready to use.
type Options struct {
	// Progress is called now and then, if it is set.
	Progress func(source.Progress)

	// TempDir is where the hashes of large tables go. Default: the system's.
	TempDir string

	// OpenJoiner leaves the joiner of the row key open, for a caller that lays all
	// items out anyway and can tell by them. Default: it is decided, in one pass more.
	OpenJoiner bool
}

// Choice is something that inference decided, and why.
type Choice struct {
	What   string `json:"what"`   // was decided: "key"
	Chosen string `json:"chosen"` // what it came to
	Why    string `json:"why"`    // the reason
}

// Inferred is a mapping found from the data.
type Inferred struct {
	Mapping *mapping.Mapping // ready to use, or to be written as a file
	Choices []Choice         // in the order in which they were made
	Items   int64            // that the table has
	// Warnings are what the data alone cannot tell, or tells of itself: a key that
	// is a guess, values that may be errors. One sentence each, that names the table.
	Warnings []string
}

// Table finds a lossless mapping for a table from its description, as far as
// there is one, and from all of its data. It reads the data two to four times.
//
// One item becomes one row. The key is the declared one; else attributes named
// PK and SK in any case; else the first S, N or B attribute, in the order of
// the file, that has a different value in every item. For a key that is not declared,
// Infer returns a warning, since it is a guess. Infer checks that all items have
// different keys; if names were guessed that fail this check, it returns an error.
//
// The type of an attribute, or of a map key, is the type of most of its values: only other
// values need a sidecar cell. Infer lists each such attribute with the shares of its types,
// and warns if so few values deviate that they may be errors. Sets and maps get families.
// The joiner of the row key is plain('#') if every key of the data allows it, else
// escaped('#').
//
// Errors: a [source.Error] where the data is damaged or has no key; ctx's.
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

// entriesOf are the table's entries for one pass: they end with ctx, and say how far
// it is.
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
				o.Progress(source.Progress{Table: t.Name, Phase: "inferring", Items: n, Total: t.Declared})
			}
		}
	}
}

func (in *Inferred) chose(what, chosen, why string, args ...any) {
	in.Choices = append(in.Choices, Choice{what, chosen, fmt.Sprintf(why, args...)})
}
