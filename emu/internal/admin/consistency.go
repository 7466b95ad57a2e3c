package admin

import (
	"context"
	"time"

	btapb "cloud.google.com/go/bigtable/admin/apiv2/adminpb"

	"github.com/tabletop-emu/tabletop/emu/internal/refusal"
	"github.com/tabletop-emu/tabletop/emu/internal/replica"
	"github.com/tabletop-emu/tabletop/emu/internal/resname"
	"github.com/tabletop-emu/tabletop/engine"
)

// consistencyTokenLifetime applies even if limits are off. Source: the comment of
// GenerateConsistencyToken.
const consistencyTokenLifetime = 90 * 24 * time.Hour

// GenerateConsistencyToken returns a token for CheckConsistency, valid for 90
// days.
func (s tableAdminService) GenerateConsistencyToken(_ context.Context, req *btapb.GenerateConsistencyTokenRequest) (*btapb.GenerateConsistencyTokenResponse, error) {
	t, err := FindTable(s.DB, "name", req.GetName())
	if err != nil {
		return nil, err
	}
	_, last := s.DB.JournalLast()
	return &btapb.GenerateConsistencyTokenResponse{ConsistencyToken: replica.NewToken(t.ID, last, s.now()).Encode()}, nil
}

// CheckConsistency reports whether all writes that precede the token are visible in all clusters
// or, with data_boost_read_local_writes, to Data Boost. A cluster that is CREATING does not see
// any writes yet. CheckConsistency rejects tokens of other tables or of deleted tables, and
// tokens older than 90 days.
func (s tableAdminService) CheckConsistency(_ context.Context, req *btapb.CheckConsistencyRequest) (*btapb.CheckConsistencyResponse, error) {
	t, err := FindTable(s.DB, "name", req.GetName())
	if err != nil {
		return nil, err
	}
	token, err := s.consistencyToken(t, req.GetConsistencyToken())
	if err != nil {
		return nil, err
	}
	instance, now := resname.First(t.Name, 4), s.now()
	view := s.Replication.View(instance)
	if _, ok := req.GetMode().(*btapb.CheckConsistencyRequest_DataBoostReadLocalWrites); ok {
		return &btapb.CheckConsistencyResponse{Consistent: view.Boosted(token, now)}, nil
	}
	clusters, err := StoredClusters(s.DB, instance)
	if err != nil {
		return nil, err
	}
	consistent, err := view.Consistent(s.DB, t.Name, clusters, token.Micros, now)
	return &btapb.CheckConsistencyResponse{Consistent: consistent}, refusal.Of(err)
}

func (s *Control) consistencyToken(t *engine.Table, text string) (replica.Token, error) {
	const field = "consistency_token"
	token, err := replica.DecodeToken(text)
	switch {
	case err != nil:
		return token, refusal.Invalid(field, "%q is not a token that this server issued", text)
	case token.Table != t.ID:
		return token, refusal.Invalid(field, "the token does not belong to table %s", t.Name)
	case s.now().Sub(token.Made()) > consistencyTokenLifetime:
		return token, refusal.Invalid(field, "the token was made at %s and has expired; tokens are valid for %v", token.Made().UTC().Format(time.RFC3339), consistencyTokenLifetime)
	}
	return token, nil
}
