package facade

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"

	"github.com/tabletop-emu/tabletop/facade/attr"
	"github.com/tabletop-emu/tabletop/facade/awserr"
	"github.com/tabletop-emu/tabletop/facade/expr"
	"github.com/tabletop-emu/tabletop/facade/internal/capacity"
	"github.com/tabletop-emu/tabletop/facade/internal/partiql"
	"github.com/tabletop-emu/tabletop/facade/internal/request"
	"github.com/tabletop-emu/tabletop/facade/internal/store"
	"github.com/tabletop-emu/tabletop/facade/internal/tabledef"
	"github.com/tabletop-emu/tabletop/facade/internal/tablespec"
	"github.com/tabletop-emu/tabletop/facade/internal/wire"
)

// statementInput has the common members of a statement in the three operations of PartiQL.
type statementInput struct {
	Statement                           *string
	Parameters                          []wire.Parameter
	ReturnValuesOnConditionCheckFailure *string
}

// constraints checks the members of a statement in a list against the model. path is the prefix
// of their paths in errors.
func (in *statementInput) constraints(v *validator, path string) {
	v.Enum(path+"ReturnValuesOnConditionCheckFailure", in.ReturnValuesOnConditionCheckFailure, "ALL_OLD", "NONE")
	in.textConstraints(v, path)
	in.parameterConstraints(v, path)
}

// shown returns the statement in the form in which the error for a list of wrong length shows
// it. more are further members, as AWS formats them.
func (in *statementInput) shown(more ...string) request.Statement {
	more = append(more, "returnValuesOnConditionCheckFailure="+request.OrNull(in.ReturnValuesOnConditionCheckFailure))
	return request.Statement{Text: in.Statement, Parameters: in.Parameters, More: more}
}

func (in *statementInput) textConstraints(v *validator, path string) {
	v.Required(path+"Statement", in.Statement != nil)
	v.Length(path+"Statement", in.Statement, 1, maxStatementChars)
}

func (in *statementInput) parameterConstraints(v *validator, path string) {
	if in.Parameters != nil && len(in.Parameters) == 0 {
		v.Fail(path+"Parameters", "'[]'", fmt.Sprintf(awserr.MsgMemberMinLength, 1))
	}
}

// checkParameters rejects invalid parameters, even unused ones. An error that is not an
// *attr.Error takes precedence; otherwise the first one is returned.
func (in *statementInput) checkParameters(v *validator) error {
	var first *attr.Error
	for _, p := range in.Parameters {
		var e *attr.Error
		if p.Err != nil && !errors.As(p.Err, &e) {
			return v.Value(p.Err)
		}
		first = cmp.Or(first, e)
	}
	switch {
	case first == nil:
		return nil
	case first.Problem == attr.TooDeep && first.Type != attr.L && first.Type != attr.M: // one level too deep
		return v.statementError(partiql.NestedParameter())
	default:
		return v.Value(first)
	}
}

// statement is a PartiQL statement with its table.
type statement struct {
	*partiql.Bound
	text       string
	parameters []attr.Value
	zeros      string // the spelling of zeros in parameters
	spare      int    // the number of unused parameters
	returnOld  bool   // the error of a failed condition has the item
	table      *tabledef.Table
	index      *tabledef.Index
	key        attr.Item       // key of the statement's only item
	condition  *expr.Condition // condition of a write besides its key; nil: always true
	old        attr.Item       // the item before the write
}

// parseStatement parses a statement and binds its parameters.
func (s *Server) parseStatement(ctx context.Context, v *validator, in *statementInput) (*statement, error) {
	parsed, err := partiql.Parse(*in.Statement)
	var call *partiql.Error
	if errors.As(err, &call) && call.Problem == partiql.CallInColumns && s.isMultiKey(ctx, call.Table, call.Index) {
		return nil, awserr.Validation(awserr.MsgStatementMultiKey)
	}
	if err != nil {
		return nil, v.statementError(err)
	}
	st := &statement{text: *in.Statement, returnOld: is(in.ReturnValuesOnConditionCheckFailure, "ALL_OLD")}
	if len(in.Parameters) > 0 {
		st.parameters = make([]attr.Value, len(in.Parameters))
		for i, p := range in.Parameters {
			st.parameters[i] = p.Value.Value
			if p.Zeros != "" {
				st.zeros += fmt.Sprint(i, ":", p.Zeros)
			}
		}
	}
	st.spare = len(st.parameters) - parsed.Parameters()
	st.Bound, err = parsed.Bind(st.parameters)
	return st, v.statementError(err)
}

// isMultiKey reports whether the table has the named index, and its partition or sort key has
// several attributes, which PartiQL does not support.
func (s *Server) isMultiKey(ctx context.Context, table, index string) bool {
	if index == "" {
		return false
	}
	t, err := s.itemTable(ctx, request.TableOfARN(table))
	if err != nil {
		return false
	}
	found := t.Index(index)
	return found != nil && hasMultiKey(found)
}

func hasMultiKey(index *tabledef.Index) bool {
	return len(index.Key.Hash) > 1 || len(index.Key.Range) > 1
}

// statementError converts an error of package partiql or expr to the error of the response.
func (v *validator) statementError(err error) error {
	var e *partiql.Error
	if errors.As(err, &e) {
		return awserr.Validation("%s", e.Message)
	}
	return v.Expression(err)
}

func (st *statement) writes() bool { return st.Kind != partiql.Select }

// resolve sets the table and the index of a statement, and checks that the statement can use
// them. consistent reports whether a read must be consistent.
func (s *Server) resolve(ctx context.Context, st *statement, consistent bool) (err error) {
	if st.spare > 0 && s.spareParameters.CompareAndSwap(false, true) {
		s.opts.Logger.WarnContext(ctx, "a statement has fewer ? than parameters: the rest are ignored (logged once)", slog.String("statement", st.text), slog.Int("ignored", st.spare))
	}
	name := request.TableOfARN(st.Table)
	if st.writes() && st.Index != "" {
		return awserr.Validation(awserr.MsgStatementIndex)
	}
	if st.table, err = s.itemTable(ctx, name); err != nil || st.Index == "" {
		return err
	}
	if st.index = st.table.Index(st.Index); st.index == nil || st.index.Status != tabledef.StatusActive {
		// Another process may have created or filled it.
		if st.table, err = s.store.TableNow(ctx, name); err != nil {
			return err
		}
		st.index = st.table.Index(st.Index)
	}
	switch {
	case st.index == nil && st.table.VectorIndex(st.Index) != nil:
		return awserr.Validation(awserr.MsgScanOfVectorIndex)
	case st.index == nil:
		return awserr.Validation(awserr.MsgStatementNoIndex)
	case hasMultiKey(st.index):
		return awserr.Validation(awserr.MsgStatementMultiKey)
	case st.index.Global && consistent:
		return awserr.Validation(awserr.MsgStatementConsistent)
	case st.index.Status == tabledef.StatusCreating:
		return awserr.Validation(awserr.MsgIndexBackfilling, st.Index)
	}
	return nil
}

// statementKey returns the key of the statement's table or index.
func (st *statement) statementKey() partiql.Key {
	key := tabledef.IndexKeyOf(st.table.Key)
	if st.index != nil {
		key = st.index.Key
	}
	attributes := exprKeys(key.Attributes())
	out := partiql.Key{Hash: attributes[0]}
	if len(attributes) > 1 {
		out.Sort = attributes[1]
	}
	return out
}

// aimRead sets the key of the item that a SELECT names. If the SELECT does not fix the whole
// key, or has other conditions, aimRead returns a ValidationException with the text without. It
// returns other errors as aim does.
func (st *statement) aimRead(without string) (err error) {
	var e *partiql.Error
	var more *expr.Condition
	st.key, more, err = st.Target(st.statementKey())
	switch {
	case errors.As(err, &e) && e.Problem == partiql.NoKey, err == nil && more != nil:
		return awserr.Validation("%s", without)
	case err != nil:
		return err
	}
	return tablespec.CheckKey(st.table.Key, st.key)
}

// aim sets the key of the item of a statement other than SELECT, and the condition, and checks
// the statement against the table. It returns errors of the response, or errors that
// statementError must convert.
func (st *statement) aim() (err error) {
	if st.Kind == partiql.Insert {
		if st.Item.Size() > maxItemBytes {
			return awserr.Validation(awserr.MsgItemTooLarge)
		}
		st.key = st.table.Key.KeyOf(st.Item)
		return tablespec.CheckItem(st.table, st.Item)
	}
	if st.key, st.condition, err = st.Target(st.statementKey()); err != nil {
		return err
	}
	if err := tablespec.CheckKey(st.table.Key, st.key); err != nil {
		return err
	}
	if err := tablespec.CheckUpdate(st.table, st.Update); err != nil {
		return err
	}
	if st.condition == nil {
		return nil
	}
	return tablespec.CheckPathsOutsideKeys(st.table, st.condition.Paths())
}

// apply returns the item that the statement makes of old, or nil to delete it. It is the Fn of
// a write, and stores old for the response.
func (st *statement) apply(old attr.Item) (attr.Item, error) {
	st.old = old
	failed := awserr.ConditionalCheckFailed
	if !st.returnOld {
		failed = func(attr.Item) *awserr.Error { return awserr.ConditionalCheckFailed(nil) }
	}
	switch {
	case st.Kind == partiql.Insert && old == nil:
		return st.Item, nil
	case st.Kind == partiql.Insert:
		e := awserr.New(awserr.CodeDuplicateItem, awserr.MsgDuplicateItem)
		if st.returnOld {
			e.Item = old
		}
		return nil, e
	case st.Kind == partiql.Exists:
		if st.condition == nil || st.condition.Eval(old) {
			return old, nil
		}
		return nil, failed(old)
	case st.Kind == partiql.Delete && old == nil:
		return nil, nil
	case old == nil, st.condition != nil && !st.condition.Eval(old):
		return nil, failed(old)
	case st.Kind == partiql.Update:
		return tablespec.ApplyUpdate(st.table, st.key, st.Update, old)
	default:
		return nil, nil
	}
}

// write runs a statement that writes. returned has the attributes for RETURNING, or is nil if
// the statement has no RETURNING. tally is zero unless counted is set.
func (s *Server) write(ctx context.Context, v *validator, st *statement, counted bool) (returned attr.Item, tally capacity.Tally, err error) {
	var hint store.Hint
	if st.Kind == partiql.Insert && !counted && !st.returnOld {
		hint = store.Hint{Blind: true, Replacement: st.Item, Require: store.MustNotExist}
	}
	old, updated, err := s.writeItem(ctx, st.table, st.key, st.apply, hint)
	if err != nil {
		return nil, tally, v.expressionAtRunTime(err)
	}
	if counted {
		tally = capacity.WriteTally(st.table, old, updated)
	}
	mode := map[string]string{"ALL OLD": "ALL_OLD", "ALL NEW": "ALL_NEW", "MODIFIED OLD": "UPDATED_OLD", "MODIFIED NEW": "UPDATED_NEW"}[st.Returning]
	returned = tablespec.ReturnedAttributes(&mode, st.Update, old, updated)
	if len(returned) == 0 {
		returned = nil
	}
	return returned, tally, nil
}

// read reads the item that a SELECT names by its key. It returns the whole item, and shown, the
// part that the SELECT selects. Both are nil if the item does not exist; shown is also nil if
// the item does not satisfy the other conditions. ok is false if the SELECT does not name one
// item or, if only is set, has other conditions.
func (s *Server) read(ctx context.Context, st *statement, consistent, only bool) (item, shown attr.Item, ok bool, err error) {
	if st.index != nil {
		return nil, nil, false, nil
	}
	key, alone, ok := st.Single(st.statementKey())
	if !ok || only && !alone {
		return nil, nil, false, nil
	}
	if err := tablespec.CheckKey(st.table.Key, key); err != nil {
		return nil, nil, true, err
	}
	if err := st.checkPaths(); err != nil {
		return nil, nil, true, err
	}
	if item, err = s.readItem(ctx, st.table, key, consistent); err != nil || item == nil {
		return nil, nil, true, err
	}
	if !alone && !st.Where().Eval(item) {
		return item, nil, true, nil
	}
	return item, st.show(item), true, nil
}

// show returns the SELECT's columns of an item.
func (st *statement) show(item attr.Item) attr.Item {
	if st.Columns == nil {
		return item
	}
	return partiql.Project(st.Columns, item)
}

// checkPaths rejects paths of a SELECT that continue below a key attribute.
func (st *statement) checkPaths() error {
	var paths []expr.Path
	if where := st.Where(); where != nil {
		paths = slices.Clone(where.Paths())
	}
	for _, c := range st.Columns {
		paths = append(paths, c.Path)
	}
	return tablespec.CheckPathsOutsideKeys(st.table, paths)
}
