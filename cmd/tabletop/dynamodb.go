package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/alecthomas/kong"

	"github.com/tabletop-emu/tabletop/facade"
)

// dynamoDBFlags configure the DynamoDB endpoint.
type dynamoDBFlags struct {
	Auth                auth          `help:"How to check signatures: any (accept every well-formed signature), none (require no signature) or strict (verify with the keys of --access-keys). Default: any, or strict with --access-keys." placeholder:"any|none|strict"`
	AccessKeys          string        `name:"access-keys" help:"File with the known access keys, one per line: ID SECRET." placeholder:"FILE"`
	Throttle            throttle      `help:"Throttle tables and global indexes by their throughput, as the service does; with =partitions, also throttle requests to overused partition keys." placeholder:"tables|partitions"`
	Messages            string        `help:"Wording of DynamoDB's validation errors: that of an AWS region such as us-east-1, classic (all regions before 2026-06) or current (most regions, by operation). Default: current." placeholder:"REGION|classic|current" rare:""`
	IndexLag            time.Duration `name:"index-lag" help:"How long a write takes to reach the global indexes. Default: 0s." placeholder:"DURATION"`
	TableDelay          time.Duration `name:"table-delay" help:"How long tables and indexes are CREATING, UPDATING or DELETING. Default: 0s." placeholder:"DURATION"`
	Buckets             string        `help:"Folder whose subfolders act as S3 buckets: exports write to them, imports read from them. Default: exports and imports are rejected." placeholder:"DIR"`
	Namespaced          bool          `help:"Give each pair of access key and region separate tables." rare:""`
	StreamShards        []int         `name:"stream-shards" help:"Number of shards in each generation of a stream, such as 1,2,4 to split twice. The last number applies to all later generations. Default: 1." placeholder:"N" rare:""`
	StreamShardRotation time.Duration `name:"stream-shard-rotation" help:"How long a stream shard accepts changes before its children replace it. Default: 4h." default:"4h" placeholder:"DURATION" rare:""`
	StreamRetention     time.Duration `name:"stream-retention" help:"How long a stream keeps a change, and how long a disabled stream can be read. Default: 24h." default:"24h" placeholder:"DURATION" rare:""`
	KinesisEndpoint     string        `name:"kinesis-endpoint" help:"Deliver the changes of tables with a Kinesis destination to this server (Kinesis API)." placeholder:"URL" rare:""`
	KinesisDir          string        `name:"kinesis-dir" help:"Deliver the changes of tables with a Kinesis destination to files in this folder: one per stream, one record per line." placeholder:"DIR" rare:""`

	IndexDelay time.Duration `kong:"-"` // like TableDelay, only for indexes that UpdateTable adds or deletes
}

// auth is one of the three modes; "" is authAny, or authStrict if keys are known.
type auth string

const (
	authAny    auth = "any"
	authNone   auth = "none"
	authStrict auth = "strict"
)

// throttle is "", throttleTables or throttlePartitions.
type throttle string

const (
	throttleTables     throttle = "tables"
	throttlePartitions throttle = "partitions"
)

// IsBool implements kong.BoolMapperValue: --throttle without a value is throttleTables.
func (*throttle) IsBool() bool { return true }

// Decode implements kong.MapperValue.
func (t *throttle) Decode(ctx *kong.DecodeContext) error {
	*t = throttleTables
	if ctx.Scan.Peek().Type != kong.FlagValueToken {
		return nil
	}
	switch value := ctx.Scan.Pop().String(); value {
	case "true", string(throttleTables):
	case "false":
		*t = ""
	case string(throttlePartitions):
		*t = throttlePartitions
	default:
		return fmt.Errorf("%q must be true, false, tables or partitions", value)
	}
	return nil
}

// check rejects invalid and contradicting flags.
func (d *dynamoDBFlags) check(access accessFlags, mappings int) error {
	if err := facade.MessageProfile(d.Messages).Check(); err != nil {
		return fmt.Errorf("--messages: %w", err)
	}
	keys := d.secret(access)
	switch d.Auth {
	case "":
	case authStrict:
		if !keys {
			return errors.New("--auth strict needs --access-keys or --token-file, which name the known keys")
		}
	case authAny, authNone:
		if keys {
			return fmt.Errorf("--auth %s cannot be combined with --access-keys or --token-file: it does not verify keys", d.Auth)
		}
	default:
		return fmt.Errorf("--auth: %q must be any, none or strict", d.Auth)
	}
	switch {
	case d.Namespaced && mappings > 0:
		return errors.New("--namespaced and --mapping cannot be combined: a mapping names one Bigtable table, which callers would share")
	case d.KinesisEndpoint != "" && d.KinesisDir != "":
		return errors.New("--kinesis-endpoint and --kinesis-dir cannot be combined: changes are delivered once")
	case d.IndexLag < 0:
		return fmt.Errorf("--index-lag: %v must not be negative", d.IndexLag)
	case d.StreamShardRotation == 0: // the endpoint would use the default
		return errors.New("--stream-shard-rotation: must be greater than 0s")
	case d.StreamRetention == 0:
		return errors.New("--stream-retention: must be greater than 0s")
	case d.TableDelay < 0:
		return fmt.Errorf("--table-delay: %v must not be negative", d.TableDelay)
	}
	return nil
}

// secret reports whether clients need a known key.
func (d *dynamoDBFlags) secret(access accessFlags) bool {
	return d.AccessKeys != "" || access.TokenFile != ""
}

// tokenKeyID is the access key whose secret is the token of --token-file.
const tokenKeyID = "tabletop"

// announced returns the settings for the ready line that differ from the defaults: a flag, file
// or environment variable may have been forgotten.
func (d *dynamoDBFlags) announced() string {
	text := ""
	for _, on := range []struct{ value, does string }{
		{string(d.Throttle), "throttling by "},
		{d.Buckets, "buckets in "},
		{d.KinesisDir, "Kinesis streams in "},
		{d.KinesisEndpoint, "Kinesis streams at "},
	} {
		if on.value != "" {
			text += "; " + on.does + on.value
		}
	}
	return text
}

// dynamoDBFlag maps options of the endpoint to their flags.
var dynamoDBFlag = map[string]string{
	"KinesisEndpoint": "--kinesis-endpoint", "KinesisDir": "--kinesis-dir", "StreamShards": "--stream-shards",
	"StreamShardRotation": "--stream-shard-rotation", "StreamRetention": "--stream-retention",
}

// apply sets the options of the endpoint from the flags. token is that of --token-file, or "".
func (d *dynamoDBFlags) apply(o *facade.Options, token string) error {
	o.Messages = facade.MessageProfile(d.Messages)
	o.NoAuth, o.Namespaced, o.IndexLag = d.Auth == authNone, d.Namespaced, d.IndexLag
	o.KinesisEndpoint, o.KinesisDir = d.KinesisEndpoint, d.KinesisDir
	o.Throttle = map[throttle]facade.Throttle{throttleTables: facade.ThrottleTables, throttlePartitions: facade.ThrottlePartitions}[d.Throttle]
	o.StreamShards, o.StreamShardRotation, o.StreamRetention = d.StreamShards, d.StreamShardRotation, d.StreamRetention
	t, index := d.TableDelay, max(d.TableDelay, d.IndexDelay)
	o.StatusDelays = facade.StatusDelays{
		Create: t, Update: t, Delete: t, IndexCreate: index, IndexFill: t, IndexDelete: index, TimeToLive: t, Backup: t,
	}
	var err error
	if d.AccessKeys != "" {
		if o.AccessKeys, err = readAccessKeys(d.AccessKeys); err != nil {
			return err
		}
	}
	if token != "" {
		if o.AccessKeys == nil {
			o.AccessKeys = map[string]string{}
		}
		o.AccessKeys[tokenKeyID] = token
	}
	return nil
}

// readAccessKeys reads a file of lines ID SECRET. It skips empty lines and comments (#). No
// error shows a secret.
func readAccessKeys(file string) (map[string]string, error) {
	src, err := os.ReadFile(file)
	if err != nil {
		return nil, badInput("--access-keys: %w", err)
	}
	keys := map[string]string{}
	for n, line := range bytes.Split(src, []byte("\n")) {
		text := strings.TrimSpace(string(line))
		if text == "" || text[0] == '#' {
			continue
		}
		fields := strings.Fields(text)
		if len(fields) != 2 {
			return nil, badInput("--access-keys: %s:%d: found %d words; expected an access key and its secret", file, n+1, len(fields))
		}
		if _, twice := keys[fields[0]]; twice {
			return nil, badInput("--access-keys: %s:%d: access key %s is listed twice", file, n+1, fields[0])
		}
		keys[fields[0]] = fields[1]
	}
	if len(keys) == 0 {
		return nil, badInput("--access-keys: %s contains no keys; expected lines of the form ID SECRET", file)
	}
	return keys, nil
}
