package bucketjobs

import (
	"slices"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/tabletop-emu/tabletop/facade/attr"
	"github.com/tabletop-emu/tabletop/facade/awserr"
	"github.com/tabletop-emu/tabletop/facade/expr"
	"github.com/tabletop-emu/tabletop/facade/internal/request"
	"github.com/tabletop-emu/tabletop/facade/internal/wire"
)

// filterSpecification selects the exported items of a table, and their attributes.
type filterSpecification struct {
	KeyConditionExpression    *string
	FilterExpression          *string
	ProjectionExpression      *string
	ExpressionAttributeNames  map[string]string
	ExpressionAttributeValues map[string]wire.Value
}

// filter selects the exported data; the zero value selects everything.
type filter struct {
	key        *expr.KeyCondition
	partition  *expr.Condition // the key condition as a condition on items
	condition  *expr.Condition
	projection *expr.Projection
}

// parseFilter parses the filter of a request. An empty text selects everything.
func parseFilter(v *request.Validator, text jsontext.Value) (f filter, err error) {
	if len(text) == 0 || text.Kind() == 'n' {
		return f, nil
	}
	var in filterSpecification
	if err := wire.Decode(text, &in); err != nil {
		return f, err
	}
	if in.KeyConditionExpression == nil && in.FilterExpression == nil && in.ProjectionExpression == nil && in.ExpressionAttributeNames == nil && in.ExpressionAttributeValues == nil {
		return f, awserr.Validation(awserr.MsgExportFilterEmpty)
	}
	if err := v.ExpressionStyle(in.ExpressionAttributeNames, in.ExpressionAttributeValues, []request.ExpressionParameter{
		{Name: "ProjectionExpression", Text: in.ProjectionExpression},
		{Name: "FilterExpression", Text: in.FilterExpression},
		{Name: "KeyConditionExpression", Text: in.KeyConditionExpression},
	}, nil); err != nil {
		return f, err
	}
	placeholders, err := v.Placeholders(in.ExpressionAttributeNames, in.ExpressionAttributeValues)
	if err != nil {
		return f, err
	}
	if text := in.KeyConditionExpression; text != nil {
		if f.key, err = expr.ParseKeyCondition(*text, placeholders); err == nil {
			err = f.key.Check()
		}
		if err != nil {
			return f, v.Expression(err)
		}
		// A key condition is also a condition on items.
		if f.partition, err = expr.ParseCondition(expr.FilterExpression, *text, placeholders); err != nil {
			return f, v.Expression(err)
		}
	}
	if text := in.FilterExpression; text != nil {
		if f.condition, err = expr.ParseCondition(expr.FilterExpression, *text, placeholders); err != nil {
			return f, v.Expression(err)
		}
	}
	if text := in.ProjectionExpression; text != nil {
		if f.projection, err = expr.ParseProjection(*text, placeholders); err != nil {
			return f, v.Expression(err)
		}
	}
	return f, v.Expression(placeholders.CheckUsed())
}

// check checks a filter against the key of its table.
func (f filter) check(v *request.Validator, key attr.KeySchema) error {
	if f.key == nil {
		return nil
	}
	var sort []expr.KeyAttribute
	if key.Range.Name != "" {
		sort = []expr.KeyAttribute{{Name: key.Range.Name, Type: key.Range.Type}}
	}
	if _, err := f.key.Resolve([]expr.KeyAttribute{{Name: key.Hash.Name, Type: key.Hash.Type}}, sort); err != nil {
		return v.Expression(err)
	}
	if f.condition == nil {
		return nil
	}
	paths := f.condition.Paths()
	for _, a := range key.Attrs() {
		if slices.ContainsFunc(paths, func(p expr.Path) bool { return p.Attribute() == a.Name }) {
			return awserr.Validation(awserr.MsgFilterOnKey, a.Name)
		}
	}
	return nil
}

// takes reports whether an item is exported.
func (f filter) takes(item attr.Item) bool {
	return (f.partition == nil || f.partition.Eval(item)) && (f.condition == nil || f.condition.Eval(item))
}

// of returns the exported attributes of an item; all of them without a projection.
func (f filter) of(item attr.Item) attr.Item {
	if f.projection == nil {
		return item
	}
	return f.projection.Apply(item)
}
