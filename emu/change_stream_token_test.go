package emu_test

import (
	"fmt"
	"reflect"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/tabletop-emu/tabletop/emu/internal/changes"
)

// TestTrap110_AnyCut: property (b) of change streams. However partitions are
// split and merged while encoded tokens read them, each record is delivered
// once, and those of a row in order.
func TestTrap110_AnyCut(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		type record struct {
			number uint64
			row    string
		}
		var journal []record
		got := map[record]int{}
		last := map[string]uint64{}
		key := rapid.StringMatching("[a-d][a-c]?")
		splits := [][]byte{}
		readers := []changes.Token{{Table: 1, Since: 1, Partition: changes.Split(nil)[0]}}
		read := func(r *changes.Token, n int) {
			for _, rec := range journal {
				if rec.number <= r.Position.Number || n == 0 {
					continue
				}
				wants := r.Partition.Contains([]byte(rec.row)) && r.Position.Wants([]byte(rec.row), "", rec.number)
				r.Position.Advance(rec.number)
				if wants {
					n--
					got[rec]++
					if rec.number <= last[rec.row] {
						t.Fatalf("record %d of %s follows %d", rec.number, rec.row, last[rec.row])
					}
					last[rec.row] = rec.number
				}
			}
		}
		for range rapid.IntRange(0, 60).Draw(t, "steps") {
			switch rapid.IntRange(0, 3).Draw(t, "what") {
			case 0, 1:
				journal = append(journal, record{uint64(len(journal) + 2), key.Draw(t, "row")})
			case 2:
				r := rapid.IntRange(0, len(readers)-1).Draw(t, "reader")
				read(&readers[r], rapid.IntRange(0, 5).Draw(t, "records"))
			case 3:
				at := []byte(key.Draw(t, "key"))
				if i, found := slices.BinarySearchFunc(splits, at, slices.Compare); found {
					splits = slices.Delete(splits, i, i+1)
				} else {
					splits = slices.Insert(splits, i, at)
				}
				// The readers stop, and new ones begin with their tokens.
				tokens := map[string][]changes.Token{}
				for _, r := range readers {
					parts, next := changes.Leave(r.Partition, changes.Split(splits))
					for i, part := range parts {
						token := r
						token.Partition, token.Position = part, r.Position.Within(part)
						decoded, err := changes.Decode(token.Encode())
						if err != nil {
							t.Fatal(err)
						}
						name := fmt.Sprintf("%q", next[i])
						tokens[name] = slices.Insert(tokens[name], 0, decoded)
					}
				}
				readers = readers[:0]
				for _, p := range changes.Split(splits) {
					position, err := changes.Join(p, tokens[fmt.Sprintf("%q", p)])
					if err != nil {
						t.Fatalf("the tokens %v", err)
					}
					readers = append(readers, changes.Token{Table: 1, Since: 1, Partition: p, Position: position})
				}
			}
		}
		for i := range readers {
			read(&readers[i], len(journal)+1)
		}
		for _, rec := range journal {
			if got[rec] != 1 {
				t.Fatalf("record %d of %s was delivered %d times", rec.number, rec.row, got[rec])
			}
		}
	})
}

func FuzzChangesToken(f *testing.F) {
	token := changes.Token{Table: 7, Since: 3, Partition: changes.Partition{Start: []byte("a"), End: []byte{}}, Position: changes.Position{Number: 300}}
	f.Add(token.Encode())
	token.Position.Ahead = []changes.Ahead{{Partition: changes.Partition{Start: []byte("b"), End: []byte("c")}, Number: 500}}
	f.Add(token.Encode())
	token.Position.Ahead[0].Origin = "c1"
	f.Add(token.Encode())
	f.Add("")
	f.Fuzz(func(t *testing.T, text string) {
		token, err := changes.Decode(text)
		if err != nil {
			return
		}
		again, err := changes.Decode(token.Encode())
		if err != nil || !reflect.DeepEqual(again, token) {
			t.Fatalf("%+v comes back as %+v, %v", token, again, err)
		}
	})
}
