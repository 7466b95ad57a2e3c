// Package bundle checks the contents of schema bundles: protobuf descriptor
// sets, which must link and stay compatible on an update, and Avro schemas.
// A linked set has the messages and enums that queries name.
package bundle
