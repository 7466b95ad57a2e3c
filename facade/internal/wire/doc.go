// Package wire implements the protocol of the DynamoDB API, AWS JSON 1.0 over HTTP: it reads
// bodies, decodes or scans requests, checks signatures, and writes answers and errors with
// AWS's headers. It knows no operation: requests and answers are structs of its callers,
// with the member names of the API model.
//
// Whatever is sent, nothing here panics, and the size of a body is limited before and
// after it is unpacked. A request is refused with an *awserr.Error, with the code and
// text of AWS; a value that is JSON but not an attribute value is kept with its error,
// since AWS checks other members first.
package wire
