package emu

import (
	"time"

	"github.com/tabletop-emu/tabletop/internal/heat"
)

// LoadPlace is a table in a cluster with counted load.
type LoadPlace struct {
	Cluster string // an id
	Table   string // a resource name
}

// LoadCounts are the counts of requests to some keys.
type LoadCounts struct {
	Reads, Writes uint64 // requests, including failed ones; a request counts at its first key
	Rows          uint64 // rows read or written, counted at each row
	Bytes         uint64 // of keys and contents read or written, counted at each row
	Errors        uint64 // failed requests, and failed entries of bulk writes
}

// LoadMap is the load by key and time.
type LoadMap struct {
	Keys    []LoadKeys   // ranges of about equal load
	Columns []LoadColumn // columns with counts, oldest first
}

// LoadKeys are the counts of the keys from First to Last, inclusive. Both are counted keys;
// they are equal in a range of one key.
type LoadKeys struct {
	First, Last []byte
	LoadCounts
}

// LoadColumn are the counts of a span of time that begins at Start.
type LoadColumn struct {
	Start time.Time
	Cells []LoadCounts // parallel to LoadMap.Keys
}

// LoadPlaces returns the places with counts, sorted by table and cluster; see
// Options.CountLoad.
func (s *Server) LoadPlaces() []LoadPlace {
	found := s.heat.Places()
	out := make([]LoadPlace, len(found))
	for i, p := range found {
		out[i] = LoadPlace(p)
	}
	return out
}

// LoadMap returns the load of places, such as a table in each of its clusters, in columns that
// begin in [from, to) and at most n ranges of keys. Columns are at least step wide, in whole
// seconds; older columns are wider. Counts are kept for 24 hours.
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
