package docs

import (
	"cmp"
	"html"
	"slices"
	"strings"
	"sync"

	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/text"
)

// Section is the part of a document from a heading to the next one.
type Section struct {
	Document string `json:"document"` // a name of Names
	Title    string `json:"title"`    // of the document
	ID       string `json:"id"`       // of the heading in the document's HTML; empty for the title
	Heading  string `json:"heading"`
	Level    int    `json:"-"`    // of the heading: 1 for the title
	Text     string `json:"text"` // without markup
}

// Sections returns the sections of all documents. The caller must not change them.
var Sections = sync.OnceValue(func() (all []Section) {
	for _, name := range Names() {
		all = append(all, sectionsOf(name)...)
	}
	return all
})

func sectionsOf(name string) (sections []Section) {
	content, _ := Text(name)
	source := []byte(content)
	title := Title(name)
	var words strings.Builder
	end := func() {
		if n := len(sections); n > 0 {
			sections[n-1].Text = strings.Join(strings.Fields(words.String()), " ")
		}
		words.Reset()
	}
	err := ast.Walk(markdown.Parser().Parse(text.NewReader(source)), func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		if n.Type() == ast.TypeBlock && !entering {
			words.WriteByte('\n')
		}
		if !entering {
			return ast.WalkContinue, nil
		}
		switch n := n.(type) {
		case *ast.Heading:
			end()
			s := Section{Document: name, Title: title, Heading: plainText(n, source), Level: n.Level}
			if id, ok := n.AttributeString("id"); ok && n.Level > 1 {
				s.ID = string(id.([]byte))
			}
			sections = append(sections, s)
			return ast.WalkSkipChildren, nil
		case *ast.Image, *ast.HTMLBlock, *ast.RawHTML:
			return ast.WalkSkipChildren, nil
		case *ast.Text:
			words.Write(n.Value(source))
			if n.SoftLineBreak() || n.HardLineBreak() {
				words.WriteByte('\n')
			}
		case *ast.CodeBlock, *ast.FencedCodeBlock:
			for i := range n.Lines().Len() {
				line := n.Lines().At(i)
				words.Write(line.Value(source))
			}
		}
		return ast.WalkContinue, nil
	})
	if err != nil {
		panic(err) // the function above returns none
	}
	end()
	return sections
}

// plainText returns the text in a heading.
func plainText(n ast.Node, source []byte) string {
	var out strings.Builder
	for child := n.FirstChild(); child != nil; child = child.NextSibling() {
		if t, ok := child.(*ast.Text); ok {
			out.Write(t.Value(source))
			continue
		}
		out.WriteString(plainText(child, source))
	}
	return html.UnescapeString(out.String())
}

// Search returns the sections that contain all words, whatever their case: first those with the words
// in the title of the document or in the heading.
func Search(words string) (found []Section) {
	terms := strings.Fields(strings.ToLower(words))
	if len(terms) == 0 {
		return nil
	}
	ranks := map[Section]int{}
	for _, s := range Sections() {
		rank := 0
		for _, term := range terms {
			switch {
			case strings.Contains(strings.ToLower(s.Heading), term):
				rank += 4
			case strings.Contains(strings.ToLower(s.Document+" "+s.Title), term):
				rank += 2
			case strings.Contains(strings.ToLower(s.Text), term):
				rank++
			default:
				rank = -1 << 20
			}
		}
		if rank > 0 {
			ranks[s] = rank
			found = append(found, s)
		}
	}
	slices.SortStableFunc(found, func(a, b Section) int { return cmp.Compare(ranks[b], ranks[a]) })
	return found
}
