package changelog

import (
	"bytes"
	"context"
	"maps"
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

// memoryRegistry is a registry in memory.
type memoryRegistry struct {
	mu     sync.Mutex
	rows   map[uint64]Registration
	past   uint64
	stored int
	listed func() // runs before a list is made
}

func (m *memoryRegistry) Put(ctx context.Context, own Registration, create bool) (bool, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if _, ok := m.rows[own.Epoch]; !ok && !create {
		return false, nil
	}
	if ctx.Err() != nil {
		return false, ctx.Err()
	}
	if m.rows == nil {
		m.rows = map[uint64]Registration{}
	}
	back, err := ParseRegistration(own.Append(nil))
	m.rows[own.Epoch] = back
	m.stored++
	return true, err
}

func (m *memoryRegistry) List(context.Context) (all []Registration, past uint64, err error) {
	if m.listed != nil {
		m.listed()
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Collect(maps.Values(m.rows)), m.past, nil
}

func (m *memoryRegistry) remove(epoch uint64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.past = max(m.past, m.rows[epoch].Ceiling)
	delete(m.rows, epoch)
}

// A new process assigns no number below a ceiling that another stored before it could see
// this one.
func TestSequencer_Joins(t *testing.T) {
	t.Parallel()
	ctx, now, kept := t.Context(), time.Unix(1000, 0), &memoryRegistry{}
	other := Registration{Epoch: 7, Ceiling: SequenceAt(now.Add(time.Hour)), Floor: 5}
	kept.listed = func() {
		if _, there := kept.rows[1]; !there {
			t.Error("it looked for others before they could see it")
		}
		kept.rows[7] = other
	}
	s := NewSequencer(func() time.Time { return now }, func() time.Duration { return 0 }, kept)
	s.Start(1, "")
	h, err := s.Hold(ctx)
	if err != nil {
		t.Fatal(err)
	}
	p, err := h.Next(ctx, 0)
	if own := kept.rows[1]; err != nil || p.Sequence <= other.Ceiling || own.Ceiling <= p.Sequence || own.Floor <= other.Ceiling {
		t.Errorf("%d with the registration %+v, %v; another process had %d", p.Sequence, own, err, other.Ceiling)
	}
	if f, err := s.Floor(ctx); f != other.Floor || err != nil {
		t.Errorf("the floor is %d, %v, want that of the other, %d", f, err, other.Floor)
	}
}

// A process alone publishes only its ceiling, once per second of its clock, however often the
// floor is read.
func TestSequencer_Alone(t *testing.T) {
	t.Parallel()
	ctx, now, kept := t.Context(), time.Unix(1000, 0), &memoryRegistry{}
	s := NewSequencer(func() time.Time { return now }, func() time.Duration { return 0 }, kept)
	s.Start(1, "")
	for range 100 {
		if _, err := s.Floor(ctx); err != nil {
			t.Fatal(err)
		}
		if _, err := s.Renew(ctx, true); err != nil {
			t.Fatal(err)
		}
	}
	if kept.stored != 1 {
		t.Errorf("it stored its registration %d times", kept.stored)
	}
}

// If a process stored its registration twice, without knowing that the first time succeeded,
// others follow it, and consider it dead once it is.
func TestSequencer_StoredTwice(t *testing.T) {
	t.Parallel()
	ctx, now, elapsed := t.Context(), time.Unix(1000, 0), time.Duration(0)
	other := Registration{Epoch: 7, Renewed: 5, Floor: 5, Ceiling: 10}
	kept := &memoryRegistry{rows: map[uint64]Registration{7: other}}
	s := NewSequencer(func() time.Time { return now }, func() time.Duration { return elapsed }, kept)
	s.Start(1, "")
	if f, err := s.Floor(ctx); f != 5 || err != nil {
		t.Fatalf("the floor is %d, %v", f, err)
	}
	other.Floor, other.Ceiling = 20, 30
	kept.rows[7] = other
	if f, err := s.Floor(ctx); f != 20 || err != nil {
		t.Errorf("the floor is %d, %v, want 20", f, err)
	}
	for range 2 + deadAfter/Beat {
		elapsed += Beat
		if _, err := s.Renew(ctx, false); err != nil {
			t.Fatal(err)
		}
	}
	if dead := s.Dead(); len(dead) != 1 || dead[0] != other {
		t.Errorf("%+v are dead, want %+v", dead, other)
	}
}

// A process that others considered dead does not claim a floor for what they have written
// since.
func TestSequencer_FloorOfTheDead(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	now, elapsed, kept := time.Unix(1000, 0), time.Duration(0), &memoryRegistry{}
	s := NewSequencer(func() time.Time { return now }, func() time.Duration { return elapsed }, kept)
	s.Start(1, "")
	before, err := s.Floor(ctx)
	if err != nil {
		t.Fatal(err)
	}
	kept.remove(1)
	now, elapsed = now.Add(time.Minute), elapsed+time.Minute
	cancel() // it learns only that it was removed
	if _, err := s.Floor(ctx); err == nil {
		t.Fatal("it went on without others")
	}
	// Another call was about to read the floor.
	if f, _ := s.floors(); f > before+aheadNanos {
		t.Errorf("the floor is %d, above the ceiling of %d", f, before+aheadNanos)
	}
}

// Processes whose clocks differ by 20 seconds are killed and start again: a reader below the
// floors sees every number once and in order, those of an item in the order of its writes,
// and all of them once nobody writes.
func TestSequencer_Model(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		ctx, wall, elapsed, kept := context.Background(), time.Unix(1000, 0), time.Duration(0), &memoryRegistry{}
		type write struct {
			hold *Hold
			p    Position
		}
		type process struct {
			*Sequencer
			open  []write
			floor uint64            // last floor of its reader
			read  map[Position]bool // by its reader
		}
		var all []*process
		var log []Position
		var item, cell Position // the last record of one item, and its record cell in the row
		epoch := uint64(0)
		begin := func() {
			epoch++
			skew := time.Duration(rapid.IntRange(-10, 10).Draw(t, "skew")) * time.Second
			s := NewSequencer(func() time.Time { return wall.Add(skew) }, func() time.Duration { return elapsed }, kept)
			s.Start(epoch, "")
			all = append(all, &process{Sequencer: s, read: map[Position]bool{}})
		}
		begin()
		one := func() *process { return all[rapid.IntRange(0, len(all)-1).Draw(t, "process")] }
		settle := func(p *process) {
			for _, w := range p.open { // a process that takes over appends them
				log = append(log, w.p)
				w.hold.Release()
			}
			p.open = nil
		}
		gone := map[uint64]*process{} // killed, and not noticed yet
		bury := func(p *process) {
			for _, r := range p.Dead() {
				of := gone[r.Epoch]
				if of == nil { // it believes to be alone, and does nothing
					of = all[slices.IndexFunc(all, func(p *process) bool { return p.own.Epoch == r.Epoch })]
					if _, alone := of.stands(); !alone {
						t.Fatalf("process %d is taken for dead and is alive", r.Epoch)
					}
				}
				settle(of)
				delete(gone, r.Epoch)
				kept.remove(r.Epoch)
				p.Buried(r)
			}
		}
		beat := func() {
			elapsed += Beat
			for _, p := range all {
				if _, err := p.Renew(ctx, false); err != nil {
					t.Fatal(err)
				}
				bury(p)
			}
		}
		read := func(p *process) {
			f, err := p.Floor(ctx)
			if err != nil || f < p.floor {
				t.Fatalf("the floor is %d after %d, %v", f, p.floor, err)
			}
			for _, at := range log {
				if at.Sequence >= p.floor && at.Sequence < f {
					p.read[at] = true
				}
			}
			p.floor = f
		}
		t.Repeat(map[string]func(*rapid.T){
			"begin": func(t *rapid.T) {
				p := one()
				h, err := p.Hold(ctx)
				if err != nil {
					t.Fatal(err)
				}
				at, err := h.Next(ctx, uint64(rapid.IntRange(0, 1500).Draw(t, "above"))*uint64(time.Second))
				if err != nil {
					t.Fatal(err)
				}
				p.open = append(p.open, write{h, at})
			},
			"append": func(t *rapid.T) {
				p := one()
				if len(p.open) == 0 {
					t.Skip("nothing is open")
				}
				i := rapid.IntRange(0, len(p.open)-1).Draw(t, "write")
				log = append(log, p.open[i].p)
				p.open[i].hold.Release()
				p.open = slices.Delete(p.open, i, i+1)
			},
			"item": func(t *rapid.T) { // a complete write of the one item
				p := one()
				h, err := p.Hold(ctx)
				if err != nil {
					t.Fatal(err)
				}
				at, err := h.Next(ctx, cell.Sequence)
				if err != nil || at.Compare(item) <= 0 {
					t.Fatalf("a write of the item has %v after %v, %v", at, item, err)
				}
				log = append(log, at)
				h.Release()
				item, cell = at, at
			},
			"clear": func(t *rapid.T) { // its record cell is deleted
				p := one()
				if uint64(cell.Writer) != p.own.Epoch {
					t.Skip("another process has written it")
				}
				if passed, alone := p.Passed(); alone || cell.Sequence < passed {
					cell = Position{}
				}
			},
			"advance": func(t *rapid.T) {
				wall = wall.Add(time.Duration(rapid.IntRange(0, 5000).Draw(t, "ms")) * time.Millisecond)
			},
			"beat": func(*rapid.T) { beat() },
			"start": func(t *rapid.T) {
				if len(all) == 3 {
					t.Skip("there are enough")
				}
				begin()
			},
			"kill": func(t *rapid.T) {
				i := rapid.IntRange(0, len(all)-1).Draw(t, "process")
				p := all[i]
				all = slices.Delete(all, i, i+1)
				if _, there := kept.rows[p.own.Epoch]; there {
					gone[p.own.Epoch] = p
				}
				if len(all) == 0 {
					begin()
				}
			},
			"leave": func(t *rapid.T) {
				i := rapid.IntRange(0, len(all)-1).Draw(t, "process")
				p := all[i]
				settle(p)
				kept.remove(p.own.Epoch)
				if all = slices.Delete(all, i, i+1); len(all) == 0 {
					begin()
				}
			},
			"read": func(*rapid.T) { read(one()) },
			"": func(t *rapid.T) {
				for _, p := range all {
					for _, at := range log {
						if at.Sequence < p.floor && !p.read[at] {
							t.Fatalf("%d was added below the floor %d", at.Sequence, p.floor)
						}
					}
				}
			},
		})
		// Nobody writes any more: after a while everything in the log is readable, and a
		// killed process blocks nobody.
		for _, p := range all {
			settle(p)
		}
		for range 40 {
			beat()
			for _, p := range all {
				read(p)
				bury(p)
			}
		}
		for _, p := range all {
			if read(p); len(p.read) != len(log) {
				t.Fatalf("%d of %d records can be read below %d", len(p.read), len(log), p.floor)
			}
		}
	})
}
