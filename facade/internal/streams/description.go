package streams

import (
	"regexp"
	"sync"

	"github.com/tabletop-emu/tabletop/facade/internal/changelog"
	"github.com/tabletop-emu/tabletop/facade/internal/tabledef"
	"github.com/tabletop-emu/tabletop/facade/internal/tablespec"
	"github.com/tabletop-emu/tabletop/facade/internal/wire"
)

var arnPattern = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^arn:[^:]*:dynamodb:[^:]*:[0-9]{12}:table/([a-zA-Z0-9_.-]+)/stream/([^/]+)$`)
})

// SplitARN returns the table and the label in the ARN of a stream. The pattern does not
// check the length of the name, since that would take 100 KB of memory in every process.
func SplitARN(arn string) (table, label string, ok bool) {
	parts := arnPattern().FindStringSubmatch(arn)
	if parts == nil || len(parts[1]) < 3 || len(parts[1]) > 255 {
		return "", "", false
	}
	return parts[1], parts[2], true
}

// Description describes a stream in a response, with a page of its shards.
type Description struct {
	CreationRequestDateTime wire.EpochSeconds
	KeySchema               []tablespec.KeySchemaElement
	LastEvaluatedShardID    string `json:"LastEvaluatedShardId,omitzero"`
	Shards                  []ShardDescription
	StreamARN               string `json:"StreamArn"`
	StreamLabel             string
	StreamStatus            string
	StreamViewType          string
	TableName               string
}

// Description returns the description of a table's stream, without shards.
func (v View) Description(t *tabledef.Table, arn string) Description {
	return Description{
		CreationRequestDateTime: wire.EpochSeconds(changelog.Position{Sequence: v.Stream.Shards.Since}.Time().UnixMilli()),
		KeySchema:               tablespec.KeySchemaElements(tabledef.IndexKeyOf(t.Key)),
		Shards:                  []ShardDescription{},
		StreamARN:               arn,
		StreamLabel:             v.Stream.Label,
		StreamStatus:            v.Status(t),
		StreamViewType:          v.Stream.View,
		TableName:               t.Name,
	}
}
