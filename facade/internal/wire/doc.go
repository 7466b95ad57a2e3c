// Package wire implements the protocol of the DynamoDB API, AWS JSON 1.0 over HTTP. It
// reads bodies, decodes or scans requests, checks signatures, and writes responses and
// errors with AWS's headers. It does not know the operations: callers define requests and
// responses as structs with the member names of the API model.
//
//   - http.go, decode.go, scan.go: bodies and requests.
//   - signature.go: [Authenticate] checks the signature of a request.
//   - values.go, encode.go, errors.go: members, responses and errors.
//
// No input causes a panic, and the size of a body is limited before and after
// decompression. A request is rejected with an *awserr.Error that has AWS's code and
// text. JSON that is not a valid attribute value is kept with its error, because AWS
// checks other members first.
package wire
