package testkit

// WithBuckets makes each folder in dir a bucket of the DynamoDB server. Exports write to the
// buckets, and imports read from them. dir must exist; it can be the result of testing.TB.TempDir.
// Default: no buckets; exports and imports are rejected.
func WithBuckets(dir string) Option { return func(c *config) { c.buckets = dir } }
