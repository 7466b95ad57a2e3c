// Package docs embeds the documents of this folder. The program prints them as they are, and the
// console shows them as HTML.
package docs

import (
	"bytes"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/renderer/html"
	"github.com/yuin/goldmark/text"
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

// The documents contain line breaks and comments of HTML. The alignment of a column would be a
// style attribute, which the console's policy forbids.
var markdown = goldmark.New(goldmark.WithParserOptions(parser.WithAutoHeadingID()), goldmark.WithRendererOptions(html.WithUnsafe()),
	goldmark.WithExtensions(extension.NewTable(extension.WithTableCellAlignMethod(extension.TableCellAlignNone))))

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
	source := []byte(content)
	tree := markdown.Parser().Parse(text.NewReader(source))
	var links []*ast.Link
	var pictures []*ast.Image
	err := ast.Walk(tree, func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		switch n := n.(type) {
		case *ast.Link:
			if entering {
				links = append(links, n)
			}
		case *ast.Image:
			if entering {
				pictures = append(pictures, n)
			}
		}
		return ast.WalkContinue, nil
	})
	if err != nil {
		panic(err) // the function above returns none
	}
	for _, n := range pictures { // each is a paragraph
		n.Parent().Parent().RemoveChild(n.Parent().Parent(), n.Parent())
	}
	for _, n := range links {
		to := string(n.Destination)
		if strings.HasPrefix(to, "#") || strings.Contains(to, "://") {
			continue
		}
		file, anchor, _ := strings.Cut(to, "#")
		other := strings.TrimSuffix(path.Join(path.Dir(name), file), ".md")
		if _, ok := Text(other); ok {
			n.Destination = []byte(prefix + "/" + other)
			if anchor != "" {
				n.Destination = fmt.Appendf(n.Destination, "#%s", anchor)
			}
			continue
		}
		for child := n.FirstChild(); child != nil; child = n.FirstChild() {
			n.Parent().InsertBefore(n.Parent(), n, child)
		}
		n.Parent().RemoveChild(n.Parent(), n)
	}
	var out bytes.Buffer
	if err := markdown.Renderer().Render(&out, source, tree); err != nil {
		panic(err) // the documents are embedded, and a test renders them all
	}
	// A wide table scrolls, and an empty head names nothing.
	return []byte(strings.NewReplacer("<table>", `<div class="scroll"><table>`, "</table>", "</table></div>", "<th></th>", "<td></td>").Replace(out.String()))
}
