package main

import (
	"fmt"
	"net"
	"time"
)

// announce prints the addresses for clients, once the endpoints are open. A shell can evaluate
// the whole output; "# ready" is its last line.
func (s *serving) announce() {
	c, w := s.command, s.program.stdout
	export := func(name, value string) { _, _ = fmt.Fprintf(w, "export %s=%s\n", name, value) }
	where := "in memory, discarded on exit"
	switch {
	case c.CA != "" || cloudInstance.MatchString(c.Target): // as below
		where = "at " + c.Target
		_, _ = fmt.Fprintf(w, "# Bigtable endpoint: %s\n", c.Target)
	case c.Target != "":
		where = "at " + c.Target
		export("BIGTABLE_EMULATOR_HOST", c.Target)
	case c.Data != "":
		where = "in " + c.Data
	case c.Seeds.ExportOnExit != "":
		where = "in memory, exported to " + c.Seeds.ExportOnExit + " on exit"
	}
	switch {
	case s.bigtableAddr == nil:
	case s.tls != nil || s.token != "":
		// Clients speak plain text, without a token, to BIGTABLE_EMULATOR_HOST.
		_, _ = fmt.Fprintf(w, "# Bigtable endpoint: %s\n", clientAddr(s.bigtableAddr))
	default:
		export("BIGTABLE_EMULATOR_HOST", clientAddr(s.bigtableAddr))
	}
	if s.restAddr != nil {
		export("CLOUDSDK_API_ENDPOINT_OVERRIDES_BIGTABLEADMIN", s.restURL()+"/")
	}
	if s.dynamoDBAddr != nil {
		export("AWS_ENDPOINT_URL_DYNAMODB", s.dynamoDBURL())
		export("AWS_ENDPOINT_URL_DYNAMODB_STREAMS", s.dynamoDBURL()) // such clients ignore other variables
		export("AWS_REGION", "us-east-1")
		export("AWS_DEFAULT_REGION", "us-east-1") // botocore reads only this variable
		if !c.Dynamo.secret(c.Access) {           // secrets are not printed
			export("AWS_ACCESS_KEY_ID", "tabletop")
			export("AWS_SECRET_ACCESS_KEY", "tabletop")
		}
	}
	if s.consoleAddr != nil {
		export("TABLETOP_CONSOLE_URL", s.consoleURL())
		page := s.consoleURL() + "/"
		if s.consoleToken != "" {
			export("TABLETOP_CONSOLE_TOKEN", s.consoleToken)
			page += "#token=" + s.consoleToken
		}
		_, _ = fmt.Fprintf(w, "# Console: %s\n", page)
	} else if c.Target == "" { // not available over another Bigtable
		_, _ = fmt.Fprintln(w, "# --console adds pages that show the data, and a control API")
	}
	if c.Web.Like == likeDynamoDBLocal {
		_, _ = fmt.Fprintln(w, "# Initializing DynamoDB Local with the following configuration:")
	}
	if lead := s.lead(); lead > 0 {
		_, _ = fmt.Fprintf(w, "# clock: %v ahead of the machine's\n", lead.Round(time.Second))
	}
	_, _ = fmt.Fprintf(w, "# ready: project %s, instance %s, data %s%s\n", c.Project, c.Instance, where, c.Dynamo.announced())
}

// dynamoDBURL returns the URL of the DynamoDB endpoint.
func (s *serving) dynamoDBURL() string { return s.url(s.dynamoDBAddr) }

// url returns the URL of an endpoint that speaks HTTP.
func (s *serving) url(addr net.Addr) string {
	scheme := "http"
	if s.tls != nil {
		scheme = "https"
	}
	return scheme + "://" + clientAddr(addr)
}

// clientAddr returns the address to dial for a listener; one on all interfaces is dialed on the
// loopback.
func clientAddr(a net.Addr) string {
	if tcp, ok := a.(*net.TCPAddr); ok && tcp.IP.IsUnspecified() {
		return net.JoinHostPort("127.0.0.1", fmt.Sprint(tcp.Port))
	}
	return a.String()
}
