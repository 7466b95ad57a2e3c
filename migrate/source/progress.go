package source

import "sync/atomic"

// Progress is the progress of one phase of the work.
type Progress struct {
	Table string // name of the DynamoDB table
	Phase string // name of the phase: "inferring", "checking", "loading", "comparing", "linting"
	Items int64  // number of items processed in this phase
	Total int64  // number of all items, estimated if the input does not declare it; -1 if unknown
}

// counter counts the bytes that are written to it.
type counter struct{ atomic.Int64 }

// Write implements io.Writer.
func (c *counter) Write(p []byte) (int, error) {
	c.Add(int64(len(p)))
	return len(p), nil
}

// Total returns the number of items in the table, given that n of them have been read. It
// is the declared number, or an estimate from the share of the file that the n items
// take. Total returns -1 if the number is unknown and cannot be estimated.
func (t *Table) Total(n int64) int64 {
	if t.Declared >= 0 || t.reading == nil || n == 0 {
		return t.Declared
	}
	in := t.reading.Load()
	if in == nil || in.read.Load() == 0 {
		return -1
	}
	return max(n+1, int64(float64(n)*float64(in.size)/float64(in.read.Load())))
}
