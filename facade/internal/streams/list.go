package streams

import (
	"slices"
	"strings"
	"time"

	"github.com/tabletop-emu/tabletop/facade/internal/tabledef"
)

// Summary is a stream in a list.
type Summary struct {
	StreamARN   string `json:"StreamArn"`
	StreamLabel string
	TableName   string
}

// List returns a page of the known streams of tables at a time, after an ARN. It sorts them
// by ARN, which differs from the order of names. more reports whether others follow.
func List(tables []*tabledef.Table, now time.Time, arnOf func(t *tabledef.Table, label string) string, after string, limit int) (list []Summary, more bool) {
	list = []Summary{}
	for _, t := range tables {
		for i := range t.Streams {
			s := &t.Streams[i]
			if arn := arnOf(t, s.Label); !s.IsGone(now) && arn > after {
				list = append(list, Summary{arn, s.Label, t.Name})
			}
		}
	}
	slices.SortFunc(list, func(a, b Summary) int { return strings.Compare(a.StreamARN, b.StreamARN) })
	more = len(list) > limit
	return list[:min(limit, len(list))], more
}
