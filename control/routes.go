package control

import (
	"net/http"
	"strings"
)

// route answers the requests of one path and method.
type route struct {
	do      func(*http.Request) (any, error)
	query   string // the names of its query parameters
	body    bool   // requests have a body with members
	changes change // pages that the request makes stale
}

// change is the set of pages with new data.
type change int

const (
	changesNothing change = iota
	changesLab            // clock, faults, snapshots
	changesAll            // tables too
)

// routes returns the paths of the API with their handlers, except for streams and files.
// TestOpenAPI compares them with openapi.yaml.
func (s *Server) routes() map[string]route {
	out := map[string]route{}
	for pattern, to := range map[string]route{
		"GET info":                                {do: s.info},
		"GET tables":                              {do: s.tables, query: "describe dynamodb"},
		"GET tables/{instance}/{table}":           {do: s.table, query: "project"},
		"GET tables/{instance}/{table}/rows":      {do: s.rows, query: "project prefix prefix64 start start64 end end64 match match64 filter reverse keys limit cursor"},
		"POST tables/{instance}/{table}/rows":     {do: s.putRows, query: "project", body: true},
		"POST tables/{instance}/{table}":          {do: tableAdmin{s}.create, query: "project", body: true, changes: changesAll},
		"DELETE tables/{instance}/{table}":        {do: tableAdmin{s}.remove, query: "project", changes: changesAll},
		"POST tables/{instance}/{table}/families": {do: tableAdmin{s}.families, query: "project", body: true, changes: changesAll},
		"POST tables/{instance}/{table}/drop":     {do: tableAdmin{s}.drop, query: "project", body: true},
		"GET tables/{instance}/{table}/row":       {do: s.row, query: "project key key64"},
		"GET tables/{instance}/{table}/items":     {do: s.carried, query: "project key key64"},
		"GET views":                               {do: s.views},
		"GET views/{instance}/{view}/rows":        {do: s.viewRows, query: "project prefix prefix64 start start64 end end64 match match64 filter reverse keys limit cursor"},
		"POST views/refresh":                      {do: s.refreshViews, changes: changesAll},
		"GET items/{table}":                       {do: s.items, query: "index limit cursor"},
		"POST items/{table}":                      {do: s.putItems, body: true},
		"POST items/{table}/preview":              {do: s.previewItem, body: true},
		"POST query":                              {do: s.query, body: true},
		"POST sql":                                {do: s.sql, body: true},
		"POST reset":                              {do: s.reset, changes: changesAll},
		"POST resume":                             {do: s.resume},
		"POST demo":                               {do: s.demo, changes: changesAll},
		"GET snapshots":                           {do: s.listSnapshots},
		"POST snapshots":                          {do: s.takeSnapshot, body: true, changes: changesLab},
		"DELETE snapshots/{name}":                 {do: s.removeSnapshot, changes: changesLab},
		"GET snapshots/{name}/changes":            {do: s.snapshotChanges, query: "to limit"},
		"POST snapshots/{name}/restore":           {do: s.restoreSnapshot, changes: changesAll},
		"GET clock":                               {do: s.clock},
		"POST clock":                              {do: s.setClock, body: true, changes: changesLab},
		"POST gc":                                 {do: s.gc, changes: changesLab},
		"POST ttl":                                {do: s.ttl, changes: changesLab},
		"GET faults":                              {do: s.faults},
		"GET faults/errors":                       {do: s.faultErrors},
		"POST faults":                             {do: s.addFault, body: true, changes: changesLab},
		"DELETE faults":                           {do: s.removeFaults, changes: changesLab},
		"DELETE faults/{endpoint}/{id}":           {do: s.removeFault, changes: changesLab},
		"GET dump":                                {do: s.dump, query: "table"},
		"GET requests":                            {do: s.requests, query: wantedParameters + " limit before"},
		"DELETE requests":                         {do: s.clear},
		"GET requests/trace":                      {do: s.trace, query: wantedParameters},
		"GET requests/{id}":                       {do: s.request},
		"GET requests/{id}/pattern":               {do: s.pattern},
		"GET heat":                                {do: s.heatPlaces},
		"GET heat/{instance}/{table}":             {do: s.heatMap, query: "project cluster step last limit"},
		"GET history/{table}":                     {do: s.historyOfItem, query: "item own writes limit"},
		"GET history/{instance}/{table}":          {do: s.historyOfRow, query: "project key key64 own writes limit"},
		"GET insights/{table}":                    {do: s.insights, query: "index"},
		"GET streams":                             {do: streams{s}.list},
		"GET streams/{table}/records":             {do: streams{s}.records, query: "arn from limit cursor"},
		"GET tables/{instance}/{table}/changes":   {do: streams{s}.changes, query: "project from bookkeeping limit cursor"},
		"POST tables/{instance}/{table}/changes":  {do: tableAdmin{s}.record, query: "project", changes: changesAll},
		"GET followed":                            {do: s.followed},
		"GET migrate":                             {do: s.fixtures},
		"GET migrate/{fixture}":                   {do: s.fixtureText},
		"POST migrate/preview":                    {do: s.preview, body: true},
		"POST migrate/{verb}":                     {do: s.migrate, body: true},
	} {
		method, path, _ := strings.Cut(pattern, " ")
		out[method+" "+Prefix+path] = to
	}
	return out
}

const homeText = `Tabletop: the control API of this server.

It needs a token: "Authorization: Bearer TOKEN", with the token from the server's output, its port file or its --token-file.
` + "`tabletop ctl help`" + ` lists the commands for a shell. Below /api/v1/:

  GET  info                                the endpoints and their addresses
  GET  tables                              Bigtable's and DynamoDB's   ?describe= ?dynamodb=
  GET  tables/{instance}/{table}           families, rules, size
                                           POST creates it, DELETE removes it
  POST tables/{instance}/{table}/families  create, change and drop families
  POST tables/{instance}/{table}/drop      delete the rows of a prefix, or all
  GET  tables/{instance}/{table}/rows      rows with all cells    ?prefix= ?start= ?end= ?match= ?filter= ?reverse= ?keys= ?limit= ?cursor=
  POST tables/{instance}/{table}/rows      write rows
  GET  tables/{instance}/{table}/row       one row                ?key= or ?key64=
  GET  tables/{instance}/{table}/items     the items of one row, and the cells of each attribute   ?key= or ?key64=
  GET  views                               logical and materialized views: statement, state, changes that reads do not show
  GET  views/{instance}/{view}/rows        rows of a materialized view   with the parameters of the rows of a table
  POST views/refresh                       make the materialized views reflect all changes
  GET  items/{table}                       items of DynamoDB      ?limit= ?cursor=
  POST items/{table}                       put items
  POST items/{table}/preview               the cells that a put or a delete would change
  POST query                               run a DynamoDB operation, and show its Bigtable calls
  POST sql                                 run a SQL query, and return its first rows
  POST reset                               remove all tables, and the faults; snapshots and the clock stay
  POST resume                              continue the paused Go test
  POST demo                                load the shipped fixtures into a server without tables
  GET  snapshots   POST snapshots          named snapshots        DELETE snapshots/{name}, POST snapshots/{name}/restore
  GET  snapshots/{name}/changes            rows and items changed since then   ?to= ?limit=
  GET  clock       POST clock              set, advance, freeze, run
  POST gc          POST ttl                collect garbage, delete expired items
  GET  faults      POST faults             the armed faults       DELETE faults, DELETE faults/{endpoint}/{id}
  GET  faults/errors                       the errors of DynamoDB, with the operations that can meet them
  GET  dump                                all tables as text     ?table=
  GET  requests    GET requests/{id}       the last requests of both endpoints   DELETE requests forgets them
  GET  requests/trace                      requests of DynamoDB, as a trace for lint
  GET  requests/{id}/pattern               a request that reads, as an access pattern of a fixture
  GET  heat        GET heat/{instance}/{table}   the load on keys
  GET  history/{instance}/{table}          requests, changes and records about one row          ?key= or ?key64= ?own= ?writes= ?limit=
  GET  history/{table}                     the same about the row of an item   ?item= ?own= ?writes= ?limit=
  GET  insights/{table}                    the most used keys of a DynamoDB table   ?index=
  GET  streams                             the streams of both endpoints
  GET  streams/{table}/records             records of DynamoDB Streams   ?from= ?limit= ?cursor=
  GET  tables/{instance}/{table}/changes   records of a change stream of Bigtable   ?from= ?bookkeeping= ?limit= ?cursor=
                                           POST enables the stream
  GET  followed                            the tables into which live DynamoDB tables are followed: phase, lag, dead letters
  GET  events                              live, as server-sent events   ?after= ?kinds=
  GET  migrate     POST migrate/{verb}     plan, verify and lint fixtures
  GET  migrate/{fixture}                   its mapping            POST migrate/preview: the rows of items under another mapping
  GET  openapi.yaml                        all of this, for programs
`
