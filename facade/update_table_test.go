package facade

import (
	"fmt"
	"testing"
)

// A table has at most 20 global indexes: UpdateTable refuses another one with a different error
// than CreateTable does.
func TestUpdateTable_Limits(t *testing.T) {
	t.Parallel()
	s := newTestServer(t)
	createPlain(t, s, "plain")
	add := func(n int) string {
		return fmt.Sprintf(`{"TableName": "plain", "AttributeDefinitions": [{"AttributeName": "id", "AttributeType": "S"}],
			"GlobalSecondaryIndexUpdates": [{"Create": {"IndexName": "by-id-%d", "KeySchema": [{"AttributeName": "id", "KeyType": "HASH"}], "Projection": {"ProjectionType": "ALL"}}}]}`, n)
	}
	for n := range 20 {
		must(t, s, "UpdateTable", add(n))
		s.store.Wait()
	}
	refuses(t, s, "UpdateTable", add(20), "LimitExceededException: Subscriber limit exceeded: Number of global secondary indexes exceeds per-table limit of 20") // 545
}
