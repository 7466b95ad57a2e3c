package emu

import (
	"context"
	"encoding/base64"
	"encoding/binary"
	"hash/crc32"
	"time"

	btapb "cloud.google.com/go/bigtable/admin/apiv2/adminpb"

	"github.com/tabletop-emu/tabletop/emu/internal/refusal"
	"github.com/tabletop-emu/tabletop/engine"
)

// A consistency token holds the id of its table, which no other table ever
// gets, and the time at which it was made. Nothing is kept: there are no
// replicas, so that a token is consistent as soon as it exists.
//
// table id, 4 bytes | time in microseconds, 8 bytes | CRC-32 of these, 4 bytes
const consistencyTokenBytes = 16

// GenerateConsistencyToken returns a token with which CheckConsistency can be
// asked for 90 days.
func (s tableAdminService) GenerateConsistencyToken(_ context.Context, req *btapb.GenerateConsistencyTokenRequest) (*btapb.GenerateConsistencyTokenResponse, error) {
	t, err := findTable(s.db, "name", req.GetName())
	if err != nil {
		return nil, err
	}
	raw := binary.BigEndian.AppendUint32(nil, t.ID)
	raw = binary.BigEndian.AppendUint64(raw, uint64(s.now().UnixMicro()))
	raw = binary.BigEndian.AppendUint32(raw, crc32.ChecksumIEEE(raw))
	return &btapb.GenerateConsistencyTokenResponse{ConsistencyToken: base64.RawURLEncoding.EncodeToString(raw)}, nil
}

// CheckConsistency says that what was written before the token was made can be
// read. A token of another table, or of one deleted since, is refused, and so
// is one that is older than 90 days.
func (s tableAdminService) CheckConsistency(_ context.Context, req *btapb.CheckConsistencyRequest) (*btapb.CheckConsistencyResponse, error) {
	t, err := findTable(s.db, "name", req.GetName())
	if err != nil {
		return nil, err
	}
	if err := s.checkConsistencyToken(t, req.GetConsistencyToken()); err != nil {
		return nil, err
	}
	return &btapb.CheckConsistencyResponse{Consistent: true}, nil
}

func (s *Server) checkConsistencyToken(t *engine.Table, token string) error {
	const field = "consistency_token"
	raw, err := base64.RawURLEncoding.DecodeString(token)
	if err != nil || len(raw) != consistencyTokenBytes || crc32.ChecksumIEEE(raw[:12]) != binary.BigEndian.Uint32(raw[12:]) {
		return refusal.Invalid(field, "%q is not a token of this server", token)
	}
	if binary.BigEndian.Uint32(raw) != t.ID {
		return refusal.Invalid(field, "the token is not one of table %s", t.Name)
	}
	made := time.UnixMicro(int64(binary.BigEndian.Uint64(raw[4:])))
	if s.now().Sub(made) > consistencyTokenLifetime {
		return refusal.Invalid(field, "the token was made at %s and has expired; tokens live for %v", made.UTC().Format(time.RFC3339), consistencyTokenLifetime)
	}
	return nil
}
