package facade

import (
	"context"
	"strings"

	"github.com/tabletop-emu/tabletop/facade/awserr"
	"github.com/tabletop-emu/tabletop/facade/internal/policy"
	"github.com/tabletop-emu/tabletop/facade/internal/tabledef"
)

type putResourcePolicyInput struct {
	ResourceArn        *string
	Policy             *string
	ExpectedRevisionID *string `json:"ExpectedRevisionId"`
	// ConfirmRemoveSelfResourceAccess has no effect: policies do not lock out their author.
	ConfirmRemoveSelfResourceAccess bool
}

type deleteResourcePolicyInput struct {
	ResourceArn        *string
	ExpectedRevisionID *string `json:"ExpectedRevisionId"`
}

type getResourcePolicyInput struct{ ResourceArn *string }

// resourcePolicyOutput is the response of the operations on policies.
type resourcePolicyOutput struct {
	Policy     string `json:",omitzero"`
	RevisionID string `json:"RevisionId,omitzero"`
}

// policyOf checks the ARN of a request. It returns the resource of the policy, and the policy's
// key in Table.Policies.
func (s *Server) policyOf(v *validator, arn *string) (of policy.Resource, slot string, err error) {
	r, err := v.resource(arn)
	if err != nil {
		return of, "", err
	}
	slot, isStream := strings.CutPrefix(r.Rest, "/stream/")
	switch {
	case r.Account != s.opts.AccountID:
		return of, "", awserr.Validation(awserr.MsgOtherAccount)
	case r.Region != s.opts.Region, r.Rest != "" && !isStream:
		return of, "", awserr.Validation(awserr.MsgPolicyARN, *arn)
	}
	return policy.Resource{ARN: *arn, Table: r.Table, Label: slot, Delay: s.opts.StatusDelays.Update}, slot, nil
}

// checkPolicySlot returns a ResourceNotFoundException if slot is the label of a stream that the
// table does not have.
func (s *Server) checkPolicySlot(t *tabledef.Table, of policy.Resource, slot string) error {
	if slot == "" || t.Stream(slot, s.opts.Now()) != nil {
		return nil
	}
	return awserr.ResourceNotFound(awserr.MsgStreamNotFound, of.ARN)
}

// changePolicy replaces a resource's policy with the result of change, which gets the current
// policy. The response has the new revision or, after a removal, that of the removed policy.
func (s *Server) changePolicy(ctx context.Context, of policy.Resource, slot string, change func(tabledef.Policy) (tabledef.Policy, error)) (*resourcePolicyOutput, error) {
	out := &resourcePolicyOutput{}
	_, err := s.store.UpdateTable(ctx, of.Table, func(t *tabledef.Table) error {
		if err := s.checkPolicySlot(t, of, slot); err != nil {
			return err
		}
		last, had := t.Policies[slot]
		next, err := change(last)
		if err != nil {
			return err
		}
		if !had && next.Document == "" {
			return nil // a deletion of a missing policy
		}
		if t.Policies == nil {
			t.Policies = map[string]tabledef.Policy{}
		}
		t.Policies[slot] = next
		out.RevisionID = next.Revision()
		if last.Document != "" && next.Document == "" {
			out.RevisionID = last.Revision() // the revision of the removed policy
		}
		return nil
	})
	if err != nil {
		return nil, controlError(err, of.Table)
	}
	return out, nil
}

// putResourcePolicy stores a policy of a table or a stream. The policy is not enforced.
// https://docs.aws.amazon.com/amazondynamodb/latest/APIReference/API_PutResourcePolicy.html
func (s *Server) putResourcePolicy(ctx context.Context, in *putResourcePolicyInput) (*resourcePolicyOutput, error) {
	v := s.validator("PutResourcePolicy")
	v.Required("Policy", in.Policy != nil)
	v.Length("ExpectedRevisionId", in.ExpectedRevisionID, 1, maxRevisionChars)
	of, slot, err := s.policyOf(v, in.ResourceArn)
	if err != nil {
		return nil, err
	}
	return s.changePolicy(ctx, of, slot, func(last tabledef.Policy) (tabledef.Policy, error) {
		return policy.Put(last, of, *in.Policy, in.ExpectedRevisionID, s.opts.Now())
	})
}

// getResourcePolicy returns the policy of a table or a stream, in its stored form.
// https://docs.aws.amazon.com/amazondynamodb/latest/APIReference/API_GetResourcePolicy.html
func (s *Server) getResourcePolicy(ctx context.Context, in *getResourcePolicyInput) (*resourcePolicyOutput, error) {
	of, slot, err := s.policyOf(s.validator("GetResourcePolicy"), in.ResourceArn)
	if err != nil {
		return nil, err
	}
	t, err := s.store.Settled(ctx, of.Table)
	if err != nil {
		return nil, controlError(err, of.Table)
	}
	if err := s.checkPolicySlot(t, of, slot); err != nil {
		return nil, err
	}
	p := policy.Seen(t.Policies[slot], of, s.opts.Now())
	if p.Document == "" {
		return nil, policy.NotFound(of)
	}
	return &resourcePolicyOutput{Policy: policy.Text(p), RevisionID: p.Revision()}, nil
}

// deleteResourcePolicy removes a policy. The response has its revision. If the policy was
// deleted before, the response has the time of that deletion; if the resource never had a
// policy, the response is empty.
// https://docs.aws.amazon.com/amazondynamodb/latest/APIReference/API_DeleteResourcePolicy.html
func (s *Server) deleteResourcePolicy(ctx context.Context, in *deleteResourcePolicyInput) (*resourcePolicyOutput, error) {
	v := s.validator("DeleteResourcePolicy")
	v.Length("ExpectedRevisionId", in.ExpectedRevisionID, 1, maxRevisionChars)
	of, slot, err := s.policyOf(v, in.ResourceArn)
	if err != nil {
		return nil, err
	}
	return s.changePolicy(ctx, of, slot, func(last tabledef.Policy) (tabledef.Policy, error) {
		return policy.Delete(last, of, in.ExpectedRevisionID, s.opts.Now())
	})
}
