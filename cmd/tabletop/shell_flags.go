package main

import (
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"github.com/alecthomas/kong"
)

// shellFlags returns the flags of some groups that differ from their defaults, as words for a shell, so
// that another command can be called with them. It leaves out a URL with a user or a password.
func shellFlags(k *kong.Context, groups []string, except ...string) string {
	var words []string
	for _, flag := range k.Flags() {
		if flag.Group == nil || !slices.Contains(groups, flag.Group.Title) || slices.Contains(except, flag.Name) {
			continue
		}
		value := flag.Target.Interface()
		text := fmt.Sprint(value)
		if u, err := url.Parse(text); flag.Target.IsZero() || text == flag.Default || err == nil && u.User != nil {
			continue
		}
		if value == true {
			words = append(words, "--"+flag.Name)
		} else {
			words = append(words, "--"+flag.Name, shellWord(text))
		}
	}
	return strings.Join(words, " ")
}

var plainWord = regexp.MustCompile(`^[-\w./:@%+=,]+$`)

// shellWord quotes a word for a shell.
func shellWord(text string) string {
	if plainWord.MatchString(text) {
		return text
	}
	return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'"
}
