package conformance

import (
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestGcloud runs gcloud, where it is installed, against the endpoint of --bigtable-rest:
// instances, clusters, app profiles, tables, backups and views.
func TestGcloud(t *testing.T) {
	t.Parallel()
	gcloud, err := exec.LookPath("gcloud")
	if err != nil {
		t.Skip("gcloud is not installed")
	}
	srv, err := serve("--bigtable", "127.0.0.1:0", "--dynamodb", "off", "--bigtable-rest", "127.0.0.1:0", "--project", "p")
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := srv.stop(); err != nil {
			t.Errorf("stopping the server: %v", err)
		}
	}()
	config := t.TempDir()
	view := filepath.Join(config, "view.yaml")
	if err := os.WriteFile(view, []byte("subsetView:\n  rowPrefixes:\n  - \"\"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	run := func(args ...string) (string, error) {
		cmd := exec.CommandContext(t.Context(), gcloud, append([]string{"bigtable"}, args...)...)
		cmd.Env = append(os.Environ(),
			"CLOUDSDK_CONFIG="+config, "CLOUDSDK_CORE_PROJECT=p", "CLOUDSDK_CORE_DISABLE_PROMPTS=1",
			"CLOUDSDK_AUTH_DISABLE_CREDENTIALS=true", "CLOUDSDK_COMPONENT_MANAGER_DISABLE_UPDATE_CHECK=1",
			"CLOUDSDK_API_ENDPOINT_OVERRIDES_BIGTABLEADMIN="+srv.exports["CLOUDSDK_API_ENDPOINT_OVERRIDES_BIGTABLEADMIN"])
		out, err := cmd.Output()
		if exit, ok := errors.AsType[*exec.ExitError](err); ok {
			return string(exit.Stderr), err
		}
		return string(out), err
	}
	for _, step := range []struct {
		args string // separated by spaces
		want string // in the JSON of the output
	}{
		{"instances create main-inst --display-name=Main --cluster-config=id=main-c1,zone=us-east1-b,nodes=1", ""},
		{"instances describe main-inst", `"displayName":"Main"`},
		{"instances update main-inst --display-name=Other", `"displayName":"Other"`},
		{"instances list", `"name":"projects/p/instances/main-inst"`},
		{"clusters create main-c2 --instance=main-inst --zone=us-east1-c --num-nodes=1", ""},
		{"clusters list --instances=main-inst", `"name":"projects/p/instances/main-inst/clusters/main-c2"`},
		{"clusters update main-c2 --instance=main-inst --num-nodes=2", ""},
		{"clusters describe main-c2 --instance=main-inst", `"serveNodes":2`},
		{"app-profiles create single --instance=main-inst --route-to=main-c1 --transactional-writes", `"allowTransactionalWrites":true`},
		{"app-profiles list --instance=main-inst", `/appProfiles/single"`},
		{"tables create orders --instance=main-inst --column-families=cf:maxage=10d,other --splits=b,c", ""},
		{"tables describe orders --instance=main-inst", `"maxAge":"864000s"`},
		{"tables update orders --instance=main-inst --deletion-protection", ""},
		{"tables update orders --instance=main-inst --no-deletion-protection", ""},
		{"tables list --instances=main-inst", `/tables/orders"`},
		{"authorized-views create part --table=orders --instance=main-inst --definition-file=VIEW", ""},
		{"authorized-views list --table=orders --instance=main-inst", `/authorizedViews/part"`},
		{"logical-views create every --instance=main-inst --query=SELECT~_key~FROM~orders", ""},
		{"logical-views describe every --instance=main-inst", "SELECT _key FROM orders"},
		{"backups create copy --instance=main-inst --cluster=main-c1 --table=orders --retention-period=7d", ""},
		{"backups list --instance=main-inst", `/backups/copy"`},
		{"tables restore --source=projects/p/instances/main-inst/clusters/main-c1/backups/copy --destination=again --destination-instance=main-inst", ""},
		{"tables list --instances=main-inst", `/tables/again"`},
		{"backups delete copy --instance=main-inst --cluster=main-c1", ""},
		{"logical-views delete every --instance=main-inst", ""},
		{"authorized-views delete part --table=orders --instance=main-inst", ""},
		{"tables delete orders --instance=main-inst", ""},
		{"tables undelete orders --instance=main-inst", ""},
		{"app-profiles delete single --instance=main-inst --force", ""},
		{"clusters delete main-c2 --instance=main-inst", ""},
		{"instances delete main-inst", ""},
	} {
		args := strings.Fields(strings.ReplaceAll(step.args, "VIEW", view))
		for i := range args {
			args[i] = strings.ReplaceAll(args[i], "~", " ")
		}
		out, err := run(append(args, "--format=json")...)
		if err != nil {
			t.Fatalf("gcloud bigtable %s: %v\n%s", step.args, err, out)
		}
		if step.want != "" && !strings.Contains(compact(out), step.want) {
			t.Errorf("gcloud bigtable %s: got %s, want %s in it", step.args, out, step.want)
		}
	}
	if out, err := run("instances", "describe", "missing"); err == nil || !strings.Contains(out, "NOT_FOUND") {
		t.Errorf("a missing instance: %v, %s", err, out)
	}
}

// compact returns JSON without the spaces between its tokens, and other text as it is.
func compact(text string) string {
	var v any
	if json.Unmarshal([]byte(text), &v) != nil {
		return text
	}
	out, err := json.Marshal(v)
	if err != nil {
		return text
	}
	return string(out)
}
