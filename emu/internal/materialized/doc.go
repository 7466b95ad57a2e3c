// Package materialized keeps the rows of continuous materialized views.
//
// [Define] checks the query of a view and splits its plan. One part computes the outputs of a single row of
// the source table. The other part, of a view with GROUP BY, computes a row of the view from the outputs that
// belong to it.
//
// A view has two internal tables. One has its rows, as ReadRows shows them. The index has, for each source
// row, the rows of the view that it is in, and, for GROUP BY, the outputs by row of the view. So a change or
// deletion of a source row leaves exactly the rows that the query would return. If the aggregates allow it, the
// totals of groups are kept in memory, so that a change does not read its whole group.
//
// No writer of the source table knows its views. The engine records each change of a row in the journal of the
// table, for whatever reason it happens, and [Views.CatchUp] reads the journal before each read of a view. It
// computes the changed source rows again from their current state, so that it may do the same twice, after a
// crash too. If a change is not recorded by row, or the journal is too short, the view is filled again.
package materialized
