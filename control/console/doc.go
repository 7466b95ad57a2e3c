// Package console holds the pages of the control API: static files that are embedded as they
// are, without a build step. The pages ask the API for everything that they show, so they
// contain no data and need no token; docs/console.md describes them.
//
// What the files keep to: data becomes text nodes and never HTML, nothing is loaded from
// elsewhere, and no script or style stands in the page, so that the policy that package
// control sends holds.
package console
