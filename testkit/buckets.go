package testkit

// WithBuckets sets the buckets of the DynamoDB server: the folders in dir, an existing
// folder such as that of testing.TB.TempDir. Exports write into them, and imports read them.
// Default: no buckets; exports and imports are rejected.
func WithBuckets(dir string) Option { return func(c *config) { c.buckets = dir } }
