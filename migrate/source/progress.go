package source

// Progress says how far a phase of the work is.
type Progress struct {
	Table string // the DynamoDB table
	Phase string // "inferring", "checking", "loading", "comparing", "linting"
	Items int64  // dealt with in this phase
	Total int64  // -1 where it is not known yet
}
