package facade

import (
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/tabletop-emu/tabletop/facade/internal/request"
)

// Each operation on items has a column of regions.tsv, and each column names existing
// operations.
func TestRegions_Operations(t *testing.T) {
	t.Parallel()
	table, err := os.ReadFile(filepath.Join("internal", "request", "regions.tsv"))
	if err != nil {
		t.Fatal(err)
	}
	var named []string
	for line := range strings.Lines(string(table)) {
		if rest, ok := strings.CutPrefix(line, "region\t"); ok {
			named = strings.Fields(rest)
		}
	}
	if len(named) == 0 || named[len(named)-1] != "others" {
		t.Fatalf("the header names %v", named)
	}
	named = named[:len(named)-1]
	for _, op := range operations {
		if op.scan != nil && !slices.Contains(named, op.name) {
			t.Errorf("%s has no layer of its own", op.name)
		}
		named = slices.DeleteFunc(named, func(name string) bool { return name == op.name })
	}
	if len(named) > 0 {
		t.Errorf("columns of operations that do not exist: %v", named)
	}
}

// These requests have different answers in the two layers, and are too long for
// testdata/operations. Recorded on the service on 2026-10-08 and 2026-10-09.
func TestRegions_LongRequests(t *testing.T) {
	t.Parallel()
	s := newTestServer(t)
	createPlain(t, s, "plain")
	const (
		nested = "Nesting Levels have exceeded supported limits: Attributes in the item have nested levels beyond supported limit"
		size   = "ValidationException: Item size to update has exceeded the maximum allowed size"
		lone   = "ConditionalOperator can only be used when Filter or Expected has two or more elements"
	)
	deep := strings.Repeat(`{"M": {"n": `, 40) + `{"S": "leaf"}` + strings.Repeat("}}", 40)
	puts := make([]string, 26)
	for i := range puts {
		puts[i] = `{"PutRequest": {"Item": {"id": {"S": "` + strconv.Itoa(i) + `"}}}}`
	}
	// With the name of v, and without the key, the cost of the action makes the update too
	// large.
	value := strings.Repeat("a", 409_600-len("id")-len("1")-len("v"))
	for _, c := range []struct{ operation, request, newer, older string }{
		{
			"Scan", `{"TableName": "none", "ScanFilter": {"a": {"ComparisonOperator": "EQ", "AttributeValueList": [` + deep + `]}}, "ConditionalOperator": "AND"}`,
			"ValidationException: " + lone, "ValidationException: " + nested,
		},
		{
			"TransactWriteItems", `{"TransactItems": [{"ConditionCheck": {"TableName": "none", "Key": {"id": {"S": "1"}},
			"ConditionExpression": "d = :deep", "ExpressionAttributeValues": {":deep": ` + deep + `}}}, {"Put": {"TableName": "none", "Item": {"": {"S": "x"}}}}]}`,
			"ValidationException: " + nested, "ValidationException: ExpressionAttributeValues contains invalid value: " + nested + " for key :deep",
		},
		{"TransactWriteItems", `{"TransactItems": [{"Update": {"TableName": "plain", "Key": {"id": {"S": "1"}},
			"UpdateExpression": "SET v = :v", "ExpressionAttributeValues": {":v": {"S": "` + value + `"}}}}]}`, size, ""},
		{
			"BatchWriteItem", `{"RequestItems": {"plain": [` + strings.Join(puts, ",") + `]}}`,
			"ValidationException: 1 validation error detected: Value at 'RequestItems.plain.member' failed to satisfy constraint: Member must have length less than or equal to 25",
			"Map value must satisfy constraint: [Member must have length less than or equal to 25, Member must have length greater than or equal to 1]",
		},
	} {
		for region, want := range map[MessageProfile]string{"eu-west-2": c.newer, "us-east-1": c.older} {
			got := ""
			if _, err := inRegion(t, s, region).Call(t.Context(), c.operation, []byte(c.request)); err != nil {
				got = err.Error()
			}
			if got != want && (c.operation != "BatchWriteItem" || !strings.HasSuffix(got, want)) {
				t.Errorf("%s, %s: %.400s\nwant %s", region, c.operation, got, want)
			}
		}
	}
}

// An unknown profile is an error that lists the known ones.
func TestMessageProfile_Check(t *testing.T) {
	t.Parallel()
	for _, known := range []MessageProfile{"", MessagesCurrent, MessagesClassic, "eu-west-2", "us-east-1"} {
		if err := known.Check(); err != nil {
			t.Errorf("%q: %v", known, err)
		}
	}
	_, unknown := request.LayersOf("old")
	if err := MessageProfile("old").Check(); err == nil || err.Error() != unknown.Error() {
		t.Errorf("%v, want %v", err, unknown)
	}
}
