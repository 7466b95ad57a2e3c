package control

import (
	"net/http"
	"strings"
)

// routes are the paths of the API and what answers them, but for streams and files. TestOpenAPI
// compares them with openapi.yaml.
func (s *Server) routes() map[string]func(*http.Request) (any, error) {
	out := map[string]func(*http.Request) (any, error){}
	for route, do := range map[string]func(*http.Request) (any, error){
		"GET info":                            s.info,
		"GET tables":                          s.tables,
		"GET tables/{instance}/{table}":       s.table,
		"GET tables/{instance}/{table}/rows":  s.rows,
		"POST tables/{instance}/{table}/rows": s.putRows,
		"GET tables/{instance}/{table}/row":   s.row,
		"GET tables/{instance}/{table}/items": s.carried,
		"GET items/{table}":                   s.items,
		"POST items/{table}":                  s.putItems,
		"POST query":                          s.query,
		"POST reset":                          s.reset,
		"POST release":                        s.release,
		"GET snapshots":                       s.listSnapshots,
		"POST snapshots":                      s.takeSnapshot,
		"DELETE snapshots/{name}":             s.removeSnapshot,
		"POST snapshots/{name}/restore":       s.restoreSnapshot,
		"GET clock":                           s.clock,
		"POST clock":                          s.setClock,
		"POST gc":                             s.gc,
		"POST ttl":                            s.ttl,
		"GET faults":                          s.faults,
		"POST faults":                         s.addFault,
		"DELETE faults":                       s.removeFaults,
		"DELETE faults/{door}/{id}":           s.removeFault,
		"GET dump":                            s.dump,
		"GET requests":                        s.requests,
		"GET requests/{id}":                   s.request,
		"GET heat":                            s.heatPlaces,
		"GET heat/{instance}/{table}":         s.heatMap,
		"GET migrate":                         s.fixtures,
		"GET migrate/{fixture}":               s.fixtureText,
		"POST migrate/preview":                s.preview,
		"POST migrate/{verb}":                 s.migrate,
	} {
		method, path, _ := strings.Cut(route, " ")
		out[method+" "+Prefix+path] = do
	}
	return out
}

const homeText = `Tabletop: the control API of this server.

It needs a token: "Authorization: Bearer TOKEN", with the one that the server printed, that is in its port file, or that its --token-file holds.
` + "`tabletop ctl help`" + ` speaks it from a shell. Below /api/v1/:

  GET  info                                what is served, and where
  GET  tables                              Bigtable's and DynamoDB's
  GET  tables/{instance}/{table}           families, rules, size
  GET  tables/{instance}/{table}/rows      rows with all cells    ?prefix= ?start= ?end= ?reverse= ?limit= ?cursor=
  POST tables/{instance}/{table}/rows      write rows
  GET  tables/{instance}/{table}/row       one row                ?key= or ?key64=
  GET  tables/{instance}/{table}/items     the items of one row, and the cells of each attribute   ?key= or ?key64=
  GET  items/{table}                       items of DynamoDB      ?limit= ?cursor=
  POST items/{table}                       put items
  POST query                               run an operation of DynamoDB, and see the calls of Bigtable that it became
  POST reset                               remove everything
  POST release                             let the test go on that is held
  GET  snapshots   POST snapshots          named snapshots        DELETE snapshots/{name}, POST snapshots/{name}/restore
  GET  clock       POST clock              set, advance, freeze, run
  POST gc          POST ttl                collect garbage, delete expired items
  GET  faults      POST faults             what goes wrong        DELETE faults, DELETE faults/{door}/{id}
  GET  dump                                all tables as text     ?table=
  GET  requests    GET requests/{id}       the last requests of both doors
  GET  heat        GET heat/{instance}/{table}   which keys are hot
  GET  events                              live, as server-sent events   ?after=
  GET  migrate     POST migrate/{verb}     plan, verify and lint fixtures
  GET  migrate/{fixture}                   its mapping            POST migrate/preview: the rows that items become by another one
  GET  openapi.yaml                        all of this, for programs
`
