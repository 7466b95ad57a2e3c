package emu

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"slices"
	"strings"

	btapb "cloud.google.com/go/bigtable/admin/apiv2/adminpb"
	"google.golang.org/protobuf/proto"

	"github.com/tabletop-emu/tabletop/emu/internal/listfilter"
)

// backupFields are the fields that ListBackups filters and orders by.
var backupFields = listfilter.Fields{
	"name": listfilter.Text, "source_table": listfilter.Text, "state": listfilter.Text, "size_bytes": listfilter.Number,
	"expire_time": listfilter.Time, "start_time": listfilter.Time, "end_time": listfilter.Time,
}

// backupField returns what a filter and an order see of a backup.
func backupField(b *btapb.Backup) func(string) listfilter.Value {
	return func(field string) listfilter.Value {
		switch field {
		case "name":
			return listfilter.Value{Text: b.GetName()}
		case "source_table":
			return listfilter.Value{Text: b.GetSourceTable()}
		case "state":
			return listfilter.Value{Text: b.GetState().String()}
		case "size_bytes":
			return listfilter.Value{Number: b.GetSizeBytes()}
		case "expire_time":
			return listfilter.Value{Time: b.GetExpireTime().AsTime()}
		case "start_time":
			return listfilter.Value{Time: b.GetStartTime().AsTime()}
		}
		return listfilter.Value{Time: b.GetEndTime().AsTime()}
	}
}

// listTokenSum is how much of a sum of the request a token begins with.
const listTokenSum = 8

// ListBackups returns the backups of a cluster, or of all clusters of an instance,
// the newest first or in the order asked for, in pages. A token is good for the
// parent, filter and order that it was made for: it holds the last backup of the
// page before, so that backups that come and go move no other.
func (s tableAdminService) ListBackups(_ context.Context, req *btapb.ListBackupsRequest) (*btapb.ListBackupsResponse, error) {
	parent := req.GetParent()
	if !hasShape(parent, "projects", "instances", "clusters") {
		return nil, statusBadName("parent", parent, "projects/PROJECT/instances/INSTANCE/clusters/CLUSTER")
	}
	prefix := parent + "/backups/"
	if in, all := strings.CutSuffix(parent, "/clusters/-"); all {
		if err := checkInstance(s.db, in); err != nil {
			return nil, err
		}
		prefix = in + "/clusters/"
	} else if _, err := cluster(s.db, parent); err != nil {
		return nil, err
	}
	filter, err := listfilter.Parse(req.GetFilter(), backupFields)
	if err != nil {
		return nil, statusInvalid("filter", "%v", err)
	}
	order, err := listfilter.ParseOrder(req.GetOrderBy(), backupFields)
	if err != nil {
		return nil, statusInvalid("order_by", "%v", err)
	}
	compare := func(a, b *btapb.Backup) int {
		if order == nil {
			return cmp.Or(b.GetStartTime().AsTime().Compare(a.GetStartTime().AsTime()), cmp.Compare(a.GetName(), b.GetName()))
		}
		return cmp.Or(order.Compare(backupField(a), backupField(b)), cmp.Compare(a.GetName(), b.GetName()))
	}
	sum := sha256.Sum256([]byte(parent + "\x00" + req.GetFilter() + "\x00" + req.GetOrderBy()))
	var last *btapb.Backup
	if token := req.GetPageToken(); token != "" {
		raw, err := base64.RawURLEncoding.DecodeString(token)
		last = &btapb.Backup{}
		if err != nil || len(raw) < listTokenSum || string(raw[:listTokenSum]) != string(sum[:listTokenSum]) || proto.Unmarshal(raw[listTokenSum:], last) != nil {
			return nil, statusInvalid("page_token", "%q is not a token that this server gave for this parent, filter and order", token)
		}
	}
	stored, err := s.backupsUnder(s.db, prefix)
	if err != nil {
		return nil, err
	}
	resp, now := &btapb.ListBackupsResponse{}, s.now()
	for _, x := range stored {
		b := shownBackup(x, now)
		if filter.Match(backupField(b)) && (last == nil || compare(b, last) > 0) {
			resp.Backups = append(resp.Backups, b)
		}
	}
	slices.SortFunc(resp.GetBackups(), compare)
	size := int(req.GetPageSize())
	if size <= 0 || size > maxPageSize {
		size = maxPageSize
	}
	if len(resp.GetBackups()) > size {
		resp.Backups = resp.GetBackups()[:size]
		raw, err := proto.MarshalOptions{Deterministic: true}.Marshal(resp.GetBackups()[size-1])
		if err != nil {
			return nil, toStatus(err)
		}
		resp.NextPageToken = base64.RawURLEncoding.EncodeToString(append(sum[:listTokenSum:listTokenSum], raw...))
	}
	return resp, nil
}
