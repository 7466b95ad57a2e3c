package emu

import (
	"context"
	"errors"
	"slices"
	"time"

	btpb "cloud.google.com/go/bigtable/apiv2/bigtablepb"
	"google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/tabletop-emu/tabletop/emu/internal/admin"
	"github.com/tabletop-emu/tabletop/emu/internal/changes"
	"github.com/tabletop-emu/tabletop/emu/internal/refusal"
	"github.com/tabletop-emu/tabletop/emu/internal/replica"
	"github.com/tabletop-emu/tabletop/emu/internal/resname"
	"github.com/tabletop-emu/tabletop/engine"
)

const (
	// defaultHeartbeat is the default of ReadChangeStreamRequest.heartbeat_duration.
	defaultHeartbeat = 5 * time.Second
	// maxSilence is the longest wall time without a message on a change stream.
	maxSilence = 20 * time.Second
)

// GenerateInitialChangeStreamPartitions streams the current partitions of a table's change stream,
// in key order. A new stream is partitioned at the table's initial splits; later the partitions are
// split and merged.
func (c *call) GenerateInitialChangeStreamPartitions(req *btpb.GenerateInitialChangeStreamPartitionsRequest, stream btpb.Bigtable_GenerateInitialChangeStreamPartitionsServer) error {
	table, err := c.streamTarget(req.GetTableName(), req.GetAppProfileId())
	if err != nil {
		return err
	}
	state, err := admin.LoadPartitions(c.db, table)
	if err != nil {
		return refusal.Of(err)
	}
	for _, p := range state.All() {
		if err := stream.Send(&btpb.GenerateInitialChangeStreamPartitionsResponse{Partition: changes.ToPartition(p)}); err != nil {
			return err
		}
	}
	return nil
}

// streamTarget resolves a table with a change stream, and routes the call by the app profile,
// which must route to a single cluster.
func (c *call) streamTarget(name, profile string) (*engine.Table, error) {
	table, err := admin.FindTable(c.db, "table_name", name)
	if err != nil {
		return nil, err
	}
	instance := resname.First(name, 4)
	r, p, err := c.profile(instance, profile)
	switch {
	case err != nil:
	case p.GetDataBoostIsolationReadOnly() != nil:
		err = refusal.DataBoost(p.GetName(), "change streams")
	case p != nil && p.GetSingleClusterRouting() == nil:
		err = refusal.Precondition("App profile %s does not route to a single cluster, which change streams require.", p.GetName())
	case table.Journal[engine.JournalStream].Keep == 0:
		err = refusal.Precondition("Change stream is not enabled on table %s.", name)
	}
	if err != nil {
		return nil, err
	}
	return table, c.route(instance, r, p, nil)
}

// ReadChangeStream streams the changes of rows in a partition. It starts at a given time or at the
// position of tokens, and ends at end_time if it is set. If the partition is not a current
// partition of the table, the stream closes with tokens for the current partitions.
//
// https://cloud.google.com/bigtable/docs/reference/data/rpc/google.bigtable.v2#google.bigtable.v2.Bigtable.ReadChangeStream
func (c *call) ReadChangeStream(req *btpb.ReadChangeStreamRequest, stream btpb.Bigtable_ReadChangeStreamServer) error {
	cs, err := c.openChangeStream(req)
	if err != nil {
		return err
	}
	defer cs.reader.Close()
	c.calls.Endless()
	defer c.calls.Ended()
	cs.ctx, cs.send = stream.Context(), stream.Send
	return refusal.Of(cs.run())
}

// changeStream is one ReadChangeStream.
type changeStream struct {
	s         *Server
	ctx       context.Context
	send      func(*btpb.ReadChangeStreamResponse) error
	table     *engine.Table
	partition changes.Partition
	position  changes.Position
	reader    *replica.Reader
	origin    string   // the cluster of records without an origin
	ties      []string // the sorted ids of the instance's clusters; nil for one cluster

	end       int64 // end_time in microseconds; 0 if unset
	heartbeat time.Duration
	next      time.Time         // time of the next heartbeat
	version   uint64            // of the resources when misaligned last ran, plus 1; 0: never
	changed   *admin.Partitions // the result of misaligned then
}

// openChangeStream validates a request and finds its start position.
func (c *call) openChangeStream(req *btpb.ReadChangeStreamRequest) (*changeStream, error) {
	table, err := c.streamTarget(req.GetTableName(), req.GetAppProfileId())
	if err != nil {
		return nil, err
	}
	cs := &changeStream{s: c.Server, table: table, heartbeat: defaultHeartbeat, origin: c.at.Cluster}
	if cs.ties, err = tiesOf(c.db, resname.First(table.Name, 4)); err != nil {
		return nil, err
	}
	if cs.partition, err = changes.ParsePartition("partition", req.GetPartition()); err != nil {
		return nil, err
	}
	if d := req.GetHeartbeatDuration(); d != nil {
		if !d.IsValid() || d.AsDuration() <= 0 {
			return nil, refusal.Invalid("heartbeat_duration", "%v is not a positive duration", d.AsDuration())
		}
		cs.heartbeat = d.AsDuration()
	}
	if t := req.GetEndTime(); t != nil {
		if err := t.CheckValid(); err != nil {
			return nil, refusal.Invalid("end_time", "%v", err)
		}
		cs.end = max(t.AsTime().UnixMicro(), 1)
	}
	if err := cs.begin(req); err != nil {
		return nil, err
	}
	cs.reader, err = replica.NewReader(replica.ReaderOptions{
		DB: c.db, Table: table.Name, Journal: engine.JournalOptions{
			Reason: engine.JournalStream, Since: table.Journal[engine.JournalStream].Since,
			Span: engine.Span{Start: cs.partition.Start, End: cs.partition.End}, After: cs.position.Number,
		},
		At: c.at,
	})
	if err != nil {
		return nil, refusal.Of(err)
	}
	cs.next = c.now().Add(cs.heartbeat)
	return cs, nil
}

// tiesOf returns the ids of an instance's clusters in the order of their tiebreakers; nil for
// one cluster.
func tiesOf(r admin.Catalog, instance string) ([]string, error) {
	clusters, err := admin.ClustersOf(r, instance)
	if err != nil || len(clusters) < 2 {
		return nil, err
	}
	ids := make([]string, len(clusters))
	for i, cluster := range clusters {
		ids[i] = resname.Last(cluster.GetName())
	}
	slices.Sort(ids)
	return ids, nil
}

// startGrace is how far start_time may precede the change stream: clients round the time at
// which they enabled it down to whole seconds.
const startGrace = time.Second

// begin sets c.position to the start position of a request: that of its start time or tokens, by
// default the end of the journal.
func (c *changeStream) begin(req *btpb.ReadChangeStreamRequest) error {
	at, err := c.s.db.JournalEnd(c.table.Name, engine.JournalStream)
	if err != nil {
		return refusal.Of(err)
	}
	switch from := req.GetStartFrom().(type) {
	case nil:
		c.position.Number = at.Number
	case *btpb.ReadChangeStreamRequest_StartTime:
		if err := from.StartTime.CheckValid(); err != nil {
			return refusal.Invalid("start_time", "%v", err)
		}
		micros := from.StartTime.AsTime().UnixMicro()
		if micros > at.Latest {
			return refusal.Invalid("start_time", "%v is in the future", from.StartTime.AsTime())
		}
		if began := c.table.Journal[engine.JournalStream].Began; micros < began-startGrace.Microseconds() {
			return refusal.Invalid("start_time", "%v is before the change stream was enabled, at %v", from.StartTime.AsTime(), time.UnixMicro(began).UTC())
		}
		if c.end != 0 && c.end < micros {
			return refusal.Invalid("end_time", "is before start_time")
		}
		c.position.Number, err = c.s.db.JournalAt(c.table.Name, engine.JournalStream, micros)
		if err != nil {
			return refusal.Of(err)
		}
	case *btpb.ReadChangeStreamRequest_ContinuationTokens:
		var tokens []changes.Token
		for i, t := range from.ContinuationTokens.GetTokens() {
			token, err := c.token(refusal.Element("continuation_tokens.tokens", i), t)
			if err != nil {
				return err
			}
			tokens = append(tokens, token)
		}
		if len(tokens) == 0 {
			return refusal.Invalid("continuation_tokens", "must hold at least one token")
		}
		if c.position, err = changes.Join(c.partition, tokens); err != nil {
			return refusal.Invalid("continuation_tokens", "the tokens %v", err)
		}
	}
	return nil
}

// token decodes a token of the request. Its partition may be narrower than when the token was
// issued.
func (c *changeStream) token(field string, t *btpb.StreamContinuationToken) (changes.Token, error) {
	token, err := changes.Decode(t.GetToken())
	if err != nil {
		return token, refusal.Invalid(field+".token", "%v", err)
	}
	part, err := changes.ParsePartition(field+".partition", t.GetPartition())
	if err != nil {
		return token, err
	}
	switch {
	case token.Table != c.table.ID:
		return token, refusal.Invalid(field+".token", "the token belongs to another table")
	case token.Since != c.table.Journal[engine.JournalStream].Since:
		return token, refusal.Invalid(field+".token", "the token belongs to a change stream that was disabled")
	case !token.Partition.Covers(part):
		return token, refusal.Invalid(field+".partition", "the token was issued for [%q, %q)", token.Partition.Start, token.Partition.End)
	}
	token.Partition = part
	return token, nil
}

// errStreamDone ends a stream after its CloseStream message.
var errStreamDone = errors.New("the stream is closed")

// run sends existing and future records until the stream ends.
func (c *changeStream) run() error {
	changed, err := c.misaligned()
	if err == nil && changed != nil {
		err = c.leave(changed) // at the requested position
	}
	for err == nil {
		changed, err = c.misaligned()
		if err == nil && changed != nil && c.position.Number >= changed.Changed {
			err = c.leave(changed)
		}
		if err == nil {
			err = c.deliver(changed)
		}
		switch {
		case err != nil:
		case changed != nil: // the tokens cover undelivered records
			err = c.leave(changed)
		default:
			err = c.wait()
		}
	}
	if errors.Is(err, errStreamDone) {
		return nil
	}
	return err
}

// misaligned returns the partitions of the table if the stream's partition is not among them,
// else nil. With Options.AnyPartition, every partition is valid. It loads them only if resources
// have changed.
func (c *changeStream) misaligned() (*admin.Partitions, error) {
	version := c.s.db.ResourceVersion() + 1
	if c.s.anyPartition || c.version == version {
		return c.changed, nil
	}
	state, err := admin.LoadPartitions(c.s.db, c.table)
	if err != nil {
		return nil, err
	}
	if c.changed, c.version = state, version; slices.ContainsFunc(state.All(), c.partition.Equal) {
		c.changed = nil
	}
	return c.changed, nil
}

// deliver sends the readable records. If the partition has changed, it sends only records
// committed before the change.
func (c *changeStream) deliver(changed *admin.Partitions) error {
	for c.reader.Next() {
		r := c.reader.Record()
		if changed == nil {
			var err error
			if changed, err = c.misaligned(); err != nil {
				return err
			}
		}
		if c.end != 0 && c.reader.Position().Micros > c.end {
			return c.close()
		}
		if changed != nil && r.Number > changed.Changed {
			return c.leave(changed)
		}
		wanted := r.Kind != engine.JournalFamilyDropped && c.position.Wants(r.Row, r.Origin, r.Number) && (c.end == 0 || r.Micros <= c.end)
		c.position.Advance(c.reader.Position().Number)
		c.position.AdvanceOf(c.partition, r.Origin, r.Number)
		if wanted {
			if err := c.sendRecord(r); err != nil {
				return err
			}
			if err := c.churnPartitions(r.Row); err != nil {
				return err
			}
		}
		if !c.s.now().Before(c.next) {
			if err := c.sendHeartbeat(); err != nil {
				return err
			}
		}
		select {
		case <-c.s.stopping:
			return refusal.Stopping()
		default:
		}
	}
	if err := c.reader.Err(); err != nil {
		return err
	}
	c.position.Advance(c.reader.Position().Number)
	if c.end != 0 && c.reader.Position().Micros > c.end {
		return c.close()
	}
	return nil
}

// wait waits for the next possible event without holding resources of the store.
func (c *changeStream) wait() error {
	due := c.next
	if end, ok := c.reader.Passes(c.end); c.end != 0 && ok && end.Before(due) {
		due = end
	}
	if at, ok := c.reader.Due(); ok && at.Before(due) {
		due = at
	}
	changed := c.s.replication.Changed()
	if c.reader.Stale() {
		return nil
	}
	reached, stop := c.s.clock.At(due)
	defer stop()
	select {
	case <-changed:
	case <-c.reader.Signal():
	case <-reached:
		if !c.s.now().Before(c.next) {
			return c.sendHeartbeat()
		}
	case <-c.s.after(maxSilence):
		// By the wall clock: the Java client gives up a stream after a minute of silence.
		return c.sendHeartbeat()
	case <-c.s.stopping:
		return refusal.Stopping()
	case <-c.ctx.Done():
		return c.ctx.Err()
	}
	return nil
}

// tokenOf returns a token at the current position for a part of the partition.
func (c *changeStream) tokenOf(part changes.Partition) string {
	t := changes.Token{
		Table: c.table.ID, Since: c.table.Journal[engine.JournalStream].Since, Partition: part, Position: c.position.Within(part),
	}
	return t.Encode()
}

// watermark returns a lower bound for the commit times of future records.
func (c *changeStream) watermark() *timestamppb.Timestamp {
	return timestamppb.New(time.UnixMicro(c.reader.Position().Micros))
}

// sendRecord sends a record in one or more messages.
func (c *changeStream) sendRecord(r *engine.JournalRecord) error {
	first := &btpb.ReadChangeStreamResponse_DataChange{
		Type: btpb.ReadChangeStreamResponse_DataChange_USER, RowKey: r.Row, CommitTimestamp: timestamppb.New(time.UnixMicro(r.Micros)),
	}
	if r.Kind == engine.JournalGC {
		first.Type = btpb.ReadChangeStreamResponse_DataChange_GARBAGE_COLLECTION
	} else if first.SourceClusterId = r.Origin; r.Origin == "" {
		first.SourceClusterId = c.origin
	}
	// Commit times are unique in a store, so the tiebreaker decides nothing. It is set for
	// clients that order by it.
	if at, found := slices.BinarySearch(c.ties, first.GetSourceClusterId()); found {
		first.Tiebreaker = int32(at) //nolint:gosec // there are a handful of clusters
	}
	muts := make([]*btpb.Mutation, len(r.Mutations))
	for i := range r.Mutations {
		muts[i] = changes.ToMutation(&r.Mutations[i])
	}
	return changes.Send(first, muts, func(last *btpb.ReadChangeStreamResponse_DataChange) {
		last.Token, last.EstimatedLowWatermark = c.tokenOf(c.partition), c.watermark()
	}, c.send)
}

// sendHeartbeat sends the current position of the stream, and sets the time of the next heartbeat.
func (c *changeStream) sendHeartbeat() error {
	c.next = c.s.now().Add(c.heartbeat)
	return c.send(&btpb.ReadChangeStreamResponse{StreamRecord: &btpb.ReadChangeStreamResponse_Heartbeat_{
		Heartbeat: &btpb.ReadChangeStreamResponse_Heartbeat{
			ContinuationToken:     &btpb.StreamContinuationToken{Partition: changes.ToPartition(c.partition), Token: c.tokenOf(c.partition)},
			EstimatedLowWatermark: c.watermark(),
		},
	}})
}

// close ends a stream that has reached end_time. It sends the status OK without tokens, because
// Java's reader rejects tokens with OK.
func (c *changeStream) close() error {
	return c.sendClose(&btpb.ReadChangeStreamResponse_CloseStream{Status: &status.Status{}})
}

// leave ends a stream whose partition no longer exists, with one token per new partition.
func (c *changeStream) leave(now *admin.Partitions) error {
	out := &btpb.ReadChangeStreamResponse_CloseStream{
		Status: &status.Status{Code: int32(codes.OutOfRange), Message: "Partition boundaries are misaligned."},
	}
	parts, next := changes.Leave(c.partition, now.All())
	for i := range parts {
		out.ContinuationTokens = append(out.ContinuationTokens, &btpb.StreamContinuationToken{Partition: changes.ToPartition(parts[i]), Token: c.tokenOf(parts[i])})
		out.NewPartitions = append(out.NewPartitions, changes.ToPartition(next[i]))
	}
	return c.sendClose(out)
}

func (c *changeStream) sendClose(m *btpb.ReadChangeStreamResponse_CloseStream) error {
	err := c.send(&btpb.ReadChangeStreamResponse{StreamRecord: &btpb.ReadChangeStreamResponse_CloseStream_{CloseStream: m}})
	if err != nil {
		return err
	}
	return errStreamDone
}
