package emu

import (
	"context"
	"encoding/base64"
	"strings"

	btpb "cloud.google.com/go/bigtable/apiv2/bigtablepb"
	"google.golang.org/grpc/metadata"
	"google.golang.org/protobuf/proto"
)

// targetOf returns the name of the table, view or instance that a request is to
// and the app profile that it names. A session is opened by a request inside a
// request.
func targetOf(req any) (name, profile string) {
	if r, ok := req.(*btpb.SessionRequest); ok {
		open := &btpb.OpenTableRequest{} // the same on the wire as the requests of other kinds of sessions
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
	if r, ok := req.(interface{ GetInstanceName() string }); ok {
		name = r.GetInstanceName()
	}
	if r, ok := req.(*btpb.PingAndWarmRequest); ok {
		name = r.GetName()
	}
	return name, profile
}

// rowOf returns the key of the one row that a request is for, nil if it is for
// several.
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

// clientFeatures decodes the header in which a client says what it can do: FeatureFlags in
// URL-safe base64, with padding or, from some clients, without. It returns nil if it
// cannot be read.
func clientFeatures(header string) *btpb.FeatureFlags {
	raw, err := base64.RawURLEncoding.DecodeString(strings.TrimRight(header, "="))
	flags := &btpb.FeatureFlags{}
	if err != nil || proto.Unmarshal(raw, flags) != nil {
		return nil
	}
	return flags
}

// wantsWholeRows recognizes the official Go client, which refuses a message
// that ends within a row: it checks after every message that none is open
// (google-cloud-go, bigtable.go, where its reader of chunks is closed). The protocol allows such
// messages, and other clients read them.
func wantsWholeRows(ctx context.Context) bool {
	if len(metadata.ValueFromIncomingContext(ctx, "google-cloud-resource-prefix")) == 0 {
		return false // a caller of the stubs
	}
	for _, agent := range metadata.ValueFromIncomingContext(ctx, "user-agent") {
		if strings.Contains(agent, "grpc-go/") {
			return true
		}
	}
	return false
}
