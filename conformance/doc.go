// Package conformance holds the official clients of both sides, unchanged,
// against a running `tabletop serve`: Go clients as tests here, Python ones in
// python/run.py. Clients are pointed at the server only by the lines that it
// prints for export. The package has no code of its own.
package conformance
