package request

import (
	"maps"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/tabletop-emu/tabletop/facade/awserr"
)

// The limits. Source: developer guide, "Tagging restrictions in DynamoDB".
const (
	maxTags       = 50
	maxKeyChars   = 128
	maxValueChars = 256
)

// Tag is a tag of a table.
type Tag struct {
	Key   *string
	Value *string
}

// reservedPrefix begins the keys that only AWS assigns, in either case. Source: developer
// guide, "Tagging restrictions in DynamoDB".
const reservedPrefix = "aws:"

// isText reports whether s has only characters that tags may contain.
func isText(s string) bool {
	return !strings.ContainsFunc(s, func(r rune) bool {
		return !unicode.In(r, unicode.L, unicode.Z, unicode.N) && !strings.ContainsRune("_.:/=+-@", r)
	})
}

// MergeTags returns a copy of the current tags with other tags added or replaced.
func MergeTags(current map[string]string, tags []Tag) (map[string]string, error) {
	given := make(map[string]string, len(tags))
	for _, t := range tags {
		if err := checkKey(t.Key); err != nil {
			return nil, err
		}
		if t.Value == nil || utf8.RuneCountInString(*t.Value) > maxValueChars || !isText(*t.Value) {
			return nil, awserr.Validation(awserr.MsgTagValue, OrNull(t.Value))
		}
		if _, twice := given[*t.Key]; twice {
			return nil, awserr.Validation(awserr.MsgTagTwice, *t.Key)
		}
		given[*t.Key] = *t.Value
	}
	merged := maps.Clone(current)
	if merged == nil {
		merged = map[string]string{}
	}
	maps.Copy(merged, given)
	if len(merged) > maxTags {
		return nil, awserr.Validation(awserr.MsgTooManyTags)
	}
	return merged, nil
}

func checkKey(key *string) error {
	switch {
	case key == nil || *key == "" || utf8.RuneCountInString(*key) > maxKeyChars || !isText(*key):
		return awserr.Validation(awserr.MsgTagKey, OrNull(key))
	case strings.HasPrefix(strings.ToLower(*key), reservedPrefix):
		return awserr.Validation(awserr.MsgTagReserved, *key)
	}
	return nil
}

// CheckTagKeys checks the keys of the tags that a request removes.
func CheckTagKeys(keys []string) error {
	switch n := len(keys); {
	case n == 0:
		return awserr.Validation(awserr.MsgTagKeysEmpty)
	case n > maxTags:
		return awserr.Validation(awserr.MsgTooManyTags)
	}
	for _, key := range keys {
		if err := checkKey(&key); err != nil {
			return err
		}
	}
	return nil
}
