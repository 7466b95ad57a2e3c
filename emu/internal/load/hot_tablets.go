package load

import (
	"cmp"
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"hash/fnv"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	btapb "cloud.google.com/go/bigtable/admin/apiv2/adminpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/tabletop-emu/tabletop/emu/internal/refusal"
	"github.com/tabletop-emu/tabletop/emu/internal/resname"
	"github.com/tabletop-emu/tabletop/internal/heat"
)

const (
	pieces     = 40 // of at most a twentieth of the load, except for single rows
	hotPercent = 10

	// ListHotTabletsRequest.start_time: the default span, and the longest span.
	defaultSpan = 24 * time.Hour
	maxSpan     = 48 * time.Hour
	maxAge      = 14 * 24 * time.Hour
	// skew is the tolerance for fast clocks of clients and for slow requests.
	skew = time.Minute

	maxPageSize = 1000
)

// cursor is the content of a page token: the span and the page size, fixed for
// all pages, and the number of tablets on the pages before.
type cursor struct {
	From, To int64 // microseconds
	Size     int32
	Skip     int32
}

// ListHotTablets serves a ListHotTablets request for a cluster. exists reports whether the table
// with the given resource name exists. Its errors are statuses.
func ListHotTablets(store *heat.Store, req *btapb.ListHotTabletsRequest, now time.Time, exists func(table string) bool) (*btapb.ListHotTabletsResponse, error) {
	at, err := start(req, now)
	if err != nil {
		return nil, err
	}
	all := hot(store, req.GetParent(), time.UnixMicro(at.From), time.UnixMicro(at.To), exists)
	resp := &btapb.ListHotTabletsResponse{HotTablets: all[min(int(at.Skip), len(all)):]}
	if size := int(at.Size); len(resp.GetHotTablets()) > size {
		resp.HotTablets = resp.GetHotTablets()[:size]
		at.Skip += at.Size
		raw, err := binary.Append(nil, binary.BigEndian, at)
		if err != nil {
			return nil, err
		}
		resp.NextPageToken = base64.RawURLEncoding.EncodeToString(raw)
	}
	return resp, nil
}

// start checks a request and returns the position of its page.
func start(req *btapb.ListHotTabletsRequest, now time.Time) (cursor, error) {
	if req.GetPageSize() < 0 {
		return cursor{}, refusal.Invalid("page_size", "%d is negative", req.GetPageSize())
	}
	// The API's comment swaps the defaults of start and end.
	from, to := now.Add(-defaultSpan), now
	for _, b := range []struct {
		field string
		given *timestamppb.Timestamp
		to    *time.Time
	}{{"start_time", req.GetStartTime(), &from}, {"end_time", req.GetEndTime(), &to}} {
		if b.given == nil {
			continue
		}
		*b.to = b.given.AsTime()
		if !b.given.IsValid() || b.to.Before(now.Add(-maxAge-skew)) || b.to.After(now.Add(skew)) {
			return cursor{}, refusal.Invalid(b.field, "%v is not in the 14 days before %v", b.given.AsTime(), now.UTC())
		}
	}
	switch {
	case !from.Before(to):
		return cursor{}, refusal.Invalid("start_time", "%v is not before end_time, %v", from.UTC(), to.UTC())
	case to.Sub(from) > maxSpan:
		return cursor{}, refusal.Invalid("start_time", "%v to end_time is more than %v", to.Sub(from), maxSpan)
	}
	if req.GetEndTime() == nil {
		to = to.Add(time.Second) // include the current second
	}
	at := cursor{From: from.UnixMicro(), To: to.UnixMicro(), Size: req.GetPageSize()}
	if at.Size == 0 || at.Size > maxPageSize {
		at.Size = maxPageSize
	}
	if req.GetPageToken() == "" {
		return at, nil
	}
	var token cursor
	raw, err := base64.RawURLEncoding.DecodeString(req.GetPageToken())
	if n, decodeErr := binary.Decode(raw, binary.BigEndian, &token); err != nil || decodeErr != nil || n != len(raw) ||
		token.Size <= 0 || token.Size > maxPageSize || token.Skip < 0 || token.To-token.From > (maxSpan+time.Second).Microseconds() {
		return cursor{}, refusal.Invalid("page_token", "%q is not a token that this server issued", req.GetPageToken())
	}
	if req.GetPageSize() != 0 && at.Size != token.Size {
		return cursor{}, refusal.Invalid("page_size", "%d differs from the page size of the first request, %d", req.GetPageSize(), token.Size)
	}
	return token, nil
}

// hot returns the hot tablets of a cluster, the hottest first.
func hot(store *heat.Store, cluster string, from, to time.Time, exists func(table string) bool) []*btapb.HotTablet {
	type piece struct {
		table string
		keys  heat.Bucket
		start time.Time
		load  uint64
	}
	var found []piece
	minutes := map[int64]uint64{} // minute -> load of the cluster
	id := resname.Last(cluster)
	tables := strings.TrimSuffix(cluster, "clusters/"+id) + "tables/"
	for _, place := range store.Places() {
		if place.Cluster != id || !strings.HasPrefix(place.Table, tables) || !exists(place.Table) {
			continue
		}
		m := store.Map(from, to, time.Minute, pieces, place)
		for _, column := range m.Columns {
			for i, c := range column.Cells {
				if load := c.Load(); load > 0 {
					minutes[column.Start.Unix()] += load
					found = append(found, piece{place.Table, m.Keys[i], column.Start, load})
				}
			}
		}
	}
	var busiest uint64
	for _, load := range minutes {
		busiest = max(busiest, load)
	}
	var out []*btapb.HotTablet
	for _, p := range found {
		percent := 100 * float64(p.load) / float64(busiest)
		if percent < hotPercent {
			continue
		}
		begin, end := p.start, p.start.Add(time.Minute)
		if begin.Before(from) { // earlier counts are excluded
			begin = from
		}
		if end.After(to) {
			end = to
		}
		out = append(out, &btapb.HotTablet{
			Name:                fmt.Sprintf("%s/hotTablets/%016x", cluster, nameOf(p.table, p.keys, p.start)),
			TableName:           p.table,
			StartTime:           timestamppb.New(begin),
			EndTime:             timestamppb.New(end),
			StartKey:            text(p.keys.First),
			EndKey:              text(p.keys.Last),
			NodeCpuUsagePercent: float32(percent),
		})
	}
	slices.SortFunc(out, func(a, b *btapb.HotTablet) int {
		return cmp.Or(
			-cmp.Compare(a.GetNodeCpuUsagePercent(), b.GetNodeCpuUsagePercent()),
			a.GetStartTime().AsTime().Compare(b.GetStartTime().AsTime()),
			cmp.Compare(a.GetTableName(), b.GetTableName()),
			cmp.Compare(a.GetStartKey(), b.GetStartKey()),
			cmp.Compare(a.GetName(), b.GetName()),
		)
	})
	return out
}

func nameOf(table string, keys heat.Bucket, start time.Time) uint64 {
	h := fnv.New64a()
	_, _ = fmt.Fprintf(h, "%q %q %q %d", table, keys.First, keys.Last, start.Unix()) // a hash never returns an error
	return h.Sum64()
}

// text returns a key as the text that the API requires, quoted if it is not
// valid text.
func text(key []byte) string {
	if utf8.Valid(key) {
		return string(key)
	}
	return fmt.Sprintf("%+q", key)
}
