package backups

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/tabletop-emu/tabletop/facade/awserr"
	"github.com/tabletop-emu/tabletop/facade/internal/request"
	"github.com/tabletop-emu/tabletop/facade/internal/tabledef"
	"github.com/tabletop-emu/tabletop/facade/internal/wire"
)

// recoveryLag is the age of the latest restorable time in descriptions. Restores also
// accept later times.
const recoveryLag = 300 * time.Second

// ContinuousInput is the request of DescribeContinuousBackups.
type ContinuousInput struct{ TableName *string }

// UpdateContinuousInput is the request of UpdateContinuousBackups.
type UpdateContinuousInput struct {
	TableName                        *string
	PointInTimeRecoverySpecification *recoverySpecification
}

type recoverySpecification struct {
	PointInTimeRecoveryEnabled *wire.Flag
	RecoveryPeriodInDays       *int32
}

// ContinuousOutput is the response of DescribeContinuousBackups and
// UpdateContinuousBackups.
type ContinuousOutput struct {
	ContinuousBackupsDescription continuousBackups
}

type continuousBackups struct {
	ContinuousBackupsStatus        string
	PointInTimeRecoveryDescription recovery
}

type recovery struct {
	EarliestRestorableDateTime wire.EpochSeconds `json:",omitzero"`
	LatestRestorableDateTime   wire.EpochSeconds `json:",omitzero"`
	PointInTimeRecoveryStatus  string
	RecoveryPeriodInDays       int `json:",omitzero"`
}

// latest returns the latest restorable time in descriptions.
func latest(r *tabledef.Recovery, now time.Time) time.Time {
	if at := now.Add(-recoveryLag); at.After(r.Since) {
		return at
	}
	return r.Since
}

func (s *Service) continuous(t *tabledef.Table) *ContinuousOutput {
	d := continuousBackups{ContinuousBackupsStatus: "ENABLED", PointInTimeRecoveryDescription: recovery{PointInTimeRecoveryStatus: "DISABLED"}}
	if s.young(t) {
		d.ContinuousBackupsStatus = "DISABLED"
	}
	if r := t.Recovery; r.On() {
		now := s.Now()
		d.PointInTimeRecoveryDescription = recovery{
			wire.EpochSeconds(r.Earliest(now).UnixMilli()), wire.EpochSeconds(latest(r, now).UnixMilli()), "ENABLED", r.Days,
		}
	}
	return &ContinuousOutput{d}
}

// DescribeContinuous returns the times to which a table can be restored.
// https://docs.aws.amazon.com/amazondynamodb/latest/APIReference/API_DescribeContinuousBackups.html
func (s *Service) DescribeContinuous(ctx context.Context, in *ContinuousInput) (*ContinuousOutput, error) {
	name, err := s.V.ControlTableName(in.TableName)
	if err != nil {
		return nil, err
	}
	t, err := s.table(ctx, name)
	if err != nil {
		return nil, err
	}
	return s.continuous(t), nil
}

// UpdateContinuous turns point-in-time recovery of a table on or off, or changes its period.
// A repeated request changes nothing.
// https://docs.aws.amazon.com/amazondynamodb/latest/APIReference/API_UpdateContinuousBackups.html
func (s *Service) UpdateContinuous(ctx context.Context, in *UpdateContinuousInput) (*ContinuousOutput, error) {
	name, err := s.V.ChangedTableName(in.TableName)
	if err != nil {
		return nil, err
	}
	given := in.PointInTimeRecoverySpecification
	s.V.Required("PointInTimeRecoverySpecification", given != nil)
	days := tabledef.MaxRecoveryDays
	if given != nil {
		const member = "PointInTimeRecoverySpecification."
		s.V.Required(member+"PointInTimeRecoveryEnabled", given.PointInTimeRecoveryEnabled != nil)
		if n := given.RecoveryPeriodInDays; n != nil {
			days = int(*n)
			s.V.AtMost(member+"RecoveryPeriodInDays", n, tabledef.MaxRecoveryDays)
			s.V.AtLeast(member+"RecoveryPeriodInDays", n, 1)
		}
	}
	if err := s.V.Constrained(); err != nil {
		return nil, err
	}
	enable := given.PointInTimeRecoveryEnabled.IsTrue()
	if !enable && given.RecoveryPeriodInDays != nil {
		return nil, awserr.Validation(awserr.MsgRecoveryPeriodDisabling)
	}
	t, err := s.table(ctx, name)
	if err != nil {
		return nil, err
	}
	if s.young(t) {
		return nil, awserr.New(awserr.CodeContinuousBackupsUnavailable, awserr.MsgBackupsUnavailable, name)
	}
	if !enable && !t.Recovery.On() || enable && t.Recovery.On() && (given.RecoveryPeriodInDays == nil || t.Recovery.Days == days) {
		return s.continuous(t), nil
	}
	t, err = s.Store.ChangeLog(ctx, name, func(t *tabledef.Table) error {
		switch {
		case !enable:
			t.Recovery = nil
		case t.Recovery.On():
			t.Recovery.Days = days
		default:
			t.Recovery = &tabledef.Recovery{Since: s.Now(), Days: days}
		}
		return nil
	})
	if err != nil {
		return nil, s.tableError(err, name)
	}
	return s.continuous(t), nil
}

// atLeast64 acts like Validator.AtLeast for members of 64 bits.
func atLeast64(v *request.Validator, member string, value *int64, least int64) {
	if value != nil && *value < least {
		v.Fail(member, request.Quoted(strconv.FormatInt(*value, 10)), fmt.Sprintf(awserr.MsgMemberMinValue, least))
	}
}
