package facade

import (
	"context"
	"fmt"

	"github.com/tabletop-emu/tabletop/facade/internal/wire"
)

// resourcePolicyInput is the request of GetResourcePolicy.
type resourcePolicyInput struct{ ResourceArn *string }

// getResourcePolicy answers that a table has no policy.
func (s *Server) getResourcePolicy(ctx context.Context, in *resourcePolicyInput) (*noOutput, error) {
	name, err := s.taggedTable(s.validator("GetResourcePolicy"), in.ResourceArn)
	if err != nil {
		return nil, err
	}
	if _, err := s.store.Table(ctx, name); err != nil {
		return nil, controlError(err, name)
	}
	return nil, badRequest(wire.CodePolicyNotFound, fmt.Sprintf(msgPolicyNotFound, *in.ResourceArn))
}
