package rest

import (
	"fmt"
	"net/url"
	"regexp"
	"strings"
)

// template is a compiled path template, such as /v2/{parent=projects/*/instances/*}/tables or
// /v2/{name=operations/**}:cancel.
type template struct {
	path   *regexp.Regexp // of an escaped path, with a group for each of fields
	fields []string       // paths of the fields that the groups fill, such as table.name
}

// variable is a reference to a field in a template: {field} or {field=segments}.
var variable = regexp.MustCompile(`\{([^{}=]+)(?:=([^{}]*))?\}`)

// compileTemplate compiles the path template of an annotation.
func compileTemplate(text string) (template, error) {
	if !strings.HasPrefix(text, "/") {
		return template{}, fmt.Errorf("path template %q must begin with /", text)
	}
	var t template
	pattern, at := "^", 0
	for _, m := range variable.FindAllStringSubmatchIndex(text, -1) {
		segments := "*"
		if m[4] >= 0 {
			segments = text[m[4]:m[5]]
		}
		t.fields = append(t.fields, text[m[2]:m[3]])
		last := m[1] == len(text) || text[m[1]] == ':'
		pattern += literals(text[at:m[0]], false) + "(" + literals(segments, last) + ")"
		at = m[1]
	}
	pattern += literals(text[at:], true) + "$"
	if strings.ContainsAny(variable.ReplaceAllString(text, ""), "{}") {
		return template{}, fmt.Errorf("path template %q has unpaired braces", text)
	}
	var err error
	t.path, err = regexp.Compile(pattern)
	return t, err
}

// literals returns the pattern of segments, in which * is one segment and ** is one or more. The
// last segment of a path ends at a colon, where the verb begins.
func literals(segments string, last bool) string {
	var b strings.Builder
	for segments != "" {
		var one, rest string
		switch {
		case strings.HasPrefix(segments, "**"):
			one, rest = ".+", segments[2:]
		case segments[0] == '*':
			one, rest = "[^/]+", segments[1:]
		default:
			end := strings.IndexByte(segments, '*')
			if end < 0 {
				end = len(segments)
			}
			b.WriteString(regexp.QuoteMeta(segments[:end]))
			segments = segments[end:]
			continue
		}
		if last && rest == "" {
			one = strings.NewReplacer("[^/]+", "[^/:]+", ".+", "[^:]+").Replace(one)
		}
		b.WriteString(one)
		segments = rest
	}
	return b.String()
}

// match returns the values of t.fields in an escaped path; ok is false if the path does not match.
func (t *template) match(path string) (values []string, ok bool) {
	m := t.path.FindStringSubmatch(path)
	if m == nil {
		return nil, false
	}
	for i, v := range m[1:] {
		plain, err := url.PathUnescape(v)
		if err != nil {
			return nil, false
		}
		m[1+i] = plain
	}
	return m[1:], true
}
