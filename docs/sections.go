package docs

import (
	"cmp"
	"html"
	"slices"
	"strings"
	"sync"
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

var (
	headings = compiled(`<h(\d) id="([^"]*)">(.*)</h\d>`)
	blocks   = compiled(`</?(?:p|[uo]l|li|pre|table|t[rhd]|br)>`)
	tags     = compiled(`<[^>]*>`)
)

func sectionsOf(name string) (sections []Section) {
	title, content := Title(name), string(HTML(name, ""))
	at := headings().FindAllStringSubmatchIndex(content, -1)
	for i, m := range at {
		end := len(content)
		if i+1 < len(at) {
			end = at[i+1][0]
		}
		s := Section{Document: name, Title: title, Heading: plainText(content[m[6]:m[7]]), Level: int(content[m[2]] - '0'), Text: plainText(content[m[1]:end])}
		if s.Level > 1 {
			s.ID = content[m[4]:m[5]]
		}
		sections = append(sections, s)
	}
	return sections
}

// plainText returns the text of HTML, in one line.
func plainText(content string) string {
	text := tags().ReplaceAllString(blocks().ReplaceAllString(content, " "), "")
	return strings.Join(strings.Fields(html.UnescapeString(text)), " ")
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
