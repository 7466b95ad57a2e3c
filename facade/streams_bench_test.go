package facade

import (
	"fmt"
	"strings"
	"testing"

	"github.com/tabletop-emu/tabletop/internal/test/cputime"
)

// BenchmarkCompareRecordedPut compares puts into a table with a log with puts into one
// without, in process.
func BenchmarkCompareRecordedPut(b *testing.B) {
	for _, view := range []string{"", "KEYS_ONLY", "NEW_AND_OLD_IMAGES"} {
		name := strings.ToLower(view)
		create := fmt.Sprintf(streamedTable, view)
		if view == "" {
			name, create = "plain", strings.Replace(create, `, "StreamSpecification": {"StreamEnabled": true, "StreamViewType": ""}`, "", 1)
		}
		b.Run(name, func(b *testing.B) {
			s := newSharingServer(b)
			must(b, s, "CreateTable", create)
			text := strings.Repeat("x", 1000)
			cputime.Loop(b, func(i int) {
				must(b, s, "PutItem", put(fmt.Sprint(i%1000), fmt.Sprintf(`, "n": {"N": "%d"}, "text": {"S": "%s"}`, i, text)))
			})
		})
	}
}
