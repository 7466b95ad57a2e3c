package source

// Progress is the progress of a phase of the work.
type Progress struct {
	Table string // the DynamoDB table
	Phase string // "inferring", "checking", "loading", "comparing", "linting"
	Items int64  // processed in this phase
	Total int64  // -1 if unknown
}
