// Package docs embeds the documents of this folder. The program prints them as they are, and the
// console shows them as HTML.
package docs

import (
	"io/fs"
	"slices"
	"strings"
)

// Names returns the names of all documents, such as serve and tasks/go.
func Names() (names []string) {
	err := fs.WalkDir(files, ".", func(file string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			names = append(names, strings.TrimSuffix(file, ".md"))
		}
		return err
	})
	if err != nil {
		panic(err) // the files are embedded
	}
	return names
}

// Text returns a document as Markdown, and whether it exists. The name may be the path of its
// file, such as docs/serve.md.
func Text(name string) (string, bool) {
	content, err := fs.ReadFile(files, strings.TrimSuffix(strings.TrimPrefix(name, "docs/"), ".md")+".md")
	return string(content), err == nil
}

// Title returns the title of a document of Names.
func Title(name string) string {
	content, _ := Text(name)
	_, title, _ := strings.Cut("\n"+content, "\n# ") // after a comment, in some
	title, _, _ = strings.Cut(title, "\n")
	return title
}

// Page returns the title and the HTML of a document of Names, whose links lead to /docs/NAME; ok is
// false for any other name.
func Page(name string) (title string, content []byte, ok bool) {
	if !slices.Contains(Names(), name) {
		return "", nil, false
	}
	return Title(name), HTML(name, "/docs"), true
}

// HTML returns the content of a document of Names, whose links lead to PREFIX/NAME. Pictures and
// links to files outside the folder are left out, since the program does not contain them.
func HTML(name, prefix string) []byte {
	content, _ := Text(name)
	p := page{name: name, prefix: prefix}
	p.blocks(strings.Split(content, "\n"), false)
	return []byte(p.String())
}
