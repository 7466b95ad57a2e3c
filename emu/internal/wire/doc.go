// Package wire implements the gRPC codec of the server. It encodes and decodes
// the most frequent messages in their usual forms itself: responses of ReadRows
// and requests that set cells. Package proto handles all others, and reports
// errors of malformed messages.
package wire
