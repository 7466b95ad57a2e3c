package facade

import (
	"strings"
	"testing"
)

// A transaction on items that share a row, or that do not fit the mapping.
func TestTransactWriteItems_Mapped(t *testing.T) {
	t.Parallel()
	const (
		views = `{"PK": {"S": "0123"}, "SK": {"S": "VideoStatsViews"}, "Count": {"N": "1"}}`
		stats = `{"PK": {"S": "0123"}, "SK": {"S": "VideoStats"}, "ViewCount": {"N": "2"}}`
	)
	put := func(item string) string { return `{"Put": {"TableName": "Videos", "Item": ` + item + `}}` }
	onKey := func(kind, sk, more string) string {
		return `{"` + kind + `": {"TableName": "Videos", "Key": {"PK": {"S": "0123"}, "SK": {"S": "` + sk + `"}}` + more + `}}`
	}
	for name, c := range map[string]struct {
		before          []string // items
		actions         []string
		reasons         string // "" if it succeeds
		TransitionAfter string
	}{
		"two items for one column": {
			actions: []string{put(views), put(stats)}, reasons: "[None, ValidationError]",
			TransitionAfter: `{"Items":[],"Count":0,"ScannedCount":0}`,
		},
		"an item that is not there, its column another's": {
			before: []string{stats}, actions: []string{onKey("Delete", "VideoStatsViews", "")},
			TransitionAfter: `{"Items":[{"PK":{"S":"0123"},"SK":{"S":"VideoStats"},"ViewCount":{"N":"2"}}],"Count":1,"ScannedCount":1}`,
		},
		"an item without attributes, its column another's": {
			before: []string{`{"PK": {"S": "0123"}, "SK": {"S": "VideoStatsViews"}}`, stats}, actions: []string{onKey("Delete", "VideoStatsViews", "")},
			TransitionAfter: `{"Items":[{"PK":{"S":"0123"},"SK":{"S":"VideoStats"},"ViewCount":{"N":"2"}}],"Count":1,"ScannedCount":1}`,
		},
		"a key without a place": {
			actions: []string{
				put(views), onKey("Delete", "Other", ""),
				onKey("ConditionCheck", "Another", `, "ConditionExpression": "attribute_not_exists(PK)"`),
			},
			TransitionAfter: `{"Items":[{"Count":{"N":"1"},"PK":{"S":"0123"},"SK":{"S":"VideoStatsViews"}}],"Count":1,"ScannedCount":1}`,
		},
		"an item that should be without a place": {
			actions:         []string{put(views), onKey("ConditionCheck", "Other", `, "ConditionExpression": "attribute_exists(PK)"`)},
			reasons:         "[None, ConditionalCheckFailed]",
			TransitionAfter: `{"Items":[],"Count":0,"ScannedCount":0}`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newTestServer(t, func(o *Options) { o.Mappings = append(o.Mappings, mappingOf(t, videoYAML)) })
			for _, item := range c.before {
				must(t, s, "PutItem", `{"TableName": "Videos", "Item": `+item+`}`)
			}
			_, err := s.Call(t.Context(), "TransactWriteItems", []byte(`{"TransactItems": [`+strings.Join(c.actions, ", ")+`]}`))
			if c.reasons == "" && err != nil || c.reasons != "" && (err == nil || !strings.HasSuffix(err.Error(), c.reasons)) {
				t.Errorf("answered %v, want reasons %s", err, c.reasons)
			}
			if got := must(t, s, "Scan", `{"TableName": "Videos"}`); got != c.TransitionAfter {
				t.Errorf("the table holds %s, want %s", got, c.TransitionAfter)
			}
		})
	}
}
