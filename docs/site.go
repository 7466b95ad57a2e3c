package docs

import (
	"cmp"
	"encoding/json"
	"fmt"
	"html"
	"slices"
	"strings"
)

// Site renders the documents as pages of HTML, whose links lead to /docs/NAME.
type Site struct{}

// Page is the function Page.
func (Site) Page(name string) (title string, content []byte, ok bool) { return Page(name) }

// groups are the folders of documents, in the order of Contents.
var groups = []struct{ folder, title string }{{"", "Documents"}, {"tasks/", "Tasks"}, {"arrive/", "From another emulator"}, {"notes/", "Notes"}}

// ordered returns the names of all documents: first index, then the others in the order of its links.
func ordered() []string {
	names := Names()
	index, _ := Text("index")
	place := func(name string) int { return strings.Index(index, "("+name+".md") } // -1 for index itself
	slices.SortStableFunc(names, func(a, b string) int { return cmp.Compare(place(a), place(b)) })
	return names
}

// Contents returns links to all documents, and to the sections of current, whose link is marked.
func (Site) Contents(current string) []byte {
	var out strings.Builder
	names := ordered()
	for _, g := range groups {
		fmt.Fprintf(&out, "<b>%s</b>", g.title)
		for _, name := range names {
			if rest, ok := strings.CutPrefix(name, g.folder); !ok || strings.Contains(rest, "/") {
				continue
			}
			title := html.EscapeString(Title(name))
			if name != current {
				fmt.Fprintf(&out, `<a href="/docs/%s">%s</a>`, name, title)
				continue
			}
			fmt.Fprintf(&out, `<a href="/docs/%s" aria-current="page">%s</a><div class="sections">`, name, title)
			for _, s := range sectionsOf(name) {
				if s.Level == 2 {
					fmt.Fprintf(&out, `<a href="#%s">%s</a>`, s.ID, html.EscapeString(s.Heading))
				}
			}
			out.WriteString("</div>")
		}
	}
	return []byte(out.String())
}

// maxFound is the maximum number of sections in an answer. The text of each begins at most around bytes
// before the first word, and has four times as many bytes.
const (
	maxFound = 40
	around   = 70
)

// Search returns the number of sections that contain all words, and the first ones, with a part of
// their text, as JSON.
func (Site) Search(words string) []byte {
	found := Search(words)
	answer := struct {
		Count    int       `json:"count"`
		Sections []Section `json:"sections"`
	}{len(found), []Section{}}
	for _, s := range found[:min(len(found), maxFound)] {
		s.Text = excerpt(s.Text, strings.Fields(strings.ToLower(words)))
		answer.Sections = append(answer.Sections, s)
	}
	out, err := json.Marshal(answer)
	if err != nil {
		panic(err) // it consists of texts
	}
	return out
}

// excerpt returns the part of a text around the first of some words.
func excerpt(text string, words []string) string {
	at := len(text)
	for _, word := range words {
		if i := strings.Index(strings.ToLower(text), word); i >= 0 {
			at = min(at, i)
		}
	}
	if at == len(text) {
		at = 0
	}
	start, end := max(0, at-around), min(len(text), at+3*around)
	for start > 0 && text[start-1] != ' ' {
		start--
	}
	for end < len(text) && text[end] != ' ' {
		end++
	}
	before, after := "", ""
	if start > 0 {
		before = "… "
	}
	if end < len(text) {
		after = " …"
	}
	return before + text[start:end] + after
}
