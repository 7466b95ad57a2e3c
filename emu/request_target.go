package emu

import (
	"context"
	"encoding/base64"
	"strings"

	btpb "cloud.google.com/go/bigtable/apiv2/bigtablepb"
	"google.golang.org/grpc/metadata"
	"google.golang.org/protobuf/proto"
)

// targetOf returns the name of a request's table, view or instance, and its app profile. The
// first request of a session wraps the actual request.
func targetOf(req any) (name, profile string) {
	if r, ok := req.(*btpb.SessionRequest); ok {
		open := &btpb.OpenTableRequest{} // other kinds of sessions have the same wire format
		if proto.Unmarshal(r.GetOpenSession().GetPayload(), open) != nil {
			return "", ""
		}
		req = open
	}
	if r, ok := req.(interface{ GetAppProfileId() string }); ok {
		profile = r.GetAppProfileId()
	}
	if r, ok := req.(interface{ GetTableName() string }); ok {
		name = r.GetTableName()
	}
	if r, ok := req.(interface{ GetAuthorizedViewName() string }); ok && name == "" {
		name = r.GetAuthorizedViewName()
	}
	if r, ok := req.(interface{ GetMaterializedViewName() string }); ok && name == "" {
		name = r.GetMaterializedViewName()
	}
	if r, ok := req.(interface{ GetInstanceName() string }); ok {
		name = r.GetInstanceName()
	}
	if r, ok := req.(*btpb.PingAndWarmRequest); ok {
		name = r.GetName()
	}
	return name, profile
}

// rowOf returns the row key of a request for a single row, otherwise nil.
func rowOf(req any) []byte {
	switch r := req.(type) {
	case *btpb.ReadRowsRequest:
		if keys := r.GetRows().GetRowKeys(); len(keys) == 1 && len(r.GetRows().GetRowRanges()) == 0 {
			return keys[0]
		}
	case interface{ GetRowKey() []byte }:
		return r.GetRowKey()
	}
	return nil
}

// clientFeatures decodes a client's feature header: FeatureFlags in URL-safe base64, with or
// without padding. It returns nil for an invalid header.
func clientFeatures(header string) *btpb.FeatureFlags {
	raw, err := base64.RawURLEncoding.DecodeString(strings.TrimRight(header, "="))
	flags := &btpb.FeatureFlags{}
	if err != nil || proto.Unmarshal(raw, flags) != nil {
		return nil
	}
	return flags
}

// wantsWholeRows recognizes the official Go client, which rejects a message that ends within a
// row: it closes its reader of chunks after every message (google-cloud-go, bigtable.go). The
// protocol allows such messages, and other clients read them.
func wantsWholeRows(ctx context.Context) bool {
	if len(metadata.ValueFromIncomingContext(ctx, "google-cloud-resource-prefix")) == 0 {
		return false // called through the stubs
	}
	for _, agent := range metadata.ValueFromIncomingContext(ctx, "user-agent") {
		if strings.Contains(agent, "grpc-go/") {
			return true
		}
	}
	return false
}
