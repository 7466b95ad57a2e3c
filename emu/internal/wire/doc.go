// Package wire implements the gRPC codec of the server. It encodes and decodes the most frequent
// messages itself: usual ReadRows responses, and usual requests that set cells. Package proto
// handles all other messages, and reports the errors of malformed ones.
package wire
