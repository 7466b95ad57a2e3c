package emu_test

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	btapb "cloud.google.com/go/bigtable/admin/apiv2/adminpb"
	btpb "cloud.google.com/go/bigtable/apiv2/bigtablepb"

	"github.com/tabletop-emu/tabletop/emu/internal/sql/value"
	"github.com/tabletop-emu/tabletop/internal/test/long"
)

// TestQuery_Naive runs random queries over random tables: the executor and the naive evaluator return the same
// rows and errors.
func TestQuery_Naive(t *testing.T) {
	t.Parallel()
	tables, queries := 6, 100
	if long.Enabled() {
		tables, queries = 100, 100
	}
	ran, accepted, answered := 0, 0, 0
	for seed := range tables {
		rng := rand.New(rand.NewPCG(uint64(seed), 7))
		s := newRandomTables(t, rng)
		for range queries {
			q := &queryGenerator{draw: rng.IntN}
			text, params := q.statement(), q.parameters()
			ran++
			valid, rows := s.compare(t, text, params)
			if valid {
				accepted++
			}
			if rows > 0 {
				answered++
			}
		}
	}
	t.Logf("of %d queries, %d are valid, %d have rows", ran, accepted, answered)
	if accepted < ran*19/20 || answered < ran/3 {
		t.Errorf("of %d queries, only %d are valid, and %d have rows", ran, accepted, answered)
	}
}

// newRandomTables returns a server with random rows in the tables t and u, and the view v.
func newRandomTables(tb testing.TB, rng *rand.Rand) *sqlServer {
	tb.Helper()
	s := newSQL(tb)
	pick := func(list ...string) string { return list[rng.IntN(len(list))] }
	for _, id := range []string{"t", "u"} {
		s.createTable(tb, id, nil, "f", "g", "n")
		for range 1 + rng.IntN(80) {
			row := pick("a", "a#1", "a#2", "a\x00", "a\xff", "b", "b#1", "b#22", "c", "\xff", "\xff\xff", "ä")
			c := naiveCell{family: pick("f", "f", "g", "n"), qualifier: pick("q", "q", "r", "i", "", "q\x00"), at: int64(rng.IntN(4)) * 1000}
			c.value = []byte(pick("", "x", "x", "é", "12", "-3", "3.5", "\xff", "a#1", `{"k":[1]}`, "\x00\x00\x00\x00\x00\x00\x00\x05"))
			if sums[c.family] {
				if s.tables[id].has(row, c) {
					continue
				}
				c.value = binary.BigEndian.AppendUint64(nil, rng.Uint64N(7)-2)
			}
			s.put(tb, id, row, c)
		}
	}
	s.views["v"] = "SELECT _key, f['q'] AS q, n['i'] AS i FROM t WHERE _key > 'a'"
	_, err := btapb.NewBigtableInstanceAdminClient(s.conn).CreateLogicalView(tb.Context(), &btapb.CreateLogicalViewRequest{
		Parent: sqlInstance, LogicalViewId: "v", LogicalView: &btapb.LogicalView{Query: s.views["v"]},
	})
	if err != nil {
		tb.Fatal(err)
	}
	return s
}

// generated is an expression or a column of a type.
type generated struct{ text, of string }

// queryGenerator draws statements. To add a kind of expression, add a line to its grammar.
type queryGenerator struct {
	draw  func(n int) int // returns a number in [0, n)
	names int             // that were drawn
	with  []generated     // the columns of the entry w of WITH, nil without one
	// columns are the columns of the FROM clause; keyed is set if _key is one of them.
	columns []generated
	keyed   bool
}

// grammar has the expressions of each type: {TYPE} is an expression of it, {KEY} one of BYTES without columns.
// A weight above one is a repeated line.
var grammar = map[string][]string{
	"BOOL": {
		"TRUE", "FALSE", "CAST(NULL AS BOOL)", "@px",
		"({BOOL} AND {BOOL})", "({BOOL} OR {BOOL})", "(NOT {BOOL})", "({BOOL} IS TRUE)", "({BOOL} IS NOT FALSE)",
		"({INT64} = {INT64})", "({INT64} < {INT64})", "({BYTES} = {BYTES})", "({BYTES} >= {BYTES})", "({BYTES} != {BYTES})",
		"({STRING} = {STRING})", "({FLOAT64} > {FLOAT64})", "({TIMESTAMP} <= {TIMESTAMP})", "({DATE} = {DATE})",
		"({BYTES} IS NULL)", "({INT64} IS NOT NULL)", "({INT64} IS DISTINCT FROM {INT64})",
		"({INT64} BETWEEN {INT64} AND {INT64})", "({BYTES} NOT BETWEEN {BYTES} AND {BYTES})",
		"({INT64} IN ({INT64}, {INT64}))", "({BYTES} IN UNNEST({ARRAY<BYTES>}))", "({BYTES} NOT IN ({BYTES}, 'x'))",
		"({BYTES} LIKE 'a%')", "({STRING} LIKE '%_')", "STARTS_WITH({BYTES}, {BYTES})", "ENDS_WITH({STRING}, {STRING})",
		"MAP_CONTAINS_KEY({MAP<BYTES, BYTES>}, {BYTES})", "MAP_EMPTY({MAP<BYTES, BYTES>})", "ARRAY_INCLUDES({ARRAY<BYTES>}, {BYTES})",
		"ARRAY_INCLUDES({ARRAY<INT64>}, e -> e > {INT64})", "REGEXP_CONTAINS({STRING}, 'a.')", "ISERROR({INT64})",
		"(STRUCT({INT64}, {BYTES}) = STRUCT({INT64}, {BYTES}))", "SAFE_CAST({STRING} AS BOOL)",
	},
	"INT64": {
		"0", "1", "-3", "7", "CAST(NULL AS INT64)", "@pi", "@pn", "{N}", "{N}",
		"({INT64} + {INT64})", "({INT64} - {INT64})", "({INT64} * {INT64})", "DIV({INT64}, {INT64})", "MOD({INT64}, 3)", "(- {INT64})",
		"({INT64} & {INT64})", "({INT64} << 2)", "ABS({INT64})", "LENGTH({BYTES})", "LENGTH({STRING})", "ARRAY_LENGTH({ARRAY<BYTES>})",
		"IF({BOOL}, {INT64}, {INT64})", "COALESCE({INT64}, {INT64})", "CASE WHEN {BOOL} THEN {INT64} ELSE {INT64} END",
		"CASE {BYTES} WHEN {BYTES} THEN {INT64} WHEN 'x' THEN {INT64} END", "NULLIF({INT64}, {INT64})", "GREATEST({INT64}, {INT64})",
		"CAST({STRING} AS INT64)", "SAFE_CAST({STRING} AS INT64)", "CAST({FLOAT64} AS INT64)", "TO_INT64({BYTES})", "SAFE.TO_INT64({BYTES})",
		"{ARRAY<INT64>}[SAFE_OFFSET({INT64})]", "{ARRAY<INT64>}[0]", "UNIX_MICROS({TIMESTAMP})", "EXTRACT(DAY FROM {DATE})",
		"IFERROR({INT64}, {INT64})", "STRPOS({STRING}, 'x')", "{MAP<BYTES, INT64>}[{BYTES}]", "STRUCT({INT64} AS a, {BYTES} AS b).a",
	},
	"FLOAT64": {
		"0.5", "-2.0", "1e3", "CAST(NULL AS FLOAT64)", "@pf", "({FLOAT64} + {FLOAT64})", "({INT64} / {INT64})", "({FLOAT64} * {INT64})", "CAST({INT64} AS FLOAT64)",
		"SAFE_CAST({STRING} AS FLOAT64)", "ROUND({FLOAT64}, 1)", "SAFE_DIVIDE({FLOAT64}, {FLOAT64})", "IF({BOOL}, {FLOAT64}, {FLOAT64})",
	},
	"STRING": {
		"''", "'x'", "'é'", "'a#1'", "'12'", "CAST(NULL AS STRING)", "@ps", "CAST({BYTES} AS STRING)", "SAFE_CAST({BYTES} AS STRING)", "SAFE_CONVERT_BYTES_TO_STRING({BYTES})",
		"CONCAT({STRING}, {STRING})", "({STRING} || {STRING})", "UPPER({STRING})", "SUBSTR({STRING}, {INT64})", "SUBSTR({STRING}, 1, 2)",
		"REPLACE({STRING}, 'x', {STRING})", "CAST({INT64} AS STRING)", "TO_HEX({BYTES})", "FORMAT('%d-%s', {INT64}, {STRING})", "REVERSE({STRING})",
		"IF({BOOL}, {STRING}, {STRING})", "IFNULL({STRING}, 'none')", "{ARRAY<STRING>}[SAFE_OFFSET(0)]", "STRING({TIMESTAMP})", "FORMAT_DATE('%Y-%m', {DATE})",
		"JSON_VALUE({STRING}, '$.k[0]')", "ARRAY_TO_STRING({ARRAY<STRING>}, ',')", "LPAD({STRING}, 3, 'p')",
	},
	"BYTES": {
		"b'x'", "b'a'", "b''", "CAST(NULL AS BYTES)", "@pb", "@pu", "{COLUMN}", "{COLUMN}", "{COLUMN}", "CAST({STRING} AS BYTES)", "CONCAT({BYTES}, {BYTES})", "SUBSTR({BYTES}, {INT64}, 2)",
		"{MAP<BYTES, BYTES>}[{BYTES}]", "COALESCE({BYTES}, {BYTES})", "IF({BOOL}, {BYTES}, {BYTES})", "{ARRAY<BYTES>}[SAFE_ORDINAL({INT64})]", "{ARRAY<BYTES>}[0]",
		"SPLIT({BYTES}, b'#')[0]", "REVERSE({BYTES})", "FROM_HEX(TO_HEX({BYTES}))", "LEFT({BYTES}, 1)", "STRUCT({BYTES} AS a, {INT64}).a",
		"CASE WHEN {BOOL} THEN {BYTES} END", "NULLIF({BYTES}, {BYTES})", "ARRAY_FIRST(MAP_ENTRIES({MAP<BYTES, BYTES>})).key",
	},
	"TIMESTAMP": {
		"TIMESTAMP '1970-01-01 00:00:00.001+00'", "TIMESTAMP_MICROS({INT64})", "CAST(NULL AS TIMESTAMP)", "@pt", "TIMESTAMP_ADD({TIMESTAMP}, INTERVAL {INT64} SECOND)",
		"TIMESTAMP_TRUNC({TIMESTAMP}, DAY)", "{COLUMN}", "TIMESTAMP({DATE})", "COALESCE({TIMESTAMP}, {TIMESTAMP})",
	},
	"DATE": {"DATE '2024-02-29'", "CAST(NULL AS DATE)", "@pd", "DATE_ADD({DATE}, INTERVAL {INT64} MONTH)", "DATE({TIMESTAMP})", "LAST_DAY({DATE})", "IF({BOOL}, {DATE}, {DATE})"},
	"ARRAY<INT64>": {
		"[1, 2, 3]", "[{INT64}, {INT64}]", "@pai", "ARRAY<INT64>[]", "GENERATE_ARRAY(1, {INT64})", "ARRAY_CONCAT({ARRAY<INT64>}, {ARRAY<INT64>})",
		"ARRAY_FILTER({ARRAY<INT64>}, e -> e > {INT64})", "ARRAY_TRANSFORM({ARRAY<BYTES>}, (e, i) -> LENGTH(e) + i)", "ARRAY_REVERSE({ARRAY<INT64>})",
		"MAP_VALUES({MAP<BYTES, INT64>})", "ARRAY_SLICE({ARRAY<INT64>}, 0, {INT64})",
	},
	"ARRAY<BYTES>": {
		"[{BYTES}, b'y']", "@pab", "MAP_KEYS({MAP<BYTES, BYTES>})", "MAP_VALUES({MAP<BYTES, BYTES>})", "SPLIT({BYTES}, b'#')", "ARRAY_CONCAT({ARRAY<BYTES>}, [{BYTES}])",
		"ARRAY_FILTER({ARRAY<BYTES>}, e -> e != {BYTES})", "ARRAY_TRANSFORM({ARRAY<INT64>}, e -> CAST(CAST(e + {INT64} AS STRING) AS BYTES))",
		"ARRAY_TRANSFORM({ARRAY<STRUCT<timestamp TIMESTAMP, value BYTES>>}, e -> e.value)",
	},
	"ARRAY<STRING>":     {"['a', {STRING}]", "SPLIT({STRING}, '#')", "ARRAY_TRANSFORM({ARRAY<INT64>}, e -> CAST(e AS STRING))"},
	"MAP<BYTES, BYTES>": {"{COLUMN}", "{COLUMN}", "MAP_FROM_ARRAY([(b'q', {BYTES})])"},
	"MAP<BYTES, INT64>": {"{COLUMN}", "MAP_FROM_ARRAY([(b'q', {INT64}), (b'r', 2)])"},
	"ARRAY<STRUCT<timestamp TIMESTAMP, value BYTES>>": {"{COLUMN}", "{COLUMN}", "[STRUCT({TIMESTAMP} AS timestamp, {BYTES} AS value)]"},
	// KEY is compared with a row key, COND is a condition on it, N an aggregate cell.
	"KEY": {"b'a'", "'a'", "b'a#1'", "'b'", "b'c'", "b'\\xff'", "b''", "CAST(NULL AS BYTES)", "@pb", "@pu", "CONCAT(@pb, b'#')", "CAST(@ps AS BYTES)", "IF(@px, b'a', b'b')", "FROM_HEX(@ps)"},
	"COND": {
		"_key = {KEY}", "{KEY} = _key", "_key < {KEY}", "_key <= {KEY}", "_key > {KEY}", "{KEY} >= _key", "_key != {KEY}", "_key BETWEEN {KEY} AND {KEY}",
		"NOT (_key BETWEEN {KEY} AND {KEY})", "_key IN ({KEY}, {KEY})", "_key IN UNNEST(@pab)", "_key NOT IN ({KEY})", "STARTS_WITH(_key, {KEY})",
		"_key LIKE 'a%'", "_key LIKE 'a#_'", "_key LIKE b'\\xff%'", "_key LIKE {KEY}", "({COND} AND {COND})", "({COND} OR {COND})", "({COND} AND {BOOL})",
		"({BOOL} OR {COND})", "NOT ({COND})", "({COND}) IS TRUE", "_key = {BYTES}", "_key < CONCAT(_key, b'x')",
	},
	"TOTAL INT64": {
		"COUNT(*)", "COUNT({BYTES})", "COUNT(DISTINCT {BYTES})", "SUM({INT64})", "SUM(DISTINCT {INT64})", "MIN({INT64})", "MAX({INT64})", "COUNTIF({BOOL})",
		"BIT_XOR({INT64})", "ANY_VALUE({INT64} HAVING MAX {BYTES})",
	},
	"TOTAL BYTES":        {"MIN({BYTES})", "MAX({BYTES})", "STRING_AGG({BYTES}, b'|')", "STRING_AGG({BYTES} ORDER BY {INT64} DESC, {BYTES} LIMIT 2)", "ANY_VALUE({BYTES})"},
	"TOTAL FLOAT64":      {"AVG({INT64})", "AVG({FLOAT64})", "SUM({FLOAT64})"},
	"TOTAL BOOL":         {"LOGICAL_AND({BOOL})", "LOGICAL_OR({BOOL})"},
	"TOTAL ARRAY<BYTES>": {"ARRAY_AGG({BYTES})", "ARRAY_AGG(DISTINCT {BYTES} IGNORE NULLS ORDER BY {BYTES})", "ARRAY_AGG({BYTES} ORDER BY {INT64} NULLS LAST LIMIT 3)", "ARRAY_CONCAT_AGG({ARRAY<BYTES>})"},
	"TOTAL ARRAY<INT64>": {"ARRAY_AGG({INT64} HAVING MIN {BYTES})", "ARRAY_AGG(DISTINCT {INT64})"},
	// PARTED, ORDERED and FRAMED are windows.
	"OVER INT64": {
		"ROW_NUMBER() OVER ({PARTED})", "ROW_NUMBER() OVER ({ORDERED})", "RANK() OVER ({ORDERED})", "DENSE_RANK() OVER ({ORDERED})", "NTILE(3) OVER ({ORDERED})",
		"COUNT(*) OVER ({FRAMED})", "SUM({INT64}) OVER ({FRAMED})", "MAX({INT64}) OVER ({FRAMED})", "COUNT(DISTINCT {BYTES}) OVER ({PARTED})",
		"LAG({INT64}) OVER ({ORDERED})", "LEAD({INT64}, 2, @pi) OVER ({ORDERED})", "NTH_VALUE({INT64}, 2) OVER ({FRAMED})",
	},
	"OVER BYTES": {
		"FIRST_VALUE({BYTES}) OVER ({FRAMED})", "LAST_VALUE({BYTES} IGNORE NULLS) OVER ({FRAMED})", "NTH_VALUE({BYTES}, 2 IGNORE NULLS) OVER ({FRAMED})",
		"LAG({BYTES}, @pi, b'x') OVER ({ORDERED})", "MIN({BYTES}) OVER ({FRAMED})", "STRING_AGG({BYTES}, b'|') OVER ({FRAMED})", "PERCENTILE_DISC({BYTES}, 0.5) OVER ({PARTED})",
	},
	"OVER FLOAT64": {
		"AVG({INT64}) OVER ({FRAMED})", "SUM({FLOAT64}) OVER ({FRAMED})", "PERCENT_RANK() OVER ({ORDERED})", "CUME_DIST() OVER ({ORDERED})",
		"PERCENTILE_CONT({INT64}, 0.3 RESPECT NULLS) OVER ({PARTED})",
	},
	"OVER ARRAY<BYTES>": {"ARRAY_AGG({BYTES} IGNORE NULLS) OVER ({FRAMED})", "ARRAY_AGG({BYTES}) OVER ({ORDERED} ROWS 1 PRECEDING)"},
	"PARTED":            {"", "PARTITION BY {BYTES}", "PARTITION BY {INT64}, {BOOL}"},
	"ORDERED":           {"{PARTED} ORDER BY {BYTES}", "{PARTED} ORDER BY {INT64} DESC, {STRING}", "ORDER BY {FLOAT64} NULLS LAST"},
	"FRAMED": {
		"{ORDERED}", "{ORDERED} ROWS BETWEEN 1 PRECEDING AND @pi FOLLOWING", "{ORDERED} ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING",
		"{ORDERED} ROWS BETWEEN 1 FOLLOWING AND UNBOUNDED FOLLOWING", "{ORDERED} RANGE BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING",
		"{PARTED} ORDER BY {INT64} RANGE BETWEEN @pi PRECEDING AND CURRENT ROW", "{PARTED} ORDER BY {INT64} DESC NULLS FIRST RANGE BETWEEN 1 FOLLOWING AND 3 FOLLOWING",
		"{PARTED} ORDER BY {FLOAT64} DESC RANGE BETWEEN 1 PRECEDING AND @pf FOLLOWING", "{PARTED}",
	},
}

var (
	scalars    = []string{"BOOL", "INT64", "INT64", "FLOAT64", "STRING", "BYTES", "BYTES", "TIMESTAMP", "DATE"}
	histories  = "ARRAY<STRUCT<timestamp TIMESTAMP, value BYTES>>"
	composites = []string{"ARRAY<INT64>", "ARRAY<BYTES>", "ARRAY<STRING>"}
	windows    = []string{"OVER INT64", "OVER INT64", "OVER BYTES", "OVER FLOAT64", "OVER ARRAY<BYTES>"}
	totals     = []string{"TOTAL INT64", "TOTAL INT64", "TOTAL BYTES", "TOTAL FLOAT64", "TOTAL BOOL", "TOTAL ARRAY<BYTES>", "TOTAL ARRAY<INT64>"}
)

func (q *queryGenerator) pick(list ...string) string { return list[q.draw(len(list))] }

// chance is true once in n times.
func (q *queryGenerator) chance(n int) bool { return q.draw(n) == 0 }

func (q *queryGenerator) name(prefix string) string {
	q.names++
	return fmt.Sprintf("%s%d", prefix, q.names)
}

// expr draws an expression: one of the columns, or of the grammar. Deep ones are short.
func (q *queryGenerator) expr(of string, depth int) string {
	if columns := q.columnsOf(of); len(columns) > 0 && (depth <= 0 || q.draw(3) > 0) {
		return q.pick(columns...)
	}
	lines := grammar[of]
	if depth <= 0 {
		lines = slices.DeleteFunc(slices.Clone(lines), func(line string) bool { return strings.Contains(line, "{") && !strings.Contains(line, "{KEY}") })
	}
	if len(lines) == 0 {
		lines = grammar[of][len(grammar[of])-1:]
	}
	line := q.pick(lines...)
	var b strings.Builder
	for {
		before, rest, found := strings.Cut(line, "{")
		b.WriteString(before)
		if !found {
			return b.String()
		}
		inner, after, _ := strings.Cut(rest, "}")
		line = after
		switch inner {
		case "COLUMN":
			b.WriteString(q.column(of))
		case "N":
			b.WriteString(q.column("INT64"))
		default:
			b.WriteString(q.expr(inner, depth-1))
		}
	}
}

// columnsOf returns the columns of a type.
func (q *queryGenerator) columnsOf(of string) []string {
	var out []string
	for _, c := range q.columns {
		if c.of == of {
			out = append(out, c.text)
		}
	}
	return out
}

// column returns a column of a type, or a NULL of the type.
func (q *queryGenerator) column(of string) string {
	columns := q.columnsOf(of)
	for _, c := range q.columns {
		switch {
		case of == "BYTES" && c.of == "MAP<BYTES, BYTES>", of == "INT64" && c.of == "MAP<BYTES, INT64>":
			columns = append(columns, c.text+q.pick("['q']", "['q']", "['r']", "['i']", "['']", "[b'q\\x00']", "[@pb]", "[CAST(@ps AS BYTES)]", "['none']", "[FROM_HEX(@ps)]"))
		// Four columns with a row key are those of a table, or of an UNPACK, where it is refused.
		case of == "TIMESTAMP" && (c.text == "f" || c.text == "n") && strings.HasPrefix(c.of, "MAP") && q.keyed && len(q.columns) == 4:
			columns = append(columns, "WRITE_TIMESTAMP("+c.text+q.pick(", 'q')", ", 'r')", ", @pb)", ", _key)"))
		case of == histories && c.of == "HISTORY":
			columns = append(columns, c.text+q.pick("['q']", "['r']", "[@pb]"))
		}
	}
	if len(columns) == 0 {
		return "CAST(NULL AS " + of + ")"
	}
	return q.pick(columns...)
}

// parameters draws the values of the parameters. @pn and @pu are NULL.
func (q *queryGenerator) parameters() map[string]*btpb.Value {
	bytesOf, ints := value.ArrayOf(value.BytesType), value.ArrayOf(value.Int64Type)
	out := map[string]*btpb.Value{}
	for _, p := range []struct {
		name string
		of   value.Type
		v    value.Value
	}{
		{"pi", value.Int64Type, value.Int64(int64(q.draw(9)) - 3)},
		{"pn", value.Int64Type, value.Null},
		{"pb", value.BytesType, value.BytesOf(q.pick("a", "b", "q", "", "\xff", "a#"))},
		{"pu", value.BytesType, value.Null},
		{"ps", value.StringType, value.String(q.pick("a", "", "q", "61", "é"))},
		{"pf", value.Float64Type, value.Float64(float64(q.draw(5)) / 2)},
		{"pt", value.TimestampType, value.Timestamp(int64(q.draw(4)) * 1000)},
		{"pd", value.DateType, value.Date(int64(q.draw(20_000)))},
		{"px", value.BoolType, value.Bool(q.chance(2))},
		{"pab", bytesOf, value.Array([]value.Value{value.BytesOf("a"), value.Null, value.BytesOf(q.pick("b", "", "\xff", "c"))})},
		{"pai", ints, value.Array([]value.Value{value.Int64(2), value.Null, value.Int64(int64(q.draw(4)))})},
	} {
		m, err := value.ToProto(p.v, p.of)
		if err != nil {
			panic(err)
		}
		m.Type = p.of.Proto()
		out[p.name] = m
	}
	return out
}

// statement draws a statement.
func (q *queryGenerator) statement() string {
	text := ""
	if q.chance(6) {
		inner, columns := q.query(1)
		text = "WITH w AS (" + inner + ") "
		q.with = columns
	}
	if q.chance(4) {
		return text + q.piped()
	}
	outer, _ := q.query(2)
	return text + outer
}

// from draws a FROM clause, and sets its columns.
func (q *queryGenerator) from(depth int) string {
	q.columns, q.keyed = nil, false
	var text string
	table := func(history bool) []generated {
		args := []string{}
		add := func(name string) {
			if q.chance(3) {
				args = append(args, name+" => "+q.pick("@pt", "TIMESTAMP_MICROS(1000)", "TIMESTAMP_MILLIS(@pi)", "TIMESTAMP '1970-01-01 00:00:00.002+00'"))
			}
		}
		if history {
			args = append(args, "with_history => TRUE")
			add(q.pick("after", "after_or_equal"))
			add(q.pick("before", "before_or_equal"))
			if q.chance(3) {
				args = append(args, "latest_n => "+q.pick("1", "2", "@pi"))
			}
		}
		if history || q.chance(5) {
			add("as_of")
		}
		if text = q.pick("t", "t", "u"); len(args) > 0 {
			text += "(" + strings.Join(args, ", ") + ")"
		}
		if !history {
			return []generated{{"_key", "BYTES"}, {"f", "MAP<BYTES, BYTES>"}, {"g", "MAP<BYTES, BYTES>"}, {"n", "MAP<BYTES, INT64>"}}
		}
		return []generated{{"_key", "BYTES"}, {"f", "HISTORY"}, {"g", "HISTORY"}, {"n['i'][SAFE_OFFSET(0)].value", "INT64"}}
	}
	switch kind := q.draw(12); {
	case kind < 5 || depth <= 0:
		q.columns, q.keyed = table(false), true
	case kind < 7:
		q.columns, q.keyed = table(true), true
	case kind == 7:
		text = "v"
		q.columns, q.keyed = []generated{{"_key", "BYTES"}, {"q", "BYTES"}, {"i", "INT64"}}, true
	case kind == 8 && q.with != nil:
		text, q.columns = "w", q.with
	case kind == 9:
		table(true)
		text = "UNPACK((SELECT _key, f, g['q'] AS h FROM " + text + "))"
		q.columns, q.keyed = []generated{{"_key", "BYTES"}, {"f", "MAP<BYTES, BYTES>"}, {"h", "BYTES"}, {"_timestamp", "TIMESTAMP"}}, true
	default:
		inner, columns := q.query(depth - 1)
		text, q.columns, q.keyed = "("+inner+") AS "+q.name("s"), columns, false
	}
	for q.chance(4) {
		name := q.name("e")
		of := q.pick("INT64", "BYTES", "STRUCT")
		text += q.pick(", ", " CROSS JOIN ")
		switch of {
		case "STRUCT":
			text += "UNNEST(" + q.expr(histories, 1) + ") AS " + name
			q.columns = append(slices.Clip(q.columns), generated{name + ".timestamp", "TIMESTAMP"}, generated{name + ".value", "BYTES"})
		default:
			text += "UNNEST(" + q.expr("ARRAY<"+of+">", 2) + ") AS " + name
			q.columns = append(slices.Clip(q.columns), generated{name, of})
		}
		if q.chance(2) {
			offset := q.name("o")
			text += " WITH OFFSET AS " + offset
			q.columns = append(q.columns, generated{offset, "INT64"})
		}
	}
	return text
}

// condition draws a condition on the columns.
func (q *queryGenerator) condition() string {
	if q.keyed && q.chance(2) {
		return q.expr("COND", 2)
	}
	return q.expr("BOOL", 3)
}

// items draws a SELECT list and its columns.
func (q *queryGenerator) items(of func() generated) (text string, columns []generated) {
	var items []string
	for range 1 + q.draw(4) {
		item, name := of(), q.name("c")
		items = append(items, item.text+" AS "+name)
		columns = append(columns, generated{name, item.of})
	}
	return strings.Join(items, ", "), columns
}

// item draws an element of a SELECT list.
func (q *queryGenerator) item() generated {
	if q.chance(8) {
		return q.windowed()
	}
	of := q.pick(slices.Concat(scalars, scalars, composites, []string{"MAP<BYTES, BYTES>", "MAP<BYTES, INT64>", histories, histories})...)
	return generated{q.expr(of, 3), of}
}

// windowed draws a call with OVER.
func (q *queryGenerator) windowed() generated {
	of := q.pick(windows...)
	return generated{q.expr(of, 4), strings.TrimPrefix(of, "OVER ")}
}

// orderable reports whether ORDER BY and GROUP BY accept a type.
func orderable(of string) bool { return slices.Contains(scalars, of) }

// query draws a query and its columns.
func (q *queryGenerator) query(depth int) (text string, columns []generated) {
	outer, keyed := q.columns, q.keyed
	defer func() { q.columns, q.keyed = outer, keyed }()
	from := " FROM " + q.from(depth)
	if q.chance(2) {
		from += " WHERE " + q.condition()
	}
	distinct := ""
	order := []string{}
	switch {
	case q.chance(3): // groups
		var by []string
		grouped := []generated{}
		for range q.draw(3) {
			of := q.pick(scalars...)
			key := q.expr(of, 2)
			if slices.ContainsFunc(q.columns, func(c generated) bool { return strings.Contains(key, c.text) }) {
				by, grouped = append(by, key), append(grouped, generated{key, of})
			}
		}
		for range 1 + q.draw(2) {
			of := q.pick(totals...)
			grouped = append(grouped, generated{q.expr(of, 2), strings.TrimPrefix(of, "TOTAL ")})
		}
		q.columns = grouped
		text, columns = q.items(func() generated {
			if q.chance(8) {
				return q.windowed()
			}
			if q.chance(3) {
				of := q.pick("INT64", "BYTES", "BOOL", "STRING")
				return generated{q.expr(of, 2), of}
			}
			return grouped[q.draw(len(grouped))]
		})
		if len(by) > 0 {
			from += " GROUP BY " + strings.Join(by, ", ")
		}
		if q.chance(3) {
			from += " HAVING " + q.expr("BOOL", 2)
		}
	case q.chance(8) && q.keyed && len(q.columns) < 5 && q.columns[1].text == "f" && q.columns[1].of != "HISTORY":
		text, columns = "*", q.columns
	default:
		text, columns = q.items(q.item)
		if q.chance(6) && !slices.ContainsFunc(columns, func(c generated) bool { return !orderable(c.of) }) {
			distinct = "DISTINCT "
		}
		if q.keyed && distinct == "" && q.chance(2) {
			order = append(order, "_key")
		}
	}
	if q.chance(12) {
		from += " QUALIFY " + q.expr("OVER INT64", 4) + " < 3"
	}
	for _, c := range columns {
		if orderable(c.of) && q.chance(3) {
			order = append(order, c.text)
		}
	}
	if len(order) > 0 && q.chance(2) {
		for i := range order {
			order[i] += q.pick("", "", " DESC", " ASC NULLS LAST", " DESC NULLS FIRST")
		}
		from += " ORDER BY " + strings.Join(order, ", ")
	}
	if q.chance(3) {
		from += " LIMIT " + q.pick("0", "1", "2", "5", "@pi")
		if q.chance(3) {
			from += " OFFSET " + q.pick("0", "1", "3", "@pi")
		}
	}
	return "SELECT " + distinct + text + from, columns
}

// piped draws a query in pipe syntax.
func (q *queryGenerator) piped() string {
	text := "FROM " + q.from(1)
	for range 1 + q.draw(4) {
		text += " |> "
		switch q.draw(8) {
		case 0, 1:
			text += "WHERE " + q.condition()
		case 2:
			var items string
			items, q.columns = q.items(q.item)
			q.keyed = false
			text += "SELECT " + items
		case 3:
			items, columns := q.items(q.item)
			q.columns = append(slices.Clip(q.columns), columns...)
			text += "EXTEND " + items
		case 4:
			items, columns := q.items(func() generated {
				of := q.pick(totals...)
				return generated{q.expr(of, 2), strings.TrimPrefix(of, "TOTAL ")}
			})
			text += "AGGREGATE " + items
			if q.chance(2) {
				of, name := q.pick(scalars...), q.name("k")
				text += q.pick(" GROUP BY ", " GROUP AND ORDER BY ") + q.column(of) + " AS " + name
				columns = append(columns, generated{name, of})
			}
			q.columns, q.keyed = columns, false
		case 5, 6:
			of := q.pick(scalars...)
			if q.keyed && q.chance(2) {
				text += "ORDER BY _key" + q.pick("", " DESC")
			} else {
				text += "ORDER BY " + q.expr(of, 1) + q.pick("", " DESC")
			}
		default:
			text += "LIMIT " + q.pick("1", "2", "5") + q.pick("", " OFFSET 1")
		}
	}
	return text
}
