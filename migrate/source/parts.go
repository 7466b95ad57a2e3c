package source

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"iter"
	"slices"
	"strconv"
	"strings"
)

// Part selects one part of a source that is divided into Of parts. Index counts from 1.
// The zero value selects the whole source.
type Part struct{ Index, Of int }

// ParsePart parses the text that String returns.
func ParsePart(text string) (p Part, err error) {
	index, of, found := strings.Cut(text, "/")
	if found {
		if p.Index, err = strconv.Atoi(index); err == nil {
			p.Of, err = strconv.Atoi(of)
		}
	}
	if !found || err != nil || p.Index < 1 || p.Index > p.Of {
		return Part{}, fmt.Errorf("%.40q is not a part: expected I/N, such as 3/10, with I from 1 to N", text)
	}
	return p, nil
}

// String returns the part in the form "3/10".
func (p Part) String() string { return fmt.Sprintf("%d/%d", p.Index, p.Of) }

// Part returns the source restricted to the data files of one part. Each file goes to the
// part with the fewest items so far, so every process that opens the same exports divides
// them in the same way. Only full exports to S3 can be divided.
func (s *Source) Part(p Part) (*Source, error) {
	if p.Index < 1 || p.Index > p.Of {
		return nil, Damaged(Unsupported, Position{File: s.Path}, nil, "there is no part %v: expected I/N with I from 1 to N", p)
	}
	if err := s.whole(); err != nil {
		return nil, err
	}
	mine := *s
	mine.Tables = nil
	items := make([]int64, p.Of)
	n := 0
	for _, t := range s.Tables {
		share := *t.export
		share.files, share.items = nil, 0
		for _, f := range t.export.files {
			part := slices.Index(items, slices.Min(items))
			items[part] += 1 + *f.ItemCount // an empty file is work, too
			n++
			if part == p.Index-1 {
				share.files = append(share.files, f)
				share.items += *f.ItemCount
			}
		}
		table := *t
		table.export, table.Declared, table.entries = &share, share.items, share.entries(t.tree)
		mine.Tables = append(mine.Tables, &table)
	}
	if p.Of > n {
		return nil, Damaged(Unsupported, Position{File: s.Path}, nil, "the source has %d data files, too few for %d parts: each part needs at least one", n, p.Of)
	}
	return &mine, nil
}

// whole returns an error if a source cannot be divided.
func (s *Source) whole() error {
	for _, t := range s.Tables {
		switch {
		case t.changes != nil:
			return Damaged(Unsupported, Position{File: s.Path}, nil,
				"table %s has incremental exports or change records, whose changes concern items of any part: load the full export alone in parts, and then everything without parts", t.Name)
		case t.export == nil:
			return Damaged(Unsupported, Position{File: s.Path}, nil, "only the data files of an export to S3 can be divided into parts, but this is %s", s.Format)
		}
	}
	return nil
}

// Fingerprint returns a text that identifies the data files of the source. It reads only
// their manifests. It works only for sources that can be divided into parts.
func (s *Source) Fingerprint() (string, error) {
	if err := s.whole(); err != nil {
		return "", err
	}
	h := sha256.New()
	for _, t := range s.Tables {
		_, _ = fmt.Fprintf(h, "%q %d\n", t.Name, t.ExportTime.UnixNano())
		for _, f := range t.export.files {
			_, _ = fmt.Fprintf(h, "%q %q %d\n", f.DataFileS3Key, f.MD5Checksum, *f.ItemCount)
		}
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

// sampledItems is the approximate number of items in a Sample of an export.
const sampledItems = 10_000

// Sample streams items that are representative of the table, and always the same ones. For an
// export, these are the first items of each data file, before any MD5 check; Sample skips
// unreadable ones. For other sources, they are all items up to the first unreadable one. A
// complete pass reports unreadable items.
func (t *Table) Sample() iter.Seq[Entry] {
	return func(yield func(Entry) bool) {
		if t.export == nil {
			for e, err := range t.Entries() {
				if err != nil || !yield(e) {
					return
				}
			}
			return
		}
		each := max(1, sampledItems/max(1, len(t.export.files)))
		for _, f := range t.export.files {
			if !t.head(f, each, yield) {
				return
			}
		}
	}
}

// head yields the readable ones of the first `most` items of a data file. more is false if
// yield stopped.
func (t *Table) head(f exportFile, most int, yield func(Entry) bool) (more bool) {
	in, err := t.tree.open(f.path)
	if err != nil {
		return true
	}
	defer in.close()
	l := in.lines()
	for range most {
		text, err := l.next()
		if err != nil {
			return true
		}
		e, err := parseEntry(text, wrappedItem, l.at())
		if err == nil {
			err = t.checkKey(e)
		}
		if err == nil && !yield(e) {
			return false
		}
	}
	return true
}
