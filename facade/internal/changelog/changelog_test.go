package changelog

import (
	"bytes"
	"context"
	"slices"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/tabletop-emu/tabletop/facade/attr"
)

func TestRecord_RoundTrip(t *testing.T) {
	t.Parallel()
	item := rapid.Custom(func(t *rapid.T) attr.Item {
		if rapid.Bool().Draw(t, "none") {
			return nil
		}
		return attr.Item{"pk": attr.Value{Type: attr.S, Str: rapid.String().Draw(t, "text")}}
	})
	rapid.Check(t, func(t *rapid.T) {
		r := Record{
			Kind:    rapid.SampledFrom([]Kind{Insert, Modify, Remove}).Draw(t, "kind"),
			Expired: rapid.Bool().Draw(t, "expired"), Origin: rapid.String().Draw(t, "origin"),
			Key: ImageOf(attr.Item{"pk": attr.Int(1)}), Old: ImageOf(item.Draw(t, "old")), New: ImageOf(item.Draw(t, "new")),
		}
		text := r.Append(nil)
		back, err := ParseRecord(text)
		if err != nil || !bytes.Equal(back.Append(nil), text) || back.Origin != r.Origin || back.Expired != r.Expired || back.New.Size != r.New.Size {
			t.Fatalf("%+v came back as %+v, %v", r, back, err)
		}
		for n := range text {
			if _, err := ParseRecord(text[:n]); err == nil {
				t.Fatalf("%d of %d bytes are taken for a record", n, len(text))
			}
		}
	})
}

func FuzzParseRecord(f *testing.F) {
	r := Record{Kind: Modify, Key: ImageOf(attr.Item{"a": attr.Int(1)}), Origin: "x"}
	f.Add(r.Append(nil))
	f.Fuzz(func(t *testing.T, data []byte) {
		if r, err := ParseRecord(data); err == nil {
			if again, err := ParseRecord(r.Append(nil)); err != nil || again.Kind != r.Kind {
				t.Errorf("%x: %+v, then %+v, %v", data, r, again, err)
			}
		}
	})
}

func TestPosition_Orders(t *testing.T) {
	t.Parallel()
	draw := rapid.Custom(func(t *rapid.T) Position {
		return Position{rapid.Uint64().Draw(t, "sequence"), rapid.Uint16().Draw(t, "writer")}
	})
	rapid.Check(t, func(t *rapid.T) {
		a, b := draw.Draw(t, "a"), draw.Draw(t, "b")
		if back, ok := ParsePosition(a.String()); !ok || back != a {
			t.Fatalf("%v came back as %v, %v", a, back, ok)
		}
		want := a.Compare(b)
		if got := bytes.Compare([]byte(a.String()), []byte(b.String())); got != want {
			t.Errorf("texts compare as %d, positions as %d", got, want)
		}
		if got := bytes.Compare(Key(7, a), Key(7, b)); got != want {
			t.Errorf("keys compare as %d, positions as %d", got, want)
		}
	})
}

func FuzzParsePosition(f *testing.F) {
	f.Add(Position{1, 2}.String())
	f.Fuzz(func(t *testing.T, s string) {
		if p, ok := ParsePosition(s); ok && p.String() != s {
			t.Errorf("%q is read as %v", s, p)
		}
	})
}

// memoryCeilings are those of a catalog.
type memoryCeilings struct {
	mu     sync.Mutex
	at     uint64
	stored int
	others func() uint64 // nil: there are none
}

func (m *memoryCeilings) Others(context.Context) (uint64, int, error) {
	if m.others == nil {
		return 0, 0, nil
	}
	return m.others(), 1, nil
}

// A process that begins gives out nothing below what another reserved before it could
// see this one.
func TestSequencer_Joins(t *testing.T) {
	t.Parallel()
	ctx, now, kept := t.Context(), time.Unix(1000, 0), &memoryCeilings{}
	other := SequenceAt(now.Add(time.Hour))
	kept.others = func() uint64 {
		if kept.stored == 0 {
			t.Error("it looked for others before they could see it")
		}
		return other
	}
	h, err := NewSequencer(func() time.Time { return now }, kept).Hold(ctx)
	if err != nil {
		t.Fatal(err)
	}
	p, err := h.Next(ctx, 0)
	if err != nil || p.Sequence <= other || kept.at <= p.Sequence {
		t.Errorf("%d with the ceiling %d, %v; another process had %d", p.Sequence, kept.at, err, other)
	}
}

func (m *memoryCeilings) Load(context.Context) (uint64, error) { return m.at, nil }
func (m *memoryCeilings) Store(_ context.Context, at uint64) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.at = max(m.at, at)
	m.stored++
	return nil
}

// Who reads below floors sees every number once and in order, whatever the clock
// does and however often the process starts anew.
func TestSequencer_Model(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		ctx, now, kept := context.Background(), time.Unix(1000, 0), &memoryCeilings{}
		s := NewSequencer(func() time.Time { return now }, kept)
		type write struct {
			hold *Hold
			p    Position
		}
		var open []write
		var log, read []uint64
		var floor uint64
		t.Repeat(map[string]func(*rapid.T){
			"begin": func(t *rapid.T) {
				h, err := s.Hold(ctx)
				if err != nil {
					t.Fatal(err)
				}
				p, err := h.Next(ctx, uint64(rapid.IntRange(0, 3000).Draw(t, "above"))*uint64(time.Second))
				if err != nil {
					t.Fatal(err)
				}
				open = append(open, write{h, p})
			},
			"append": func(t *rapid.T) {
				if len(open) == 0 {
					t.Skip("nothing is open")
				}
				i := rapid.IntRange(0, len(open)-1).Draw(t, "write")
				log = append(log, open[i].p.Sequence)
				open[i].hold.Release()
				open = slices.Delete(open, i, i+1)
			},
			"advance": func(t *rapid.T) {
				now = now.Add(time.Duration(rapid.IntRange(0, 5000).Draw(t, "ms")) * time.Millisecond)
			},
			"restart": func(*rapid.T) {
				for _, w := range open { // recovery appends them
					log = append(log, w.p.Sequence)
				}
				open, s = nil, NewSequencer(func() time.Time { return now }, kept)
			},
			"read": func(t *rapid.T) {
				f, err := s.Floor(ctx)
				if err != nil || f < floor {
					t.Fatalf("the floor is %d after %d, %v", f, floor, err)
				}
				slices.Sort(log)
				for _, n := range log {
					if n >= floor && n < f {
						read = append(read, n)
					}
				}
				floor = f
			},
			"": func(t *rapid.T) {
				for _, n := range log {
					if n < floor && !slices.Contains(read, n) {
						t.Fatalf("%d was added below the floor %d", n, floor)
					}
				}
				if len(log) != len(slices.Compact(slices.Sorted(slices.Values(log)))) {
					t.Fatal("a number was given out twice")
				}
			},
		})
	})
}
