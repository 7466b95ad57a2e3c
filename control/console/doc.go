// Package console is the pages of the control API: static files that are embedded as
// they are written, without a build step. They ask the API for all that they show, so they
// hold no data and need no token; docs/console.md describes them.
//
// What the files keep to: data becomes text nodes and never HTML, nothing is loaded from
// elsewhere, and no script or style stands in the page, so that the policy that package
// control sends holds.
package console
