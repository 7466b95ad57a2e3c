package changes

import (
	btpb "cloud.google.com/go/bigtable/apiv2/bigtablepb"
	"google.golang.org/protobuf/proto"
)

// MaxValueBytes is the maximum size of a value, or of a piece of a value, in one message. It leaves
// room for the other fields of the message below 1 MiB, the size above which the service splits
// records.
const MaxValueBytes = 960 << 10

// Send sends a record in one or more messages. first holds the fields that only the first message
// has, and last completes the last message.
//
// A message exceeds the limit only if a single mutation does. A value above the limit is split, and
// each piece is sent in a separate message. Other mutations may follow the last piece in its
// message.
func Send(first *btpb.ReadChangeStreamResponse_DataChange, muts []*btpb.Mutation, last func(*btpb.ReadChangeStreamResponse_DataChange), send func(*btpb.ReadChangeStreamResponse) error) error {
	message, size := first, 0
	flush := func() error {
		err := send(response(message))
		message = &btpb.ReadChangeStreamResponse_DataChange{Type: btpb.ReadChangeStreamResponse_DataChange_CONTINUATION}
		size = 0
		return err
	}
	add := func(m *btpb.Mutation, info *btpb.ReadChangeStreamResponse_MutationChunk_ChunkInfo, bytes int) {
		message.Chunks = append(message.Chunks, &btpb.ReadChangeStreamResponse_MutationChunk{ChunkInfo: info, Mutation: m})
		size += bytes
	}
	for _, m := range muts {
		value := m.GetSetCell().GetValue()
		bytes := len(value)
		if bytes < MaxValueBytes/4 { // else the size of the rest does not matter
			bytes = proto.Size(m)
		}
		if len(message.GetChunks()) > 0 && size+bytes > MaxValueBytes {
			if err := flush(); err != nil {
				return err
			}
		}
		if len(value) <= MaxValueBytes {
			add(m, nil, bytes)
			continue
		}
		for at := 0; at < len(value); at += MaxValueBytes {
			end := min(at+MaxValueBytes, len(value))
			set := m.GetSetCell()
			piece := &btpb.Mutation{Mutation: &btpb.Mutation_SetCell_{SetCell: &btpb.Mutation_SetCell{
				FamilyName: set.GetFamilyName(), ColumnQualifier: set.GetColumnQualifier(), TimestampMicros: set.GetTimestampMicros(), Value: value[at:end:end],
			}}}
			add(piece, &btpb.ReadChangeStreamResponse_MutationChunk_ChunkInfo{
				ChunkedValueSize: int32(len(value)), ChunkedValueOffset: int32(at), LastChunk: end == len(value),
			}, end-at)
			if end < len(value) {
				if err := flush(); err != nil {
					return err
				}
			}
		}
	}
	message.Done = true
	last(message)
	return send(response(message))
}

func response(change *btpb.ReadChangeStreamResponse_DataChange) *btpb.ReadChangeStreamResponse {
	return &btpb.ReadChangeStreamResponse{StreamRecord: &btpb.ReadChangeStreamResponse_DataChange_{DataChange: change}}
}
