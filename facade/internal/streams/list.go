package streams

import (
	"slices"
	"strings"
	"time"

	"github.com/tabletop-emu/tabletop/facade/internal/tabledef"
)

// Summary is an element in the list of streams.
type Summary struct {
	StreamARN   string `json:"StreamArn"`
	StreamLabel string
	TableName   string
}

// List returns a page of the streams of tables that are known at a given time, starting after a
// given ARN. The streams are sorted by ARN, which differs from the order of their names.
// more reports whether others follow.
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
