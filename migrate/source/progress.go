package source

import "sync/atomic"

// Progress is the progress of a phase of the work.
type Progress struct {
	Table string // the DynamoDB table
	Phase string // "inferring", "checking", "loading", "comparing", "linting"
	Items int64  // processed in this phase
	Total int64  // estimated if the input does not declare it; -1 if unknown
}

// counter counts the bytes that are written to it.
type counter struct{ atomic.Int64 }

// Write implements io.Writer.
func (c *counter) Write(p []byte) (int, error) {
	c.Add(int64(len(p)))
	return len(p), nil
}

// Total returns the number of items in the table, after n of them: the declared one, or an
// estimate from the part of the file that they take. It returns -1 if both are unknown.
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
