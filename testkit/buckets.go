package testkit

// WithBuckets gives the DynamoDB server buckets: the folders in dir, which is there, such
// as one of testing.TB.TempDir. Exports write into them, and imports read them. Default:
// none, exports and imports are refused.
func WithBuckets(dir string) Option { return func(c *config) { c.buckets = dir } }
