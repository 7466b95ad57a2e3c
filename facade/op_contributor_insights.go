package facade

import (
	"context"
	"encoding/json"
	"errors"
	"iter"
	"maps"
	"slices"

	"github.com/tabletop-emu/tabletop/facade/awserr"
	"github.com/tabletop-emu/tabletop/facade/internal/insights"
	"github.com/tabletop-emu/tabletop/facade/internal/request"
	"github.com/tabletop-emu/tabletop/facade/internal/store"
	"github.com/tabletop-emu/tabletop/facade/internal/tabledef"
	"github.com/tabletop-emu/tabletop/facade/internal/wire"
)

type updateContributorInsightsInput struct {
	TableName                 *string
	IndexName                 *string
	ContributorInsightsAction *string
	ContributorInsightsMode   *string
}

// contributorInsights is the response of UpdateContributorInsights, and an element of a list.
type contributorInsights struct {
	TableName                 string
	IndexName                 string `json:",omitzero"`
	ContributorInsightsStatus string
	ContributorInsightsMode   string `json:",omitzero"`
}

func (s *Server) insights(t *tabledef.Table, index string) contributorInsights {
	i := t.Insights[index]
	return contributorInsights{t.Name, index, insights.Status(i, s.opts.Now()), i.Mode}
}

// watched returns the key of a request's subject in Table.Insights: "" for the table, or the
// name of its global index.
func watched(t *tabledef.Table, index *string) (string, error) {
	if index == nil {
		return "", nil
	}
	if ix := t.Index(*index); ix == nil || !ix.Global {
		return "", awserr.ResourceNotFound(awserr.MsgInsightsIndexNotFound, *index, t.Name)
	}
	return *index, nil
}

// updateContributorInsights turns insights for a table or an index on or off.
// https://docs.aws.amazon.com/amazondynamodb/latest/APIReference/API_UpdateContributorInsights.html
func (s *Server) updateContributorInsights(ctx context.Context, in *updateContributorInsightsInput) (*contributorInsights, error) {
	v := s.validator("UpdateContributorInsights")
	name, err := v.ChangedTableName(in.TableName)
	if err == nil {
		err = v.WatchedIndex(in.IndexName)
	}
	if err != nil {
		return nil, err
	}
	v.Required("ContributorInsightsAction", in.ContributorInsightsAction != nil)
	v.Enum("ContributorInsightsAction", in.ContributorInsightsAction, insights.Enable, insights.Disable)
	v.Enum("ContributorInsightsMode", in.ContributorInsightsMode, insights.ThrottledKeys, insights.AllKeys)
	if err := v.Constrained(); err != nil {
		return nil, err
	}
	now := s.opts.Now()
	t, err := s.store.Settled(ctx, name)
	if err != nil {
		return nil, controlError(err, name)
	}
	index, err := watched(t, in.IndexName)
	if err != nil {
		return nil, err
	}
	switch { // the store would reject these too, but with another text
	case t.Status != tabledef.StatusActive && index == "":
		return nil, awserr.Validation(awserr.MsgInsightsNotActive, "Table")
	case index != "" && t.Index(index).Status != tabledef.StatusActive:
		return nil, awserr.Validation(awserr.MsgInsightsNotActive, "Index")
	}
	t, err = s.store.UpdateTable(ctx, name, func(t *tabledef.Table) error {
		if _, err := watched(t, in.IndexName); err != nil {
			return err
		}
		if t.Insights == nil {
			t.Insights = map[string]tabledef.Insights{}
		}
		t.Insights[index] = insights.Update(t.Insights[index], *in.ContributorInsightsAction, in.ContributorInsightsMode, now, s.opts.StatusDelays.Update)
		return nil
	})
	if err != nil {
		return nil, controlError(err, name)
	}
	return new(s.insights(t, index)), nil
}

type describeContributorInsightsInput struct {
	TableName *string
	IndexName *string
}

type describeContributorInsightsOutput struct {
	contributorInsights
	ContributorInsightsRuleList []string          `json:",omitzero"`
	LastUpdateDateTime          wire.EpochSeconds `json:",omitzero"`
}

// describeContributorInsights returns the status of insights for a table or an index.
// https://docs.aws.amazon.com/amazondynamodb/latest/APIReference/API_DescribeContributorInsights.html
func (s *Server) describeContributorInsights(ctx context.Context, in *describeContributorInsightsInput) (*describeContributorInsightsOutput, error) {
	const operation = "DescribeContributorInsights"
	v := s.validator(operation)
	err := v.WatchedIndex(in.IndexName)
	if err == nil {
		err = v.Constrained()
	}
	if err != nil {
		return nil, err
	}
	t, err := s.settledTable(ctx, operation, in.TableName)
	if err != nil {
		return nil, err
	}
	index, err := watched(t, in.IndexName)
	if err != nil {
		return nil, err
	}
	out := &describeContributorInsightsOutput{contributorInsights: s.insights(t, index)}
	if i := t.Insights[index]; i.Changed != 0 {
		hasSortKey := t.Key.Range.Name != ""
		if index != "" {
			hasSortKey = len(t.Index(index).Key.Range) > 0
		}
		out.ContributorInsightsRuleList = insights.Rules(i, t.Name, index, hasSortKey)
		out.LastUpdateDateTime = wire.EpochSeconds(i.Changed)
	}
	return out, nil
}

type listContributorInsightsInput struct {
	TableName  *string
	NextToken  *string
	MaxResults *int32
}

type listContributorInsightsOutput struct {
	ContributorInsightsSummaries []contributorInsights
	NextToken                    string `json:",omitzero"`
}

// listContributorInsights lists the tables and indexes with insights, in the order of table
// names, each table before its indexes.
// https://docs.aws.amazon.com/amazondynamodb/latest/APIReference/API_ListContributorInsights.html
func (s *Server) listContributorInsights(ctx context.Context, in *listContributorInsightsInput) (*listContributorInsightsOutput, error) {
	v := s.validator("ListContributorInsights")
	v.AtMost("MaxResults", in.MaxResults, maxInsightsPage)
	v.AtLeast("MaxResults", in.MaxResults, 1)
	only := ""
	if in.TableName != nil {
		only = request.TableOfARN(*in.TableName)
		v.Name("TableName", only)
	}
	if err := v.Constrained(); err != nil {
		return nil, err
	}
	from, after, ok := insights.PlaceOf(in.NextToken)
	if !ok {
		return nil, awserr.Validation(awserr.MsgInvalidNextToken)
	}
	out, limit, now := &listContributorInsightsOutput{ContributorInsightsSummaries: []contributorInsights{}}, maxInsightsPage, s.opts.Now()
	if in.MaxResults != nil {
		limit = int(*in.MaxResults)
	}
	for name, err := range s.tableNames(ctx, from) {
		if err != nil {
			return nil, err
		}
		if only != "" && name != only {
			continue
		}
		t, err := s.store.TableNow(ctx, name)
		if errors.Is(err, store.ErrTableNotFound) {
			continue // deleted in the meantime
		}
		if err != nil {
			return nil, err
		}
		for _, index := range slices.Sorted(maps.Keys(t.Insights)) {
			if !insights.Listed(t.Insights[index], now) || in.NextToken != nil && name == from && index <= after {
				continue
			}
			if len(out.ContributorInsightsSummaries) == limit {
				last := out.ContributorInsightsSummaries[limit-1]
				out.NextToken = insights.Token(last.TableName, last.IndexName)
				return out, nil
			}
			out.ContributorInsightsSummaries = append(out.ContributorInsightsSummaries, s.insights(t, index))
		}
	}
	return out, nil
}

// tableNames yields the names of all tables after from in ascending order. Unless from is "",
// it yields from first, even if no such table exists.
func (s *Server) tableNames(ctx context.Context, from string) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		if from != "" && !yield(from, nil) {
			return
		}
		for more := true; more; {
			var names []string
			var err error
			if names, more, err = s.store.ListTables(ctx, from, maxListTablesLimit); err != nil {
				yield("", err)
				return
			}
			for _, from = range names {
				if !yield(from, nil) {
					return
				}
			}
		}
	}
}

// TopKeys lists the most used keys of a table or an index in descending order of use. It
// has partition keys (PKC, PKT) and keys of items (SKC, SKT), by reads and writes (PKC,
// SKC) and by throttled requests (PKT, SKT).
type TopKeys struct {
	PKC []KeyCount `json:"PKC,omitempty"`
	SKC []KeyCount `json:"SKC,omitempty"`
	PKT []KeyCount `json:"PKT,omitempty"`
	SKT []KeyCount `json:"SKT,omitempty"`
}

// KeyCount bounds the number of uses of a key: it is at most Count, and at least
// Count-Over.
type KeyCount struct {
	Key   json.RawMessage `json:"key"` // attributes of a partition key or a whole key
	Count uint64          `json:"count"`
	Over  uint64          `json:"over,omitempty"`
}

// TopKeys returns the most used keys of a table, or of its global index if index is not
// "". It counts uses in this process since contributor insights were turned on or
// changed.
func (s *Server) TopKeys(ctx context.Context, table, index string) (TopKeys, error) {
	t, err := s.store.TableNow(ctx, table)
	if err != nil {
		return TopKeys{}, controlError(err, table)
	}
	if !t.Insights[index].Enabled {
		return TopKeys{}, awserr.Validation(awserr.MsgInsightsOff, table, index)
	}
	top := s.keys.Top(t, index)
	return TopKeys{keyCounts(top.PKC), keyCounts(top.SKC), keyCounts(top.PKT), keyCounts(top.SKT)}, nil
}

func keyCounts(counts []insights.KeyCount) (out []KeyCount) {
	for _, c := range counts {
		out = append(out, KeyCount(c))
	}
	return out
}
