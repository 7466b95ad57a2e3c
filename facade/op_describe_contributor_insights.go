package facade

import (
	"context"
	"fmt"
)

// describeContributorInsightsInput is the request of DescribeContributorInsights.
type describeContributorInsightsInput struct {
	TableName *string
	IndexName *string
}

// describeContributorInsightsOutput is the answer of DescribeContributorInsights.
type describeContributorInsightsOutput struct {
	TableName                 string
	IndexName                 string `json:",omitzero"`
	ContributorInsightsStatus string
}

// describeContributorInsights answers that nobody watches the keys of a table
// or an index: what a table is like before UpdateContributorInsights.
func (s *Server) describeContributorInsights(ctx context.Context, in *describeContributorInsightsInput) (*describeContributorInsightsOutput, error) {
	t, err := s.controlTable(ctx, "DescribeContributorInsights", in.TableName)
	if err != nil {
		return nil, err
	}
	out := &describeContributorInsightsOutput{TableName: t.Name, ContributorInsightsStatus: "DISABLED"}
	if in.IndexName != nil {
		if out.IndexName = *in.IndexName; t.Index(out.IndexName) == nil {
			return nil, resourceNotFoundError(fmt.Sprintf(msgIndexNotFound, out.IndexName, t.Name))
		}
	}
	return out, nil
}
