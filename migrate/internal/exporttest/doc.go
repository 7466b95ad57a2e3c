// Package exporttest builds exports to S3 for tests, intact and damaged in all kinds
// of ways.
package exporttest
