// Package rest serves gRPC services as HTTP with JSON, as Google's front end does. The routes are
// the google.api.http annotations of the services' descriptors; no route is written by hand.
//
// A request passes through these steps, each in a file of its own:
//
//   - template.go matches the path with the templates of the annotations, and captures the fields
//     in it.
//   - request.go reads the body and the query parameters into the request message.
//   - handler.go makes the call over a connection, and writes the response: JSON, or a JSON array
//     for a stream.
//   - error.go writes errors in Google's form: {"error": {"code", "message", "status", "details"}}.
//
// The rules are those of the comments in google/api/http.proto, and of
// https://cloud.google.com/apis/docs/system-parameters for the parameters of all methods.
package rest
