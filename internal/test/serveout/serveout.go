// Package serveout reads the output of tabletop serve until it is ready.
package serveout

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"strings"
)

// Output is the output of a server up to its ready line.
type Output struct {
	Text    string            // the whole output, up to and including the ready line
	Exports map[string]string // the environment variables that it prints for export
	Ready   string            // the ready line
}

// Read reads the standard output of a server up to the ready line.
func Read(stdout io.Reader) (Output, error) {
	out := Output{Exports: map[string]string{}}
	lines := bufio.NewScanner(stdout)
	for lines.Scan() {
		line := lines.Text()
		out.Text += line + "\n"
		if assignment, ok := strings.CutPrefix(line, "export "); ok {
			name, value, _ := strings.Cut(assignment, "=")
			out.Exports[name] = value
		}
		if strings.HasPrefix(line, "# ready") {
			out.Ready = line
			return out, nil
		}
	}
	return out, errors.Join(fmt.Errorf("the server ended before it was ready; it printed %q", out.Text), lines.Err())
}
