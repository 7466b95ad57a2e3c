package syntax

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"unicode/utf8"
)

// Limits of a statement. They bound the stack and the memory of the parser and of its callers,
// which descend into the tree.
const (
	MaxBytes = 1 << 20 // of the text
	MaxDepth = 500     // of expressions and queries inside each other
	MaxChain = 10_000  // of operators that continue an operand, as in a + b + c, without the first ones
)

// parser reads a statement. A syntax error is a panic with *Error; other errors wait until the
// end if the parser understands the construct, since a syntax error comes first.
type parser struct {
	lexer
	tok     token
	ahead   token // the token after tok, if peeked
	peeked  bool
	prevEnd int // end of the token before tok
	depth   int
	chain   int
	later   error // the first one that syntax errors precede
	star    int   // offset at which an expression may be a.*, or -1

	subqueryEnd int // end of the last subquery in an expression
}

// Parse returns the tree of a statement. Its error is an *Error, or an *Unsupported.
func Parse(text string) (stmt *Statement, err error) {
	if len(text) > MaxBytes {
		return nil, &Error{Message: fmt.Sprintf("The statement has %d bytes, but at most %d are allowed", len(text), MaxBytes), text: text}
	}
	p := &parser{lexer: lexer{text: text}, star: -1}
	defer func() {
		switch r := recover().(type) {
		case nil:
		case *Error:
			r.text = text
			stmt, err = nil, r
		case *Unsupported:
			stmt, err = nil, r
		default:
			panic(r)
		}
	}()
	p.advance()
	stmt = p.statement()
	if p.later != nil {
		return nil, p.later
	}
	return stmt, nil
}

// statement reads the whole text.
func (p *parser) statement() *Statement {
	stmt := &Statement{}
	if p.is("@") {
		if p.peek().kind == tokEnd {
			p.unexpected()
		}
		stmt.Hints = p.hints()
	}
	if p.tok.word.text != "" && otherStatements()[p.tok.word.text] {
		p.reject(p.tok.word.text, p.tok.at)
	}
	if !p.queryStarts() {
		p.unexpected()
	}
	stmt.Query = p.query()
	if p.take(";") && p.tok.kind != tokEnd || p.tok.kind != tokEnd {
		p.expected("end of input")
	}
	return stmt
}

// otherStatements are the first words of the statements of GoogleSQL that are not queries.
var otherStatements = sync.OnceValue(func() map[string]bool {
	words := map[string]bool{}
	for _, w := range strings.Fields(`ABORT ALTER ANALYZE ASSERT BEGIN CALL CLONE COMMIT CREATE DEFINE
		DELETE DESC DESCRIBE DROP EXECUTE EXPLAIN EXPORT GRANT GRAPH IMPORT INSERT LOAD MERGE MODULE
		RENAME REVOKE ROLLBACK RUN SET SHOW START TABLE TRUNCATE UNDROP UPDATE`) {
		words[w] = true
	}
	return words
})

// advance reads the next token.
func (p *parser) advance() {
	p.prevEnd = p.tok.end
	if p.peeked {
		p.tok, p.peeked = p.ahead, false
	} else {
		p.tok = p.next()
	}
	if p.tok.kind == tokIllegal {
		panic(p.err)
	}
}

// peek returns the token after the current one. It may be illegal.
func (p *parser) peek() token {
	if !p.peeked {
		p.ahead, p.peeked = p.next(), true
	}
	return p.ahead
}

// source returns the text of a token.
func (p *parser) source(t token) string { return p.text[t.at:t.end] }

// isSymbol reports whether a token is a symbol.
func (p *parser) isSymbol(t token, s string) bool {
	return t.kind == tokSymbol && p.source(t) == s
}

// is reports whether the current token is a symbol or a keyword.
func (p *parser) is(s string) bool {
	if p.tok.kind == tokName {
		return p.tok.word.text == s
	}
	return p.isSymbol(p.tok, s)
}

// nextIs reports whether the token after the current one is a symbol or a keyword.
func (p *parser) nextIs(s string) bool {
	t := p.peek()
	return t.kind == tokName && t.word.text == s || p.isSymbol(t, s)
}

// take reads a symbol or a keyword if it is the current token.
func (p *parser) take(s string) bool {
	if !p.is(s) {
		return false
	}
	p.advance()
	return true
}

// pair reads two symbols if they are the next tokens and touch each other.
func (p *parser) pair(first, second string) bool {
	if !p.is(first) || p.peek().at != p.tok.end || !p.isSymbol(p.ahead, second) {
		return false
	}
	p.advance()
	p.advance()
	return true
}

// expect reads a symbol or a keyword.
func (p *parser) expect(s string) {
	if !p.take(s) {
		p.expected(quote(s))
	}
}

// expectAny fails with an error that lists the texts if the current token is another than the
// first one, and reads it otherwise.
func (p *parser) expectAny(s string, others ...string) {
	if p.take(s) {
		return
	}
	list := []string{quote(s)}
	for _, o := range others {
		list = append(list, quote(o))
	}
	slices.Sort(list)
	p.expected(strings.Join(list, " or "))
}

// quote returns the name of a symbol or keyword in an error.
func quote(s string) string {
	if isLetter(s[0]) {
		return "keyword " + s
	}
	return `"` + s + `"`
}

// expected fails since the current token is another than the listed ones.
func (p *parser) expected(list string) {
	p.misplaced()
	p.fail(p.tok.at, fmt.Sprintf("Expected %s but got %s", list, p.describe()))
}

// unexpected fails since nothing can begin or continue with the current token.
func (p *parser) unexpected() {
	p.misplaced()
	p.fail(p.tok.at, "Unexpected "+p.describe())
}

// misplaced fails if GoogleSQL has an error of its own for the current token.
func (p *parser) misplaced() {
	switch {
	case p.is("EXCEPT") && !p.nextIs("(") && !p.nextIs("ALL") && !p.nextIs("DISTINCT"):
		p.failBare(p.tok.at, `EXCEPT must be followed by ALL, DISTINCT, or "("`)
	case p.is("OVER"):
		p.fail(p.tok.at, "OVER keyword must follow a function call")
	}
}

// maxShown is the number of bytes of a literal that an error shows.
const maxShown = 53

// describe returns the current token as errors name it.
func (p *parser) describe() string {
	text := p.source(p.tok)
	switch p.tok.kind {
	case tokEnd:
		return "end of statement"
	case tokQuoted:
		return "identifier " + text
	case tokName:
		if p.tok.word.text != "" {
			return "keyword " + p.tok.word.text
		}
		return `identifier "` + text + `"`
	case tokInt:
		return `integer literal "` + text + `"`
	case tokFloat:
		return `floating point literal "` + text + `"`
	case tokString:
		return "string literal " + shorten(text)
	case tokBytes:
		return "bytes literal " + shorten(text)
	case tokSymbol, tokIllegal:
	}
	return `"` + text + `"`
}

// shorten returns the beginning of a long literal with its quote at the end.
func shorten(text string) string {
	if len(text) <= maxShown {
		return text
	}
	quotes := delimiter(text, literalPrefix(text))
	n := maxShown - len("...") - len(quotes)
	for n > 0 && !utf8.RuneStart(text[n]) {
		n--
	}
	return text[:n] + "..." + quotes
}

// fail ends the parse with a syntax error.
func (p *parser) fail(at int, message string) {
	panic(&Error{Message: message, Offset: at})
}

// failBare ends the parse with an error that GoogleSQL does not call a syntax error.
func (p *parser) failBare(at int, message string) {
	panic(&Error{Message: message, Offset: at, bare: true})
}

// failLater notes an error that is returned only if the rest of the statement has no syntax error.
func (p *parser) failLater(at int, message string) {
	if p.later == nil {
		p.later = &Error{Message: message, Offset: at, text: p.text, bare: true}
	}
}

// refuse records that Bigtable does not have a construct, and returns, so that the parser finds a later
// syntax error first.
func (p *parser) refuse(construct string, at int) {
	if p.later == nil {
		p.later = &Unsupported{Construct: construct, Offset: at, text: p.text}
	}
}

// reject ends the parse at a construct that Bigtable does not have.
func (p *parser) reject(construct string, at int) {
	p.refuse(construct, at)
	panic(p.later)
}

// enter begins an expression or a query inside another one; leave ends it.
func (p *parser) enter() {
	if p.depth++; p.depth > MaxDepth {
		p.fail(p.tok.at, fmt.Sprintf("The statement is nested more than %d levels deep", MaxDepth))
	}
}

func (p *parser) leave() { p.depth-- }

// link counts an operator that continues an operand, whose tree it makes deeper. n is the number
// of such operators before it.
func (p *parser) link(n int) {
	if n == 0 {
		return
	}
	if p.chain++; p.chain > MaxChain {
		p.fail(p.tok.at, fmt.Sprintf("The statement has more than %d operators in chains", MaxChain))
	}
}

// isName reports whether a token is a name outside of the reserved words.
func isName(t token) bool {
	return t.kind == tokQuoted || t.kind == tokName && !t.word.reserved
}

// name reads a name.
func (p *parser) name() Name {
	if !isName(p.tok) {
		p.unexpected()
	}
	return p.anyName()
}

// anyName reads the current token, which may be a reserved word, as a name.
func (p *parser) anyName() Name {
	n := Name{At: p.tok.at, Text: p.source(p.tok)}
	if p.tok.kind == tokQuoted {
		n.Text = p.contents()
	}
	p.advance()
	return n
}

// path reads names joined by dots.
func (p *parser) path() []Name {
	names := []Name{p.name()}
	for p.is(".") {
		p.advance()
		names = append(names, p.name())
	}
	return names
}

// contents returns the value of the current literal or quoted name.
func (p *parser) contents() string {
	s, err := contents(p.source(p.tok), p.tok.kind)
	if err != nil {
		p.fail(p.tok.at+err.Offset, err.Message)
	}
	return s
}

// alias reads an alias, whose AS is optional, or returns nil.
func (p *parser) alias() *Name {
	if p.take("AS") || isName(p.tok) {
		n := p.name()
		return &n
	}
	return nil
}

// aliasAfterAs reads AS and an alias, or returns nil.
func (p *parser) aliasAfterAs() *Name {
	if !p.take("AS") {
		return nil
	}
	n := p.name()
	return &n
}

// hints reads @{...}, or the number of a hint @5, which has no meaning here.
func (p *parser) hints() []Hint {
	if t := p.peek(); t.kind != tokInt && t.kind != tokEnd && t.kind != tokIllegal && !p.isSymbol(t, "{") {
		p.unexpected()
	}
	p.advance()
	if p.tok.kind == tokInt {
		p.advance()
		if !p.is("@") || !p.nextIs("{") {
			return nil
		}
		p.advance()
	}
	if !p.take("{") {
		p.unexpected()
	}
	var hints []Hint
	for {
		h := Hint{At: p.tok.at}
		n := p.name()
		h.Name = n.Text
		switch {
		case p.take("."):
			h.Name += "." + p.name().Text
			p.expect("=")
		default:
			p.expectAny("=", ".")
		}
		h.Value = p.expr()
		hints = append(hints, h)
		if !p.take(",") {
			break
		}
	}
	p.expectAny("}", ",")
	return hints
}

// hintStarts reports whether a hint follows, and not a parameter.
func (p *parser) hintStarts() bool {
	if !p.is("@") {
		return false
	}
	t := p.peek()
	return t.kind == tokInt || t.kind == tokEnd || p.isSymbol(t, "{")
}

// skipHints skips hints at a place where they have no effect.
func (p *parser) skipHints() {
	if p.hintStarts() {
		p.hints()
	}
}
