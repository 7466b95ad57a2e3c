// Package edge draws the values that a mapping is attacked with: at the edges of
// codecs and encoders, of delimiters and alphabets, of what DynamoDB takes. The
// same source of randomness gives the same values. Whose keys and attributes they
// become is for who draws.
package edge
