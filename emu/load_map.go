package emu

import (
	"time"

	"github.com/tabletop-emu/tabletop/internal/heat"
)

// LoadPlace identifies a table in a cluster for which load was counted.
type LoadPlace struct {
	Cluster string // a cluster id
	Table   string // a table's resource name
}

// LoadCounts holds the counts of requests to a range of keys.
type LoadCounts struct {
	Reads, Writes uint64 // requests, including failed ones; a request counts at its first key
	Rows          uint64 // rows read or written, counted at each row
	Bytes         uint64 // size of the keys and contents read or written, counted at each row
	Errors        uint64 // failed requests, and failed entries of bulk writes
}

// LoadMap holds the load by key and time.
type LoadMap struct {
	Keys    []LoadKeys   // ranges of about equal load
	Columns []LoadColumn // columns with counts, oldest first
}

// LoadKeys is the range of keys from First to Last, inclusive. Both are keys with counts; they are
// equal if the range has one key.
type LoadKeys struct {
	First, Last []byte
	LoadCounts
}

// LoadColumn holds the counts of a period of time that begins at Start.
type LoadColumn struct {
	Start time.Time
	Cells []LoadCounts // parallel to LoadMap.Keys
}

// LoadPlaces returns the places for which load was counted, sorted by table and cluster; see
// Options.CountLoad.
func (s *Server) LoadPlaces() []LoadPlace {
	found := s.heat.Places()
	out := make([]LoadPlace, len(found))
	for i, p := range found {
		out[i] = LoadPlace(p)
	}
	return out
}

// LoadMap returns the total load of places, such as a table in each of its clusters. It has the
// columns that begin in [from, to), and at most n ranges of keys. A column covers at least step, in
// whole seconds; older columns cover more. Counts are kept for 24 hours.
func (s *Server) LoadMap(from, to time.Time, step time.Duration, n int, places ...LoadPlace) LoadMap {
	of := make([]heat.Place, len(places))
	for i, p := range places {
		of[i] = heat.Place(p)
	}
	m := s.heat.Map(from, to, step, n, of...)
	out := LoadMap{Keys: make([]LoadKeys, len(m.Keys)), Columns: make([]LoadColumn, len(m.Columns))}
	for i, k := range m.Keys {
		out.Keys[i] = LoadKeys{First: k.First, Last: k.Last, LoadCounts: LoadCounts(k.Counts)}
	}
	for i, c := range m.Columns {
		cells := make([]LoadCounts, len(c.Cells))
		for j, n := range c.Cells {
			cells[j] = LoadCounts(n)
		}
		out.Columns[i] = LoadColumn{Start: c.Start, Cells: cells}
	}
	return out
}
