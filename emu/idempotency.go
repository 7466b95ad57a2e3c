package emu

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	btpb "cloud.google.com/go/bigtable/apiv2/bigtablepb"

	"github.com/tabletop-emu/tabletop/emu/internal/refusal"
	"github.com/tabletop-emu/tabletop/engine"
)

// Idempotency tokens. A mutation with a token is applied once within idempotencyWindow, by the
// clock of the DB: a replay succeeds without changes. A token applies to one row. It is stored
// in the commit of the mutation, so that a crash keeps both or neither.
//
// The name of a token's resource begins with the period of its use; a period is as long as the
// window. A lookup therefore tries two names, and old tokens are deleted by prefix.

// NoLimits does not disable these.
const (
	minTokenBytes     = 8
	idempotencyWindow = 15 * time.Minute
)

const idempotencyPrefix = "idempotency/"

// checkIdempotency validates a token at the time of the request.
func checkIdempotency(field string, id *btpb.Idempotency, now time.Time) error {
	if n := len(id.GetToken()); n < minTokenBytes {
		return refusal.Invalid(field+".token", "%d bytes; must be at least %d bytes long", n, minTokenBytes)
	}
	start := id.GetStartTime()
	if start == nil || start.GetSeconds() == 0 && start.GetNanos() == 0 {
		return nil
	}
	if err := start.CheckValid(); err != nil {
		return refusal.Invalid(field+".start_time", "%v", err)
	}
	if age := now.Sub(start.AsTime()); age >= idempotencyWindow {
		return refusal.IdempotencyExpired(age, idempotencyWindow)
	}
	return nil
}

// mutateOnce applies muts to the row of tx unless the token of id was used on the row within
// the window. It returns the period of the token, for forgetTokens after tx.
func mutateOnce(tx *engine.RowTx, key []byte, muts []engine.Mutation, field string, id *btpb.Idempotency) (period int64, err error) {
	now := tx.Now()
	if err := checkIdempotency(field, id, now); err != nil {
		return 0, err
	}
	period = idempotencyPeriod(now)
	names := [2]string{
		idempotencyName(period, tx.Table().ID, key, id.GetToken()),
		idempotencyName(period-1, tx.Table().ID, key, id.GetToken()),
	}
	for _, name := range names {
		used, err := tx.Resource(name)
		switch {
		case errors.Is(err, engine.ErrResourceNotFound):
			continue
		case err != nil:
			return 0, err
		}
		if len(used) == 8 && now.UnixMicro()-int64(binary.BigEndian.Uint64(used)) < idempotencyWindow.Microseconds() {
			return period, nil
		}
	}
	if err := tx.Mutate(muts); err != nil {
		return 0, err
	}
	return period, tx.PutResource(names[0], binary.BigEndian.AppendUint64(nil, uint64(now.UnixMicro())))
}

// forgetTokens removes the tokens of expired periods, once per period.
func (s *Server) forgetTokens(ctx context.Context, period int64) {
	last := s.tokenPeriod.Load()
	if last >= period || !s.tokenPeriod.CompareAndSwap(last, period) {
		return
	}
	err := s.db.UpdateCatalog(ctx, func(tx *engine.CatalogTx) error {
		return tx.DeleteResources(idempotencyPrefix, idempotencyPeriodName(period-1))
	})
	if err != nil {
		// The next period tries again; old tokens only take space.
		s.logger.Warn("idempotency tokens were not removed", "error", err)
	}
}

func idempotencyPeriod(now time.Time) int64 {
	return now.UnixMicro() / idempotencyWindow.Microseconds()
}

func idempotencyPeriodName(period int64) string {
	return fmt.Sprintf("%s%016x/", idempotencyPrefix, uint64(max(period, 0)))
}

// idempotencyName returns the name of a token's resource.
func idempotencyName(period int64, table uint32, row, token []byte) string {
	h := sha256.New()
	head := binary.BigEndian.AppendUint32(nil, table)
	head = binary.BigEndian.AppendUint64(head, uint64(len(row)))
	for _, part := range [][]byte{head, row, token} {
		_, _ = h.Write(part) // a hash never fails
	}
	return fmt.Sprintf("%s%x", idempotencyPeriodName(period), h.Sum(nil))
}
