// Command pack writes the archive of package packed. Its arguments are the packages with the
// embedded files, whose folders in the archive are their paths in the module.
package main

import (
	"archive/zip"
	"bytes"
	"compress/flate"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"strings"
)

func main() {
	if err := run(".", "internal/packed/files.zip", os.Args[1:]...); err != nil {
		_, _ = fmt.Fprintln(os.Stderr, "pack:", err)
		os.Exit(1)
	}
}

// run writes the same bytes for the same files of a module.
func run(root, archive string, packages ...string) error {
	var out bytes.Buffer
	z := zip.NewWriter(&out)
	z.RegisterCompressor(zip.Deflate, func(w io.Writer) (io.WriteCloser, error) { return flate.NewWriter(w, flate.BestCompression) })
	for _, name := range packages {
		cmd := exec.Command("go", "list", "-f", "{{range .EmbedFiles}}{{println .}}{{end}}", "./"+name)
		cmd.Dir, cmd.Stderr = root, os.Stderr
		list, err := cmd.Output()
		if err != nil {
			return fmt.Errorf("go list %s: %w", name, err)
		}
		if len(list) == 0 {
			return fmt.Errorf("package %s embeds no file", name)
		}
		for file := range strings.Lines(string(list)) {
			file = strings.TrimSuffix(file, "\n")
			text, err := os.ReadFile(filepath.Join(root, name, file))
			if err != nil {
				return err
			}
			w, err := z.CreateHeader(&zip.FileHeader{Name: path.Join(name, file), Method: zip.Deflate})
			if err != nil {
				return err
			}
			if _, err := w.Write(text); err != nil {
				return err
			}
		}
	}
	if err := z.Close(); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(root, archive), out.Bytes(), 0o644)
}
