// Package edge generates values that attack a mapping: boundary values of codecs and encoders,
// of delimiters and alphabets, and of DynamoDB's limits. The same source of randomness gives
// the same values. The caller decides which keys and attributes they become.
package edge
