package follow_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	btpb "cloud.google.com/go/bigtable/apiv2/bigtablepb"
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go"
	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"

	"github.com/tabletop-emu/tabletop/facade/mapping"
	"github.com/tabletop-emu/tabletop/internal/btclient"
	"github.com/tabletop-emu/tabletop/internal/layout"
	"github.com/tabletop-emu/tabletop/internal/layout/loadnote"
	ms "github.com/tabletop-emu/tabletop/internal/layout/migrationstate"
	"github.com/tabletop-emu/tabletop/migrate"
	"github.com/tabletop-emu/tabletop/migrate/source"
	"github.com/tabletop-emu/tabletop/migrate/stream"
	"github.com/tabletop-emu/tabletop/testkit/btkit"
)

// stream enables the stream of the table with a view, or disables it.
func (l *live) stream(t *testing.T, view types.StreamViewType) {
	t.Helper()
	spec := &types.StreamSpecification{StreamEnabled: aws.Bool(view != ""), StreamViewType: view}
	_, err := l.ddb.UpdateTable(t.Context(), &dynamodb.UpdateTableInput{TableName: aws.String("Things"), StreamSpecification: spec})
	must(t, err)
	l.env.Advance(time.Minute)
}

// denied is a source that denies a call.
type denied struct{ stream.TableClient }

func (denied) DescribeTable(context.Context, *dynamodb.DescribeTableInput, ...func(*dynamodb.Options)) (*dynamodb.DescribeTableOutput, error) {
	return nil, &smithy.GenericAPIError{Code: "AccessDeniedException", Message: "no"}
}

// as makes calls on behalf of a principal of btkit.WithIAM.
type as struct {
	grpc.ClientConnInterface
	principal string
}

func (c as) outgoing(ctx context.Context) context.Context {
	return metadata.AppendToOutgoingContext(ctx, "x-tabletop-testkit-principal", c.principal)
}

func (c as) Invoke(ctx context.Context, method string, in, out any, o ...grpc.CallOption) error {
	return c.ClientConnInterface.Invoke(c.outgoing(ctx), method, in, out, o...)
}

func (c as) NewStream(ctx context.Context, desc *grpc.StreamDesc, method string, o ...grpc.CallOption) (grpc.ClientStream, error) {
	return c.ClientConnInterface.NewStream(c.outgoing(ctx), desc, method, o...)
}

// remap replaces the stored mapping of the loaded table.
func (l *live) remap(t *testing.T) {
	t.Helper()
	other, err := mapping.Load("m.yaml", []byte(strings.Replace(followedTable, "a:{attr}", "a:x{attr}", 1)))
	must(t, err)
	rows, err := (*layout.Mapping)(other).SchemaRows(l.now().UnixMilli() * 1000)
	must(t, err)
	for _, row := range rows {
		l.mutate(t, layout.SchemaTable, string(row.Key), btclient.AppendSets([]*btpb.Mutation{btclient.DeleteRow()}, row.Cells)...)
	}
}

// A source or a target that does not allow a follower is refused with what to do, before a change is applied: also
// when it was followed before.
func TestFollow_Refused(t *testing.T) {
	t.Parallel()
	const again = "export the table again, load it into another instance, and follow it there"
	for name, c := range map[string]struct {
		first  bool // nothing followed before
		change func(t *testing.T, l *live, o *migrate.FollowOptions)
		input  bool // exit code 2
		want   []string
	}{
		"a trimmed stream": {false, func(t *testing.T, l *live, _ *migrate.FollowOptions) {
			t.Helper()
			l.env.Advance(24 * time.Hour)
		}, true, []string{"the source retains records for 24h0m0s", "records since ", " are missing", again}},
		"a stream younger than the load": {true, func(t *testing.T, l *live, _ *migrate.FollowOptions) {
			t.Helper()
			l.stream(t, "")
			l.stream(t, types.StreamViewTypeNewAndOldImages)
		}, true, []string{"its stream was enabled at ", "expected at least 1m0s before", again}},
		"a stream that was disabled and enabled": {false, func(t *testing.T, l *live, _ *migrate.FollowOptions) {
			t.Helper()
			l.stream(t, "")
			l.stream(t, types.StreamViewTypeNewAndOldImages)
		}, true, []string{"the stream was disabled and enabled again", again}},
		"a disabled stream": {false, func(t *testing.T, l *live, o *migrate.FollowOptions) {
			t.Helper()
			l.stream(t, "")
			o.UntilTip = false
		}, true, []string{"the stream of the source was disabled; all its changes are applied", "--until tip", "load it into another instance"}},
		"no stream": {true, func(t *testing.T, l *live, _ *migrate.FollowOptions) {
			t.Helper()
			l.stream(t, "")
		}, true, []string{"it has no enabled stream; enable one with the view NEW_AND_OLD_IMAGES, wait a minute, then export the table and load it"}},
		"another view": {true, func(t *testing.T, l *live, _ *migrate.FollowOptions) {
			t.Helper()
			l.stream(t, "")
			l.stream(t, types.StreamViewTypeKeysOnly)
		}, true, []string{"its stream has the view KEYS_ONLY, whose records lack the new items; disable the stream, enable one"}},
		"another table of the name": {false, func(t *testing.T, l *live, _ *migrate.FollowOptions) {
			t.Helper()
			_, err := l.ddb.DeleteTable(t.Context(), &dynamodb.DeleteTableInput{TableName: aws.String("Things")})
			must(t, err)
			l.env.Advance(time.Minute)
			l.createTable(t)
		}, true, []string{"the table was created again or restored", again}},
		"no table": {false, func(t *testing.T, l *live, _ *migrate.FollowOptions) {
			t.Helper()
			_, err := l.ddb.DeleteTable(t.Context(), &dynamodb.DeleteTableInput{TableName: aws.String("Things")})
			must(t, err)
			l.env.Advance(time.Minute)
		}, true, []string{"the source does not have the table; check its name, the endpoint and the region"}},
		"another mapping": {false, func(t *testing.T, l *live, _ *migrate.FollowOptions) {
			t.Helper()
			l.remap(t)
		}, true, []string{"its mapping in table _migration_schema has changed since the first run, and rows of both mappings would mix: restore it there, or load an export into another instance"}},
		"a time of the load beside that of the export": {true, func(_ *testing.T, l *live, o *migrate.FollowOptions) {
			o.Since = l.now()
		}, true, []string{"the loaded exports end at ", "so leave out --since"}},
		"another operator": {false, func(t *testing.T, l *live, o *migrate.FollowOptions) {
			t.Helper()
			sleep, _ := l.follow(t, "ana@host 4711")
			o.Sleep = sleep
		}, true, []string{"ana@host 4711 follows its source, and renews its lease: end that process first"}},
		"an unknown mode": {true, func(_ *testing.T, _ *live, o *migrate.FollowOptions) { o.Mode = "fast" }, true, []string{`mode "fast": expected auto, guarded or ordered`}},
		"writes of an endpoint": {true, func(t *testing.T, l *live, _ *migrate.FollowOptions) {
			t.Helper()
			l.mutate(t, layout.SchemaTable, string(layout.SchemaRowPrefix("t")), btclient.SetCell(layout.SchemaFamily, []byte(loadnote.WrittenColumn), 1000, loadnote.MomentValue(l.now())))
		}, true, []string{"a DynamoDB endpoint has written since the load", "load into another table and follow that one"}},
		"an unfinished load": {true, func(t *testing.T, l *live, _ *migrate.FollowOptions) {
			t.Helper()
			l.mutate(t, layout.SchemaTable, string(layout.SchemaRowPrefix("t")), btclient.SetCell(layout.SchemaFamily, []byte(loadnote.UnfinishedColumn), 1000, loadnote.MomentValue(l.now())))
		}, true, []string{"a load is unfinished: finish it first (tabletop migrate load)"}},
		"a source without permissions": {true, func(_ *testing.T, l *live, o *migrate.FollowOptions) {
			o.Source.Table = denied{l.clients.Table}
		}, false, []string{"the source refuses a call; check the credentials and their permissions (DescribeTable, DescribeStream, GetShardIterator, GetRecords"}},
		"a target without permissions": {true, func(_ *testing.T, l *live, _ *migrate.FollowOptions) {
			l.target = as{l.target, "user:reader@example.com"}
		}, false, []string{"the target refuses a call; check the credentials and their permissions (bigtable.tables.get, create, update, readRows and mutateRows)"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := createOver(t, followedTable, btkit.Start(t, btkit.WithIAM()))
			l.bt.GrantProject("roles/bigtable.reader", "user:reader@example.com")
			l.env.Advance(5 * time.Minute)
			l.put(t, "p", "s", 1, nil)
			l.load(t)
			if !c.first {
				l.toTip(t, "first")
			}
			state, err := l.store().State(t.Context())
			must(t, err)
			o := l.options("two")
			o.UntilTip = true
			c.change(t, l, &o)
			rows := l.bt.Dump("t")
			err = migrate.Follow(t.Context(), l.target, o)
			if err == nil {
				t.Fatal("the table is followed")
			}
			for _, want := range c.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("the error is %v, want %q", err, want)
				}
			}
			of, ofSource := errors.AsType[*stream.Error](err)
			if input := source.DamageOf(err) != "" || ofSource && of.Kind != stream.Refused; input != c.input {
				t.Errorf("the error is one of the input: %t, want %t: %v", input, c.input, err)
			}
			if got := l.bt.Dump("t"); got != rows && !strings.Contains(name, "operator") {
				t.Errorf("the refused run changes\n%s\nto\n%s", rows, got)
			}
			if now, err := l.store().State(t.Context()); err == nil && now.Phase != state.Phase && name != "another operator" && name != "a disabled stream" {
				t.Errorf("the refused run changes the phase %s to %s", state.Phase, now.Phase)
			}
		})
	}
}

// The permissions that the refusal names are enough.
func TestFollow_LeastPermissions(t *testing.T) {
	t.Parallel()
	l := createOver(t, followedTable, btkit.Start(t, btkit.WithIAM()))
	l.bt.DefineRole("projects/p/roles/follower", "bigtable.tables.get", "bigtable.tables.create", "bigtable.tables.update", "bigtable.tables.readRows", "bigtable.tables.mutateRows")
	l.bt.GrantProject("projects/p/roles/follower", "user:follower@example.com")
	l.env.Advance(5 * time.Minute)
	l.put(t, "p", "s", 1, map[string]string{"G": "g"})
	l.load(t)
	l.put(t, "p", "s", 2, map[string]string{"G": "h"})
	l.target = as{l.target, "user:follower@example.com"}
	l.toTip(t, "one")
	if s := l.status(t); s.Phase != string(ms.Drained) {
		t.Errorf("the phase is %s", s.Phase)
	}
	must(t, migrate.EndFollow(t.Context(), l.target, "Things", "operator", false, l.common()))
}
