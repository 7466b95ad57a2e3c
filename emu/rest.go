package emu

import (
	"context"
	"net/http"

	"google.golang.org/genproto/googleapis/api/annotations"
	"google.golang.org/grpc/tap"

	"github.com/tabletop-emu/tabletop/internal/rest"
)

// restServices are the services of REST.
var restServices = []string{
	"google.bigtable.admin.v2.BigtableInstanceAdmin",
	"google.bigtable.admin.v2.BigtableTableAdmin",
	"google.longrunning.Operations",
	"google.cloud.location.Locations",
	"google.bigtable.v2.Bigtable",
}

// restRules are the paths of operations and locations in Bigtable's API. Only the configuration of
// the service has them: the annotations of these shared services begin with /v1.
// https://cloud.google.com/bigtable/docs/reference/admin/rest/v2/operations
var restRules = map[string]*annotations.HttpRule{
	"google.longrunning.Operations.ListOperations": {
		Pattern: &annotations.HttpRule_Get{Get: "/v2/{name=operations/projects/**}/operations"},
	},
	"google.longrunning.Operations.GetOperation": {
		Pattern: &annotations.HttpRule_Get{Get: "/v2/{name=operations/**}"},
	},
	"google.longrunning.Operations.DeleteOperation": {
		Pattern: &annotations.HttpRule_Delete{Delete: "/v2/{name=operations/**}"},
	},
	"google.longrunning.Operations.CancelOperation": {
		Pattern: &annotations.HttpRule_Post{Post: "/v2/{name=operations/**}:cancel"}, Body: "*",
	},
	"google.cloud.location.Locations.ListLocations": {
		Pattern: &annotations.HttpRule_Get{Get: "/v2/{name=projects/*}/locations"},
	},
	"google.cloud.location.Locations.GetLocation": {
		Pattern: &annotations.HttpRule_Get{Get: "/v2/{name=projects/*/locations/*}"},
	},
}

// REST returns a handler of the same services as HTTP with JSON, at the paths of Google's
// endpoints bigtable.googleapis.com and bigtableadmin.googleapis.com. gcloud, Terraform and the
// clients with a REST transport use them. It requires the token of [Options], if that is set, and
// does not check the host or the origin of a request.
//
// https://cloud.google.com/bigtable/docs/reference/admin/rest
func (s *Server) REST() (http.Handler, error) {
	h, err := rest.New(rest.Options{Conn: s.Conn(), Services: restServices, Rules: restRules})
	if err != nil {
		return nil, err
	}
	if s.token == "" {
		return h, nil
	}
	gate := tokenGate(s.token)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		header := map[string][]string{"authorization": r.Header.Values("Authorization")}
		if _, err := gate(context.Background(), &tap.Info{Header: header}); err != nil {
			rest.WriteError(w, err)
			return
		}
		h.ServeHTTP(w, r)
	}), nil
}
