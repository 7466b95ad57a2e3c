// Package edge generates values that attack a mapping: at the edges of codecs and encoders,
// of delimiters and alphabets, of what DynamoDB accepts. The same source of randomness gives
// the same values. The caller decides which keys and attributes they become.
package edge
