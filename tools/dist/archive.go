package main

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"cmp"
	"compress/gzip"
	"context"
	"io"
	"os"
	"path/filepath"
	"slices"
	"time"
)

// file is a file of an archive.
type file struct {
	name       string // with slashes
	data       []byte
	executable bool
	link       string // the target of a symbolic link, without data; "" for a file
}

func (f file) mode() int64 {
	if f.executable {
		return 0o755
	}
	return 0o644
}

// sorted returns files in the order of their names.
func sorted(files []file) []file {
	files = slices.Clone(files)
	slices.SortFunc(files, func(a, b file) int { return cmp.Compare(a.name, b.name) })
	return files
}

// tarGz returns a compressed tar archive whose files have the given time.
func tarGz(files []file, at time.Time) ([]byte, error) {
	var out bytes.Buffer
	z, err := gzip.NewWriterLevel(&out, gzip.BestCompression)
	if err != nil {
		return nil, err
	}
	w := tar.NewWriter(z)
	if err := writeSorted(w, files, tar.Header{ModTime: at, Format: tar.FormatPAX}); err != nil {
		return nil, err
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	err = z.Close()
	return out.Bytes(), err
}

// writeSorted writes files in the order of their names. like has the fields that all headers share.
func writeSorted(w *tar.Writer, files []file, like tar.Header) error {
	for _, f := range sorted(files) {
		header := like
		header.Typeflag, header.Name, header.Mode, header.Size = tar.TypeReg, f.name, f.mode(), int64(len(f.data))
		if f.link != "" {
			header.Typeflag, header.Linkname, header.Mode = tar.TypeSymlink, f.link, 0o777
		}
		if err := w.WriteHeader(&header); err != nil {
			return err
		}
		if _, err := w.Write(f.data); err != nil {
			return err
		}
	}
	return nil
}

// zipped returns a zip archive, or a jar or wheel, whose files have the given time. The files
// keep their order, since a jar begins with its manifest.
func zipped(files []file, at time.Time) ([]byte, error) {
	var out bytes.Buffer
	w := zip.NewWriter(&out)
	for _, f := range files {
		header := &zip.FileHeader{Name: f.name, Method: zip.Deflate, Modified: at}
		header.SetMode(os.FileMode(f.mode()))
		each, err := w.CreateHeader(header)
		if err != nil {
			return nil, err
		}
		if _, err := io.Copy(each, bytes.NewReader(f.data)); err != nil {
			return nil, err
		}
	}
	err := w.Close()
	return out.Bytes(), err
}

// write writes a file below the folder of the release.
func (r *release) write(data []byte, elements ...string) error {
	name := filepath.Join(append([]string{r.out}, elements...)...)
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		return err
	}
	return os.WriteFile(name, data, 0o644)
}

// writeArchives writes an archive for each platform: both programs with their documents,
// completion scripts and man pages; and beside it a list of the linked modules.
func writeArchives(_ context.Context, r *release) error {
	readme, err := os.ReadFile(filepath.Join(r.folder, "README.md"))
	if err != nil {
		return err
	}
	for _, b := range r.builds {
		folder := "tabletop_" + r.version + "_" + b.os + "_" + b.arch
		files := []file{
			{name: "README.md", data: readme},
			{name: "LICENSE", data: r.license},
			{name: "NOTICE", data: b.notice},
		}
		for name, program := range b.programs {
			files = append(files, file{name: b.exe(name), data: program, executable: true})
		}
		files = append(files, r.manual...)
		for i := range files {
			files[i].name = folder + "/" + files[i].name
		}
		ending, pack := ".tar.gz", tarGz
		if b.os == "windows" {
			ending, pack = ".zip", func(files []file, at time.Time) ([]byte, error) { return zipped(sorted(files), at) }
		}
		archive, err := pack(files, r.time)
		if err != nil {
			return err
		}
		if err := r.write(archive, folder+ending); err != nil {
			return err
		}
		bom, err := r.bom(b)
		if err != nil {
			return err
		}
		if err := r.write(bom, folder+".cdx.json"); err != nil {
			return err
		}
	}
	return nil
}
