// Package packed opens the compressed documents, pages and fixtures of a release. With the build tag
// packed, a program embeds them as files.zip, which the command in pack writes; without the tag, it
// embeds them as they are.
package packed

import (
	"archive/zip"
	"bytes"
	"io"
	"io/fs"
	"path"
	"strings"
	"sync"
	"time"
)

// FS returns a folder of an archive, which it reads at the first use. The time of its files is one
// that package net/http does not send: a browser would keep an old file for long.
func FS(archive, folder string) fs.FS {
	return &files{folder: folder, archive: sync.OnceValues(func() (*zip.Reader, error) {
		r, err := zip.NewReader(strings.NewReader(archive), int64(len(archive)))
		if err != nil {
			return nil, err
		}
		for _, f := range r.File {
			f.Modified = time.Unix(0, 0)
		}
		return r, nil
	})}
}

type files struct {
	folder  string
	archive func() (*zip.Reader, error)
}

// Open implements fs.FS. Unlike the files of package zip, these can seek, which package net/http
// needs.
func (f *files) Open(name string) (fs.File, error) {
	if !fs.ValidPath(name) {
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrInvalid}
	}
	archive, err := f.archive()
	if err != nil {
		return nil, err
	}
	file, err := archive.Open(path.Join(f.folder, name))
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
	}
	info, err := file.Stat()
	if err != nil || info.IsDir() {
		return file, err
	}
	text, err := io.ReadAll(file)
	return &content{bytes.NewReader(text), info}, err
}

// content is an open file.
type content struct {
	*bytes.Reader
	fs.FileInfo
}

func (c *content) Stat() (fs.FileInfo, error) { return c, nil }
func (c *content) Close() error               { return nil }

// Size implements fs.FileInfo.
func (c *content) Size() int64 { return c.FileInfo.Size() }
