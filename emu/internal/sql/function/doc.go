// Package function implements the functions and operators of GoogleSQL for Bigtable on values.
//
// The tables in its files list the functions by subject. Each has signatures as data, such as that
// of SUBSTR, "STRING, INT64, [INT64]->STRING". Overloads, the coercion of literals, result types and
// the candidates of an error text follow from them. [Lookup] and [Operator] find a function,
// [Function.Resolve] chooses a signature for the types of arguments, and the resulting [Call]
// evaluates it. A call with OVER computes the rows of a partition at once. A documented function
// that is missing here is refused by its name.
//
// In signatures, T1 and T2 are types that arguments share, ANY is any type, and PART is a word
// such as MONTH or NFKC. Brackets enclose an optional argument, and ... follows a repeated one.
// LAMBDA<X, Y> is a lambda of an argument X with the result Y.
package function
