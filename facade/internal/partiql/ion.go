package partiql

import (
	"regexp"
	"strings"
	"sync"
)

// ionKinds are the kinds of Ion literals by their beginnings, in the order of the attempts.
// Any other literal is a symbol.
// https://amazon-ion.github.io/ion-docs/docs/spec.html
var ionKinds = sync.OnceValue(func() []ionBegin {
	return []ionBegin{
		{"CLOB", regexp.MustCompile(`^\{\{\s*["']`)},
		{"BLOB", regexp.MustCompile(`^\{\{`)},
		{"STRUCT", regexp.MustCompile(`^\{`)},
		{"LIST", regexp.MustCompile(`^\[`)},
		{"SEXP", regexp.MustCompile(`^\(`)},
		{"STRING", regexp.MustCompile(`^("|''')`)},
		{"NULL", regexp.MustCompile(`^null\b`)},
		{"BOOL", regexp.MustCompile(`^(true|false)$`)},
		{"TIMESTAMP", regexp.MustCompile(`^\d{4}(T|-)`)},
		{"FLOAT", regexp.MustCompile(`^(-?[\d.]+[eE]|nan$|[-+]inf$)`)},
		{"DECIMAL", regexp.MustCompile(`^-?\d+[.dD]`)},
		{"INT", regexp.MustCompile(`^-?\d`)},
	}
})

type ionBegin struct {
	kind  string
	begin *regexp.Regexp
}

// ionKind returns the kind of an Ion literal by its first letters. No kind is supported, but
// the message names it.
func ionKind(text string) string {
	text = strings.TrimSpace(text)
	for _, k := range ionKinds() {
		if k.begin.MatchString(text) {
			return k.kind
		}
	}
	return "SYMBOL"
}
