package emu

import (
	"context"
	"errors"
	"slices"
	"time"

	btpb "cloud.google.com/go/bigtable/apiv2/bigtablepb"
	"google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/tabletop-emu/tabletop/emu/internal/changes"
	"github.com/tabletop-emu/tabletop/emu/internal/refusal"
	"github.com/tabletop-emu/tabletop/emu/internal/schema"
	"github.com/tabletop-emu/tabletop/engine"
)

// GenerateInitialChangeStreamPartitions streams the partitions of a table's change
// stream, in key order: those of its initial splits, until they are split or
// merged.
func (s dataService) GenerateInitialChangeStreamPartitions(req *btpb.GenerateInitialChangeStreamPartitionsRequest, stream btpb.Bigtable_GenerateInitialChangeStreamPartitionsServer) error {
	table, err := s.streamTarget(req.GetTableName(), req.GetAppProfileId())
	if err != nil {
		return err
	}
	state, err := loadPartitions(s.db, table)
	if err != nil {
		return refusal.Of(err)
	}
	for _, p := range state.partitions() {
		if err := stream.Send(&btpb.GenerateInitialChangeStreamPartitionsResponse{Partition: toPartition(p)}); err != nil {
			return err
		}
	}
	return nil
}

// streamTarget resolves a table whose change stream is read, which must be
// enabled, through a profile that routes to a single cluster.
func (s *Server) streamTarget(name, profile string) (*engine.Table, error) {
	table, err := findTable(s.db, "table_name", name)
	if err != nil {
		return nil, err
	}
	p, err := s.profile(segments(name, 4), profile)
	switch {
	case err != nil:
		return nil, err
	case p.GetDataBoostIsolationReadOnly() != nil:
		return nil, refusal.DataBoost(p.GetName(), "change streams")
	case p != nil && p.GetSingleClusterRouting() == nil:
		return nil, refusal.Precondition("App profile %s does not route to a single cluster, as change streams need.", p.GetName())
	case table.Journal[engine.JournalStream].Keep == 0:
		return nil, refusal.Precondition("Change stream is not enabled on table %s.", name)
	}
	return table, nil
}

// ReadChangeStream streams the changes of rows in a partition, from a time or from
// where tokens say, until end_time, or without end. A partition that is not one of
// the table's, now or any more, is closed with tokens that lead to those which are.
//
// https://cloud.google.com/bigtable/docs/reference/data/rpc/google.bigtable.v2#google.bigtable.v2.Bigtable.ReadChangeStream
func (s dataService) ReadChangeStream(req *btpb.ReadChangeStreamRequest, stream btpb.Bigtable_ReadChangeStreamServer) error {
	c, err := s.openChangeStream(req)
	if err != nil {
		return err
	}
	defer c.reader.Close()
	c.ctx, c.send = stream.Context(), stream.Send
	return refusal.Of(c.run())
}

// changeStream is one ReadChangeStream.
type changeStream struct {
	s         *Server
	ctx       context.Context
	send      func(*btpb.ReadChangeStreamResponse) error
	table     *engine.Table
	partition changes.Partition
	position  changes.Position
	reader    *engine.JournalReader
	origin    string // the cluster of records that do not name theirs

	end       int64 // end_time in microseconds; 0 is none
	heartbeat time.Duration
	next      time.Time       // when the next heartbeat is due
	version   uint64          // of the resources when partitions were looked at; 0: never
	changed   *partitionState // what misaligned returned then
}

// openChangeStream validates a request and finds the position that it begins at.
func (s *Server) openChangeStream(req *btpb.ReadChangeStreamRequest) (*changeStream, error) {
	table, err := s.streamTarget(req.GetTableName(), req.GetAppProfileId())
	if err != nil {
		return nil, err
	}
	c := &changeStream{s: s, table: table, heartbeat: defaultHeartbeat, origin: s.answeredBy(req).GetClusterId()}
	if c.partition, err = parsePartition("partition", req.GetPartition()); err != nil {
		return nil, err
	}
	if d := req.GetHeartbeatDuration(); d != nil {
		if !d.IsValid() || d.AsDuration() <= 0 {
			return nil, refusal.Invalid("heartbeat_duration", "%v is not a positive duration", d.AsDuration())
		}
		c.heartbeat = d.AsDuration()
	}
	if t := req.GetEndTime(); t != nil {
		if err := t.CheckValid(); err != nil {
			return nil, refusal.Invalid("end_time", "%v", err)
		}
		c.end = max(t.AsTime().UnixMicro(), 1)
	}
	if err := c.begin(req); err != nil {
		return nil, err
	}
	c.reader, err = s.db.ReadJournal(table.Name, engine.JournalOptions{
		Reason: engine.JournalStream, Since: table.Journal[engine.JournalStream].Since,
		Span: engine.Span{Start: c.partition.Start, End: c.partition.End}, After: c.position.Number,
	})
	if err != nil {
		return nil, refusal.Of(err)
	}
	c.next = s.now().Add(c.heartbeat)
	return c, nil
}

// begin finds the position at which a request begins.
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
		if c.end != 0 && c.end < micros {
			return refusal.Invalid("end_time", "it is before start_time")
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

// token decodes a token of the request. Its partition may be narrower than the one
// for which it was issued.
func (c *changeStream) token(field string, t *btpb.StreamContinuationToken) (changes.Token, error) {
	token, err := changes.Decode(t.GetToken())
	if err != nil {
		return token, refusal.Invalid(field+".token", "%v", err)
	}
	part, err := parsePartition(field+".partition", t.GetPartition())
	if err != nil {
		return token, err
	}
	switch {
	case token.Table != c.table.ID:
		return token, refusal.Invalid(field+".token", "it is of another table")
	case token.Since != c.table.Journal[engine.JournalStream].Since:
		return token, refusal.Invalid(field+".token", "it is of a change stream that was disabled")
	case !token.Partition.Covers(part):
		return token, refusal.Invalid(field+".partition", "the token was issued for [%q, %q)", token.Partition.Start, token.Partition.End)
	}
	token.Partition = part
	return token, nil
}

// errStreamDone ends a stream that was closed as the API says.
var errStreamDone = errors.New("the stream is closed")

// run delivers what there is and what comes.
func (c *changeStream) run() error {
	changed, err := c.misaligned()
	if err == nil && changed != nil {
		err = c.leave(changed) // at the position that was asked for
	}
	for err == nil {
		changed, err = c.misaligned()
		if err == nil && changed != nil && c.position.Number >= changed.Changed {
			err = c.leave(changed)
		}
		if err == nil {
			err = c.deliver(changed)
		}
		if err == nil && changed == nil {
			err = c.wait()
		}
	}
	if errors.Is(err, errStreamDone) {
		return nil
	}
	return err
}

// misaligned returns the partitions of the table if the stream's is none of them.
// It looks at them when resources have changed, not with each wake.
func (c *changeStream) misaligned() (*partitionState, error) {
	version := c.s.db.ResourceVersion() + 1
	if c.s.anyPartition || c.version == version {
		return c.changed, nil
	}
	state, err := loadPartitions(c.s.db, c.table)
	if err != nil {
		return nil, err
	}
	if c.changed, c.version = state, version; slices.ContainsFunc(state.partitions(), c.partition.Equal) {
		c.changed = nil
	}
	return c.changed, nil
}

// deliver sends what can be read now; of a partition that has changed, what was
// committed before.
func (c *changeStream) deliver(changed *partitionState) error {
	for c.reader.Next() {
		r := c.reader.Record()
		if changed == nil {
			var err error
			if changed, err = c.misaligned(); err != nil {
				return err
			}
		}
		if c.end != 0 && r.Micros > c.end {
			return c.close()
		}
		if changed != nil && r.Number > changed.Changed {
			return c.leave(changed)
		}
		wanted := r.Kind != engine.JournalFamilyDropped && c.position.Wants(r.Row, r.Number)
		c.position.Advance(r.Number)
		if wanted {
			if err := c.sendRecord(r); err != nil {
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

// wait waits for what may be next, holding nothing of the store.
func (c *changeStream) wait() error {
	due := c.next
	if end := time.UnixMicro(c.end + 1); c.end != 0 && end.Before(due) {
		due = end
	}
	reached, stop := c.s.clock.At(due)
	defer stop()
	select {
	case <-c.reader.Signal():
	case <-reached:
		if !c.s.now().Before(c.next) {
			return c.sendHeartbeat()
		}
	case <-c.s.after(maxSilence):
		// Whatever the clock does: the Java client gives up a stream that says
		// nothing for a minute.
		return c.sendHeartbeat()
	case <-c.s.stopping:
		return refusal.Stopping()
	case <-c.ctx.Done():
		return c.ctx.Err()
	}
	return nil
}

// tokenOf returns a token at the present position, for a part of the partition.
func (c *changeStream) tokenOf(part changes.Partition) string {
	t := changes.Token{
		Table: c.table.ID, Since: c.table.Journal[engine.JournalStream].Since, Partition: part, Position: c.position.Within(part),
	}
	return t.Encode()
}

// watermark returns a time that no record to come was committed before.
func (c *changeStream) watermark() *timestamppb.Timestamp {
	return timestamppb.New(time.UnixMicro(c.reader.Position().Micros))
}

// sendRecord sends a record, in as many messages as it needs.
func (c *changeStream) sendRecord(r *engine.JournalRecord) error {
	first := &btpb.ReadChangeStreamResponse_DataChange{
		Type: btpb.ReadChangeStreamResponse_DataChange_USER, RowKey: r.Row, CommitTimestamp: timestamppb.New(time.UnixMicro(r.Micros)),
	}
	if r.Kind == engine.JournalGC {
		first.Type = btpb.ReadChangeStreamResponse_DataChange_GARBAGE_COLLECTION
	} else if first.SourceClusterId = r.Origin; r.Origin == "" {
		first.SourceClusterId = c.origin
	}
	muts := make([]*btpb.Mutation, len(r.Mutations))
	for i := range r.Mutations {
		muts[i] = toMutation(&r.Mutations[i])
	}
	return changes.Send(first, muts, func(last *btpb.ReadChangeStreamResponse_DataChange) {
		last.Token, last.EstimatedLowWatermark = c.tokenOf(c.partition), c.watermark()
	}, c.send)
}

// sendHeartbeat says how far the stream has come.
func (c *changeStream) sendHeartbeat() error {
	c.next = c.s.now().Add(c.heartbeat)
	return c.send(&btpb.ReadChangeStreamResponse{StreamRecord: &btpb.ReadChangeStreamResponse_Heartbeat_{
		Heartbeat: &btpb.ReadChangeStreamResponse_Heartbeat{
			ContinuationToken:     &btpb.StreamContinuationToken{Partition: toPartition(c.partition), Token: c.tokenOf(c.partition)},
			EstimatedLowWatermark: c.watermark(),
		},
	}})
}

// close ends a stream that has come to end_time: without tokens, as Java's reader
// requires of OK.
func (c *changeStream) close() error {
	return c.sendClose(&btpb.ReadChangeStreamResponse_CloseStream{Status: &status.Status{}})
}

// leave ends a stream whose partition is none any more, with as many tokens as new
// partitions.
func (c *changeStream) leave(now *partitionState) error {
	out := &btpb.ReadChangeStreamResponse_CloseStream{
		Status: &status.Status{Code: int32(codes.OutOfRange), Message: "Partition boundaries are misaligned."},
	}
	parts, next := changes.Leave(c.partition, now.partitions())
	for i := range parts {
		out.ContinuationTokens = append(out.ContinuationTokens, &btpb.StreamContinuationToken{Partition: toPartition(parts[i]), Token: c.tokenOf(parts[i])})
		out.NewPartitions = append(out.NewPartitions, toPartition(next[i]))
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

// parsePartition reads a partition, all keys if there is none.
func parsePartition(field string, p *btpb.StreamPartition) (changes.Partition, error) {
	out := changes.Partition{Start: []byte{}, End: []byte{}}
	switch k := p.GetRowRange().GetStartKey().(type) {
	case nil:
	case *btpb.RowRange_StartKeyClosed:
		out.Start = k.StartKeyClosed
	default:
		return out, refusal.Invalid(field+".row_range", "the start key must be start_key_closed")
	}
	switch k := p.GetRowRange().GetEndKey().(type) {
	case nil:
	case *btpb.RowRange_EndKeyOpen:
		out.End = k.EndKeyOpen
	default:
		return out, refusal.Invalid(field+".row_range", "the end key must be end_key_open")
	}
	if out.Empty() {
		return out, refusal.Invalid(field+".row_range", "start_key must be less than end_key")
	}
	return out, nil
}

// toPartition is the inverse of parsePartition. Both bounds are set, also to "":
// clients read them.
func toPartition(p changes.Partition) *btpb.StreamPartition {
	return &btpb.StreamPartition{RowRange: &btpb.RowRange{
		StartKey: &btpb.RowRange_StartKeyClosed{StartKeyClosed: p.Start}, EndKey: &btpb.RowRange_EndKeyOpen{EndKeyOpen: p.End},
	}}
}

// toMutation converts a mutation as it was recorded. Values are those kinds that
// Java's reader takes.
func toMutation(m *engine.Mutation) *btpb.Mutation {
	value := func(b []byte) *btpb.Value { return &btpb.Value{Kind: &btpb.Value_RawValue{RawValue: b}} }
	at := &btpb.Value{Kind: &btpb.Value_RawTimestampMicros{RawTimestampMicros: m.Timestamp}}
	switch m.Kind {
	case engine.SetCell:
		return &btpb.Mutation{Mutation: &btpb.Mutation_SetCell_{SetCell: &btpb.Mutation_SetCell{
			FamilyName: m.Family, ColumnQualifier: m.Qualifier, TimestampMicros: m.Timestamp, Value: m.Value,
		}}}
	case engine.DeleteFromColumn:
		d := &btpb.Mutation_DeleteFromColumn{FamilyName: m.Family, ColumnQualifier: m.Qualifier}
		if m.Start != 0 || m.End != 0 {
			d.TimeRange = &btpb.TimestampRange{StartTimestampMicros: m.Start, EndTimestampMicros: m.End}
		}
		return &btpb.Mutation{Mutation: &btpb.Mutation_DeleteFromColumn_{DeleteFromColumn: d}}
	case engine.AddToCell:
		in := value(m.Value)
		if m.Value == nil {
			in = &btpb.Value{Kind: &btpb.Value_IntValue{IntValue: m.Input}}
		}
		return &btpb.Mutation{Mutation: &btpb.Mutation_AddToCell_{AddToCell: &btpb.Mutation_AddToCell{
			FamilyName: m.Family, ColumnQualifier: value(m.Qualifier), Timestamp: at, Input: in,
		}}}
	case engine.MergeToCell:
		return &btpb.Mutation{Mutation: &btpb.Mutation_MergeToCell_{MergeToCell: &btpb.Mutation_MergeToCell{
			FamilyName: m.Family, ColumnQualifier: value(m.Qualifier), Timestamp: at, Input: value(m.Value),
		}}}
	case engine.DeleteFromFamily, engine.DeleteFromRow: // the latter is never recorded
	}
	return &btpb.Mutation{Mutation: &btpb.Mutation_DeleteFromFamily_{DeleteFromFamily: &btpb.Mutation_DeleteFromFamily{FamilyName: m.Family}}}
}

// setStream makes the engine record what the settings of a table ask for.
func setStream(t *engine.Table) {
	t.Journal[engine.JournalStream].Keep = schema.SettingsOf(t).GetChangeStreamConfig().GetRetentionPeriod().AsDuration()
}

// checkNoStream refuses to delete a table whose change stream is enabled.
func checkNoStream(t *engine.Table, what string) error {
	if t.Journal[engine.JournalStream].Keep > 0 {
		return refusal.Precondition("Table %s has a change stream; disable it before %s.", t.Name, what)
	}
	return nil
}

// fromCluster returns a context in which writes to a table with a change stream
// are recorded as taken by the cluster that answers req.
func (s *Server) fromCluster(ctx context.Context, t *engine.Table, req proto.Message) context.Context {
	if t.Journal[engine.JournalStream].Keep == 0 {
		return ctx
	}
	return engine.WithOrigin(ctx, s.answeredBy(req).GetClusterId())
}
