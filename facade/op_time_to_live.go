package facade

import (
	"context"

	"github.com/tabletop-emu/tabletop/facade/internal/tabledef"
	"github.com/tabletop-emu/tabletop/facade/internal/tablespec"
	"github.com/tabletop-emu/tabletop/facade/internal/wire"
)

type updateTimeToLiveInput struct {
	TableName               *string
	TimeToLiveSpecification *timeToLiveSpecification
}

type timeToLiveSpecification struct {
	AttributeName *string
	Enabled       *wire.Flag
}

type updateTimeToLiveOutput struct {
	TimeToLiveSpecification struct {
		AttributeName string
		Enabled       bool
	}
}

// updateTimeToLive turns the expiry of a table's items on or off. Server.ReapExpired deletes
// expired items.
// https://docs.aws.amazon.com/amazondynamodb/latest/APIReference/API_UpdateTimeToLive.html
func (s *Server) updateTimeToLive(ctx context.Context, in *updateTimeToLiveInput) (*updateTimeToLiveOutput, error) {
	v := s.validator("UpdateTimeToLive")
	name, err := v.ControlTableName(in.TableName)
	if err != nil {
		return nil, err
	}
	spec := in.TimeToLiveSpecification
	v.Required("TimeToLiveSpecification", spec != nil)
	if spec != nil {
		v.Required("TimeToLiveSpecification.Enabled", spec.Enabled != nil)
		v.ttlAttribute(spec.AttributeName)
	}
	if err := v.Constrained(); err != nil {
		return nil, err
	}
	out := &updateTimeToLiveOutput{}
	out.TimeToLiveSpecification.AttributeName = *spec.AttributeName
	out.TimeToLiveSpecification.Enabled = spec.Enabled.IsTrue()
	now := s.opts.Now()
	_, err = s.store.UpdateTable(ctx, name, func(t *tabledef.Table) error {
		if err := tablespec.CheckTimeToLive(t, *spec.AttributeName, spec.Enabled.IsTrue(), now); err != nil {
			return err
		}
		t.TTLAttribute, t.TTLChanged = "", now
		if spec.Enabled.IsTrue() {
			t.TTLAttribute = *spec.AttributeName
		}
		return nil
	})
	if err != nil {
		return nil, controlError(err, name)
	}
	if spec.Enabled.IsTrue() {
		// Wait for the due times, so that the status is ENABLED in the next request, but not
		// longer than the client waits.
		select {
		case <-s.store.FillDueTimes(name):
		case <-ctx.Done():
		}
	}
	return out, nil
}

// ttlAttribute checks the member AttributeName.
func (v *validator) ttlAttribute(name *string) {
	const member = "TimeToLiveSpecification.AttributeName"
	v.Required(member, name != nil)
	v.Length(member, name, 1, maxTTLAttributeChars)
}

type describeTimeToLiveOutput struct {
	TimeToLiveDescription timeToLiveDescription
}

type timeToLiveDescription struct {
	AttributeName    string `json:",omitzero"`
	TimeToLiveStatus string
}

// describeTimeToLive reports whether items of a table expire.
func (s *Server) describeTimeToLive(ctx context.Context, in *tableInput) (*describeTimeToLiveOutput, error) {
	t, err := s.settledTable(ctx, "DescribeTimeToLive", in.TableName)
	if err != nil {
		return nil, err
	}
	changing := s.store.TTLChanging(t)
	d := timeToLiveDescription{AttributeName: t.TTLAttribute, TimeToLiveStatus: "ENABLED"}
	switch {
	case t.TTLAttribute == "" && changing:
		d.TimeToLiveStatus = "DISABLING"
	case t.TTLAttribute == "":
		d.TimeToLiveStatus = "DISABLED"
	case t.TTLFilling || changing:
		d.TimeToLiveStatus = "ENABLING"
	}
	return &describeTimeToLiveOutput{d}, nil
}
