// Package exporttest builds exports to S3 for tests, both intact and damaged in various
// ways.
package exporttest
