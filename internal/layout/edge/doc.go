// Package edge generates values that test the limits of a mapping: boundary values of codecs and
// encoders, delimiters and alphabets, and values at DynamoDB's limits. The same source of
// randomness gives the same values. The caller decides to which keys and attributes they are
// assigned.
package edge
