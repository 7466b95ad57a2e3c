// Package console provides the pages of the control API as embedded static files. There is no
// build step, except that `make editor` builds codemirror.js from tools/editor. The pages
// load all data from the API, so they contain no data and need no token; docs/console.md
// describes them.
//
// The files follow these rules: data is inserted as text nodes and never as HTML, nothing is loaded
// from other servers, and pages have no inline scripts or styles. This satisfies the content
// security policy that package control sends.
package console
