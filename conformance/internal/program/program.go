// Package program builds the program that tests start.
package program

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
)

// Path builds tabletop and returns the path of the executable. That is in the cache of the go
// command, which links it only after a change, for all tests that start it.
func Path(ctx context.Context) (string, error) {
	dir, err := command(ctx, "list", "-m", "-f", "{{.Dir}}", "github.com/tabletop-emu/tabletop")
	if err != nil {
		return "", err
	}
	// go run prints the executable that it would run. The run that links it prints a temporary
	// copy, which the run deletes.
	build := []string{"-C", dir, "run", "-exec", "echo", "./cmd/tabletop"}
	path, err := command(ctx, build...)
	if err != nil {
		return "", err
	}
	if _, err = os.Stat(path); err != nil {
		if path, err = command(ctx, build...); err == nil {
			_, err = os.Stat(path)
		}
	}
	return path, err
}

func command(ctx context.Context, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, "go", args...)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("%s: %w\n%s", strings.Join(cmd.Args, " "), err, &stderr)
	}
	return strings.TrimSpace(string(out)), nil
}
