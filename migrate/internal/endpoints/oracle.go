package endpoints

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"

	"github.com/tabletop-emu/tabletop/facade"
	"github.com/tabletop-emu/tabletop/facade/attr"
	"github.com/tabletop-emu/tabletop/fixtures"
	"github.com/tabletop-emu/tabletop/internal/layout"
	"github.com/tabletop-emu/tabletop/internal/layout/mapfile"
	"github.com/tabletop-emu/tabletop/internal/phrase"
	"github.com/tabletop-emu/tabletop/migrate/internal/table"
	"github.com/tabletop-emu/tabletop/migrate/source"
)

// oracle answers as DynamoDB itself would: it is a DynamoDB endpoint that holds the items of a
// table without their mapping. It has a separate instance, which is emptied when it is closed.
type oracle struct {
	*Pair
	server *facade.Server
	b      *table.Bigtable // its own client
}

// oracleInstance is the suffix of the oracle's instance.
const oracleInstance = "-oracle"

// openOracle fills an oracle with the items of a job. why is the reason if it cannot.
func openOracle(ctx context.Context, r *table.Run, j *table.Job) (o *oracle, why string, err error) {
	switch {
	case !source.TableName().MatchString(j.Report.Name):
		return nil, fmt.Sprintf("%q is not a valid name for a DynamoDB table", j.Report.Name), nil
	case j.Report.Items > int64(j.Options.OracleItems):
		return nil, fmt.Sprintf("%s are more than %d", phrase.Counted(j.Report.Items, "item"), j.Options.OracleItems), nil
	}
	instance := j.Options.Instance + oracleInstance
	own := j.Options
	own.Instance = instance
	o = &oracle{b: table.NewBigtable(r.Conn, own)}
	switch tables, err := o.b.Tables(ctx); {
	case err != nil:
		return nil, "", fmt.Errorf("reading instance %s of the oracle: %w", instance, err)
	case len(tables) > 0:
		return nil, "", fmt.Errorf("the oracle's instance %s already has tables (%s): verify on a separate Bigtable, or in another instance", instance, phrase.Clip(strings.Join(tables, ", ")))
	}
	o.server, err = facade.New(ctx, facade.Options{
		Conn: r.Conn, Project: j.Options.Project, Instance: instance, Now: j.Options.Now,
		NoAuth: true, // clients here do not sign
	})
	if err != nil {
		return nil, "", fmt.Errorf("opening the oracle: %w", err)
	}
	o.Pair = &Pair{J: j, client: &http.Client{Transport: o.server.RoundTripper()}, report: r.Report}
	err = o.fill(ctx)
	var refused *Refusal
	if errors.As(err, &refused) { // not items of DynamoDB, such as those of a hand-written source
		return nil, "DynamoDB would not have these items: " + refused.Error(), o.close(ctx)
	}
	if err != nil {
		return nil, "", errors.Join(err, o.close(ctx))
	}
	return o, "", nil
}

// close deletes the contents of the oracle.
func (o *oracle) close(ctx context.Context) error {
	return errors.Join(o.server.Close(), o.empty(context.WithoutCancel(ctx)))
}

// empty deletes all tables of the instance.
func (o *oracle) empty(ctx context.Context) error {
	tables, err := o.b.Tables(ctx)
	if err != nil {
		return err
	}
	for _, id := range tables {
		if err := o.b.DropTable(ctx, id); err != nil {
			return fmt.Errorf("emptying the oracle: %w", err)
		}
	}
	return nil
}

// fill creates the table and puts the items, without the losses that the mapping accepts, since
// no endpoint can return these.
func (o *oracle) fill(ctx context.Context) error {
	body, err := json.Marshal(createTable(o.J.Mapping, o.J.Report.Name), json.Deterministic(true))
	if err != nil {
		return fmt.Errorf("describing table %s: %w", o.J.Report.Name, err)
	}
	if _, err := o.Call(ctx, "CreateTable", body); err != nil {
		return err
	}
	return o.J.Each(ctx, "asking", func(p table.Placed) error {
		_, err := o.Call(ctx, "PutItem", fmt.Appendf(nil, `{"TableName":%q,"Item":%s}`, o.J.Report.Name, attr.AppendItemJSON(nil, p.Back)))
		return err
	})
}

// refill creates the table again.
func (o *oracle) refill(ctx context.Context) error {
	if _, err := o.Call(ctx, "DeleteTable", fmt.Appendf(nil, `{"TableName":%q}`, o.J.Report.Name)); err != nil {
		return err
	}
	return o.fill(ctx)
}

// createTable returns the request that creates the DynamoDB table of a mapping, with its
// indexes.
func createTable(m *layout.Mapping, name string) map[string]any {
	types := map[string]attr.Type{}
	schema := func(k attr.KeySchema) (keys []map[string]string) {
		for i, a := range k.Attrs() {
			types[a.Name] = cmp.Or(types[a.Name], a.Type)
			keys = append(keys, map[string]string{"AttributeName": a.Name, "KeyType": [2]string{"HASH", "RANGE"}[i]})
		}
		return keys
	}
	table := map[string]any{"TableName": name, "BillingMode": "PAY_PER_REQUEST", "KeySchema": schema(m.Key())}
	if spec := m.Spec(); spec != nil {
		var global, local []any
		for _, g := range spec.Source.GSIs {
			index := map[string]any{"IndexName": g.Name, "KeySchema": schema(g.Key)}
			switch {
			case len(g.Include) > 0:
				index["Projection"] = map[string]any{"ProjectionType": "INCLUDE", "NonKeyAttributes": g.Include}
			case g.Projection == mapfile.ProjectKeysOnly:
				index["Projection"] = map[string]any{"ProjectionType": "KEYS_ONLY"}
			default:
				index["Projection"] = map[string]any{"ProjectionType": "ALL"}
			}
			if g.Key.Hash.Name == m.Key().Hash.Name && m.Key().Range.Name != "" && g.Key.Range.Name != "" {
				local = append(local, index)
			} else {
				global = append(global, index)
			}
			for _, k := range g.Key.Attrs() {
				types[k.Name] = cmp.Or(types[k.Name], spec.Types()[k.Name].Type)
			}
		}
		if global != nil {
			table["GlobalSecondaryIndexes"] = global
		}
		if local != nil {
			table["LocalSecondaryIndexes"] = local
		}
	}
	var definitions []map[string]string
	for name, t := range types {
		definitions = append(definitions, map[string]string{"AttributeName": name, "AttributeType": t.String()})
	}
	table["AttributeDefinitions"] = definitions
	return table
}

// ask compares the oracle's answer with the expectation of a pattern. The order of a scan
// does not count, since the oracle's partitions have another order. A scan with a limit, or
// without an expected answer, is not compared.
func (o *oracle) ask(ctx context.Context, r *patternRun, read *fixtures.Request, after string) error {
	scan := read.Op == "Scan"
	if _, limited := read.Request["Limit"]; scan && (limited || !r.known) {
		return nil
	}
	items, err := o.DynamoDB(ctx, read, r.p.Expect.Order == "merged")
	wrong := refusedAnswer(err)
	switch {
	case wrong != nil:
	case err != nil:
		return err
	case scan:
		p := r.p
		p.Expect.Order = "any"
		wrong = r.differs(p, r.want, slices.DeleteFunc(items, r.J.Failed))
	default:
		wrong = r.compare(items)
	}
	if wrong != nil {
		r.fail("oracle"+after, r.J.Report.Target, wrong)
	}
	return nil
}

// asks runs the DynamoDB part of a pattern.
func (o *oracle) asks(ctx context.Context, r *patternRun) error {
	if !r.p.Writes() {
		return o.ask(ctx, r, r.p.DynamoDB, "")
	}
	_, err := o.DynamoDB(ctx, r.p.DynamoDB, false)
	if wrong := refusedAnswer(err); wrong != nil {
		r.fail("oracle's write", r.J.Report.Target, wrong)
	} else if err != nil {
		return err
	}
	if err := o.ask(ctx, r, r.p.DynamoDB.Then, " after its write"); err != nil {
		return err
	}
	return o.refill(ctx)
}
