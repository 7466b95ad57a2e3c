// Package program builds the programs that tests start.
package program

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
)

// Path returns the executable of a main package. It is in the cache of the go command,
// which links it only after a change, for all tests that start it.
func Path(ctx context.Context, pkg string) (string, error) {
	path, err := executable(ctx, pkg)
	if err != nil {
		return "", err
	}
	// The run that links the executable names a copy, which ends with the run.
	if _, err = os.Stat(path); err != nil {
		if path, err = executable(ctx, pkg); err == nil {
			_, err = os.Stat(path)
		}
	}
	return path, err
}

// executable lets go run print the executable that it would run.
func executable(ctx context.Context, pkg string) (string, error) {
	cmd := exec.CommandContext(ctx, "go", "run", "-exec", "echo", pkg)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("%s: %w\n%s", strings.Join(cmd.Args, " "), err, &stderr)
	}
	return strings.TrimSpace(string(out)), nil
}
