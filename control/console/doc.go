// Package console provides the pages of the control API as embedded static files. There is no
// build step, except that `make editor` builds codemirror.js from tools/editor. The pages
// load all data from the API, so they contain no data and need no token; docs/console.md
// describes them.
//
// The files follow these rules: data is inserted as text nodes and never as HTML, nothing is loaded
// from other servers, and pages have no inline scripts or styles. This satisfies the content
// security policy that package control sends.
//
// # Pages
//
// page.html is the file for all paths; app.js has the sign-in, the navigation, and the list of
// the pages. These scripts, in static, draw one page each, with the parts named after them:
//
//   - home.js: addresses and tables. clients.js has the code for clients, create.js the forms of
//     new tables and imports.
//   - table.js: families, splits, and the mapping in mapping.js. rules.js puts rules of garbage
//     collection into words.
//   - view.js: the rows of a materialized view. views.js has the lists of views on Home and Table.
//   - rows.js: rows with their cells and items. parts.js splits row keys.
//   - item.js: items. form.js has the form of an item, grid.js the table with columns to resize,
//     items.js the values.
//   - keys.js: the heat map. axis.js draws axes of time, for this and for the chart of followed.js.
//   - history.js: requests, cells and records about one row.
//   - requests.js: the live list of requests, and their details. calls.js has their Bigtable calls.
//   - query.js: requests and reads to run; sql.js has the tab for SQL.
//   - streams.js: the records of both endpoints, side by side.
//   - lab.js: clock, garbage collection and snapshots. faults.js has the form of a fault,
//     changes.js the changes since a snapshot.
//   - migration.js: fixtures. followed.js shows live tables, plan.js the plan of a load, workbench.js
//     the editor of a mapping.
//
// The server renders the documents from package docs; docs.js searches them.
//
// # Shared scripts
//
//   - dom.js creates elements, dialogs, tabs and long lists; style.css has sizes and colors.
//   - api.js calls the API and follows its events; paths.js has the links between pages, and head.js
//     the head of a table's pages with its menu of tables.
//   - bytes.js reads and writes bytes in the notation of values.
//   - field.js has the fields of JSON, YAML and SQL; editor.js puts codemirror.js over them, and
//     schema.js completes YAML.
//   - code.js writes code that reads a row, dynamocode.js code of a DynamoDB request, and gocode.js
//     Go code for the actions of a page and for Bigtable calls.
package console
