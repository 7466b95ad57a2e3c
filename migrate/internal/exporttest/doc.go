// Package exporttest builds exports to S3 for tests, whole ones and all kinds of
// damaged ones.
package exporttest
