package docs

import (
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"
	"sync"
)

// page is a document as HTML. It is written from the part of Markdown that the documents use, and a
// list, a table or code begins after an empty line, or in a list.
type page struct {
	strings.Builder
	name, prefix string
}

// compiled returns a pattern, which it compiles at its first use: most runs of the program need none.
func compiled(pattern string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(pattern) })
}

var (
	headingLine = compiled(`^(#+) (.*)`)
	itemLine    = compiled(`^(?:[*-]|\d+\.) +`)
	escape      = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;", `"`, "&quot;")
	notInID     = compiled(`[^\pL\pN _-]`)
)

// blocks writes lines. A paragraph of a tight list has no tag.
func (p *page) blocks(lines []string, tight bool) {
	for n := 0; len(lines) > 0; lines = lines[n:] {
		line := lines[0]
		prefixed := func(prefix string) bool { return strings.HasPrefix(line, prefix) }
		// while returns the number of lines up to the first other one after this.
		while := func(is func(line string) bool) int {
			if i := slices.IndexFunc(lines[1:], func(line string) bool { return !is(line) }); i >= 0 {
				return 1 + i
			}
			return len(lines)
		}
		switch heading := headingLine().FindStringSubmatch(line); {
		case line == "" || prefixed("<!--") || prefixed("!["): // the program does not contain pictures
			n = 1
		case heading != nil:
			n = 1
			id := strings.NewReplacer(" ", "-", "_", "-").Replace(notInID().ReplaceAllString(strings.ToLower(heading[2]), ""))
			for k, first := 1, id; strings.Contains(p.String(), ` id="`+id+`"`); k++ {
				id = fmt.Sprintf("%s-%d", first, k)
			}
			_, _ = fmt.Fprintf(p, "<h%d id=\"%s\">%s</h%[1]d>\n", len(heading[1]), id, p.inline(heading[2]))
		case prefixed("```"):
			n = while(func(line string) bool { return line != "```" }) + 1
			class := ""
			if language := line[3:]; language != "" {
				class = ` class="language-` + language + `"`
			}
			p.code(class, lines[1:n-1])
		case prefixed("    "):
			n = while(func(line string) bool { return line == "" || strings.HasPrefix(line, "    ") })
			for lines[n-1] == "" {
				n--
			}
			p.code("", unindent(lines[:n], 4))
		case prefixed("|"):
			n = while(func(line string) bool { return strings.HasPrefix(line, "|") })
			p.table(lines[:n])
		case itemLine().MatchString(line):
			n = p.list(lines)
		default:
			n = while(func(line string) bool {
				return line != "" && !strings.HasPrefix(line, "```") && !strings.HasPrefix(line, "|") && (line[0] >= '0' && line[0] <= '9' || !itemLine().MatchString(line))
			})
			var text []string
			for _, line := range lines[:n] {
				text = append(text, strings.TrimSpace(line))
			}
			begin, end := "<p>", "</p>\n"
			if tight {
				begin, end = "", "\n"
			}
			p.WriteString(begin + p.inline(strings.Join(text, "\n")) + end)
		}
	}
}

func unindent(lines []string, n int) (out []string) {
	for _, line := range lines {
		out = append(out, line[min(n, len(line)-len(strings.TrimLeft(line, " "))):])
	}
	return out
}

func (p *page) code(class string, lines []string) {
	_, _ = fmt.Fprintf(p, "<pre><code%s>%s\n</code></pre>\n", class, escape.Replace(strings.Join(lines, "\n")))
}

// list writes the list at the start of lines, and returns the number of its lines.
func (p *page) list(lines []string) (n int) {
	var items [][]string
	loose := false
	for n < len(lines) {
		marker := itemLine().FindString(lines[n])
		if marker == "" {
			break
		}
		end := n + 1
		for end < len(lines) && (lines[end] == "" || strings.HasPrefix(lines[end], strings.Repeat(" ", len(marker)))) {
			end++
		}
		next := end
		for lines[end-1] == "" {
			end--
		}
		item := append([]string{lines[n][len(marker):]}, unindent(lines[n+1:end], len(marker))...)
		items = append(items, item)
		loose = loose || slices.Contains(item, "") && !slices.ContainsFunc(item, func(line string) bool { return strings.HasPrefix(line, "```") }) ||
			next > end && next < len(lines) && itemLine().MatchString(lines[next])
		n = next
	}
	tag := "ul"
	if lines[0][0] >= '0' && lines[0][0] <= '9' {
		tag = "ol"
	}
	p.WriteString("<" + tag + ">\n")
	for _, item := range items {
		p.WriteString("<li>")
		p.blocks(item, !loose)
		p.WriteString("</li>\n")
	}
	p.WriteString("</" + tag + ">\n")
	return n
}

// table writes a table. A wide one scrolls, and an empty head names nothing.
func (p *page) table(lines []string) {
	row := func(line, tag string) {
		p.WriteString("<tr>\n")
		line = strings.ReplaceAll(strings.TrimSuffix(line[1:], "|"), `\|`, "\x00")
		for cell := range strings.SplitSeq(line, "|") {
			tag := tag
			if cell = strings.ReplaceAll(strings.TrimSpace(cell), "\x00", "|"); cell == "" {
				tag = "td"
			}
			_, _ = fmt.Fprintf(p, "<%s>%s</%[1]s>\n", tag, p.inline(cell))
		}
		p.WriteString("</tr>\n")
	}
	p.WriteString("<div class=\"scroll\"><table>\n<thead>\n")
	row(lines[0], "th")
	p.WriteString("</thead>\n<tbody>\n")
	for _, line := range lines[2:] {
		row(line, "td")
	}
	p.WriteString("</tbody>\n</table></div>\n")
}

var inlines = compiled("`` ?(.+?) ?``|`([^`]+)`|" + `\*\*((?s:.+?))\*\*|\*(\S(?s:.*?))\*|\[((?:[^\]\x60]|\x60[^\x60]*\x60)+)\]\(([^)]+)\)|<(https?://[^>]+)>|(<br>)`)

// inline returns the HTML of a text.
func (p *page) inline(text string) string {
	var out strings.Builder
	for {
		m := inlines().FindStringSubmatchIndex(text)
		if m == nil {
			return out.String() + escape.Replace(text)
		}
		out.WriteString(escape.Replace(text[:m[0]]))
		group := func(i int) string { return text[m[2*i]:m[2*i+1]] }
		switch {
		case m[2] >= 0:
			out.WriteString("<code>" + escape.Replace(group(1)) + "</code>")
		case m[4] >= 0:
			out.WriteString("<code>" + escape.Replace(strings.ReplaceAll(group(2), "\n", " ")) + "</code>")
		case m[6] >= 0:
			out.WriteString("<strong>" + p.inline(group(3)) + "</strong>")
		case m[8] >= 0:
			out.WriteString("<em>" + p.inline(group(4)) + "</em>")
		case m[10] >= 0:
			out.WriteString(p.link(p.inline(group(5)), group(6)))
		case m[14] >= 0:
			out.WriteString(p.link(escape.Replace(group(7)), group(7)))
		default:
			out.WriteString(group(8))
		}
		text = text[m[1]:]
	}
}

// link returns a link, or its content if it leads to a file that the program does not contain.
func (p *page) link(content, to string) string {
	if !strings.HasPrefix(to, "#") && !strings.Contains(to, "://") {
		file, section, cut := strings.Cut(to, "#")
		other := strings.TrimSuffix(path.Join(path.Dir(p.name), file), ".md")
		if _, ok := Text(other); !ok {
			return content
		}
		if to = p.prefix + "/" + other; cut {
			to += "#" + section
		}
	}
	return `<a href="` + escape.Replace(to) + `">` + content + "</a>"
}
