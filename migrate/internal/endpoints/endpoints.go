package endpoints

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"google.golang.org/grpc"

	"github.com/tabletop-emu/tabletop/facade"
	"github.com/tabletop-emu/tabletop/facade/attr"
	"github.com/tabletop-emu/tabletop/facade/mapping"
	"github.com/tabletop-emu/tabletop/fixtures"
	"github.com/tabletop-emu/tabletop/internal/extsort"
	"github.com/tabletop-emu/tabletop/internal/layout"
	"github.com/tabletop-emu/tabletop/internal/phrase"
	"github.com/tabletop-emu/tabletop/migrate/internal/compare"
	"github.com/tabletop-emu/tabletop/migrate/internal/load"
	"github.com/tabletop-emu/tabletop/migrate/internal/table"
	"github.com/tabletop-emu/tabletop/migrate/report"
	"github.com/tabletop-emu/tabletop/migrate/source"
)

// Pair runs access patterns through the DynamoDB and the Bigtable endpoint of a table.
type Pair struct {
	b      *table.Bigtable
	J      *table.Job
	client *http.Client
	report *report.Report
	oracle *oracle // or nil
}

// Open returns a Pair that sends DynamoDB requests to the server, and native reads to the
// table of the job. It adds failures to r.
func Open(b *table.Bigtable, server *facade.Server, j *table.Job, r *report.Report) *Pair {
	return &Pair{b: b, J: j, client: &http.Client{Transport: server.RoundTripper()}, report: r}
}

// restore empties the tables of the job, and loads them again.
func (d *Pair) restore(ctx context.Context) error {
	tables := []string{d.J.Report.Target}
	for _, x := range d.J.Indexes {
		tables = append(tables, x.TargetTable())
	}
	for _, id := range tables {
		err := d.b.EmptyTable(ctx, id)
		if err != nil {
			return err
		}
	}
	return load.Afresh(ctx, d.b, d.J)
}

// Refusal is an error that the DynamoDB endpoint returned.
type Refusal struct {
	Status int
	Body   string
}

func (r *Refusal) Error() string { return fmt.Sprintf("HTTP %d: %s", r.Status, phrase.Clip(r.Body)) }

// Code returns the name of the error, such as ValidationException.
func (r *Refusal) Code() string {
	var body struct {
		Type string `json:"__type"`
	}
	if err := json.Unmarshal([]byte(r.Body), &body); err != nil {
		return ""
	}
	return body.Type[strings.LastIndexByte(body.Type, '#')+1:]
}

// maxAnswerBytes bounds one answer of the DynamoDB endpoint. BatchGetItem returns up to 16 MB,
// which can be several times that in JSON.
const maxAnswerBytes = 256 << 20

// DynamoDB sends one or more requests and returns the items of all pages. merged reports
// whether it sorted the items of several requests.
func (d *Pair) DynamoDB(ctx context.Context, q *fixtures.Request, merged bool) ([]attr.Item, error) {
	var items []attr.Item
	for _, one := range q.Requests() {
		err := d.Pages(ctx, one, func(page []attr.Item) error {
			items = append(items, page...)
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	if merged && len(q.Each) > 0 {
		name, _ := q.Request["IndexName"].(string)
		d.merge(items, func(x Index) bool { return x.Name == name }, q.Request["ScanIndexForward"] == false)
	}
	return items, nil
}

// Pages sends a request and fetches all its pages, unless the request sets a Limit. The
// error is a *Refusal if the endpoint answers with an error.
func (d *Pair) Pages(ctx context.Context, q *fixtures.Request, yield func([]attr.Item) error) error {
	body := maps.Clone(q.Request)
	if body == nil {
		body = map[string]any{}
	}
	if _, ok := body["TableName"]; !ok && !strings.HasPrefix(q.Op, "Batch") && !strings.HasPrefix(q.Op, "Transact") {
		body["TableName"] = d.J.Report.Name
	}
	for {
		text, err := json.Marshal(body, json.Deterministic(true))
		if err != nil {
			return fmt.Errorf("encoding the request of %s: %w", q.Op, err)
		}
		answer, err := d.Call(ctx, q.Op, text)
		if err != nil {
			return err
		}
		page, last, err := answerItems(answer)
		if err != nil {
			return fmt.Errorf("response of %s: %w", q.Op, err)
		}
		if err := yield(page); err != nil {
			return err
		}
		if _, limited := q.Request["Limit"]; limited || len(last) == 0 {
			return nil
		}
		body["ExclusiveStartKey"] = last
	}
}

// Call sends a request to the DynamoDB endpoint. The error is a *Refusal if the endpoint
// responds with an error.
func (d *Pair) Call(ctx context.Context, op string, body []byte) ([]byte, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://dynamodb.local/", bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Content-Type", "application/x-amz-json-1.0")
	req.Header.Set("X-Amz-Target", "DynamoDB_20120810."+op)
	resp, err := d.client.Do(req)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", op, err)
	}
	defer func() { _ = resp.Body.Close() }() // in memory
	answer, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswerBytes))
	if err != nil {
		return nil, fmt.Errorf("response of %s: %w", op, err)
	}
	if resp.StatusCode != http.StatusOK {
		return nil, &Refusal{resp.StatusCode, string(answer)}
	}
	return answer, nil
}

// answerItems extracts the items from an answer of any read operation.
func answerItems(answer []byte) (items []attr.Item, last jsontext.Value, err error) {
	var a struct {
		Item             jsontext.Value
		Items            []jsontext.Value
		Responses        jsontext.Value
		LastEvaluatedKey jsontext.Value
	}
	if err := json.Unmarshal(answer, &a); err != nil {
		return nil, nil, err
	}
	texts := a.Items
	if a.Item != nil {
		texts = append(texts, a.Item)
	}
	kind := a.Responses.Kind()
	if kind == '{' { // BatchGetItem
		var tables map[string][]jsontext.Value
		if err := json.Unmarshal(a.Responses, &tables); err != nil {
			return nil, nil, err
		}
		for _, list := range tables {
			texts = append(texts, list...)
		}
	}
	if kind == '[' { // TransactGetItems
		var list []struct{ Item jsontext.Value }
		if err := json.Unmarshal(a.Responses, &list); err != nil {
			return nil, nil, err
		}
		for _, one := range list {
			if one.Item != nil {
				texts = append(texts, one.Item)
			}
		}
	}
	for _, text := range texts {
		item, err := attr.UnmarshalItem(text)
		if err != nil {
			return nil, nil, err
		}
		items = append(items, item)
	}
	return items, a.LastEvaluatedKey, nil
}

// compareScan scans the table through the DynamoDB endpoint: the items must be those of the
// source. If they differ, it reads each item by its key.
func (d *Pair) compareScan(ctx context.Context) (string, error) {
	var got extsort.Bag
	done := d.J.Timed("scanning through the DynamoDB endpoint")
	err := d.Pages(ctx, &fixtures.Request{Op: "Scan", Request: map[string]any{"ConsistentRead": true}}, func(page []attr.Item) error {
		for _, item := range page {
			got.AddItem(item)
		}
		return nil
	})
	done(got.Count)
	detail := phrase.Counted(got.Count, "item")
	fail := func(f report.Failure) {
		f.Kind, f.Pattern, f.Table = report.PatternDiffers, "scan", d.J.Report.Target
		d.report.Fail(f)
	}
	var refused *Refusal
	switch {
	case errors.As(err, &refused):
		fail(report.Failure{Want: phrase.Counted(d.J.Wanted.Items.Count, "item"), Got: refused.Error(), Detail: "Scan through the DynamoDB endpoint is refused"})
		return detail, nil
	case err != nil:
		return "", err
	case got == d.J.Wanted.Items:
		return detail, nil
	}
	before := d.report.Differences
	layout := table.RowLayout{J: d.J}
	err = d.J.Each(ctx, "comparing", func(p table.Placed) error {
		key := d.J.KeyJSON(p.Entry.Item)
		of := func(f report.Failure) report.Failure {
			at := report.InRow(d.J.Report.Target, p.Base.Row)
			at.Column, at.Want, at.Got, at.Detail = f.Column, f.Want, f.Got, f.Detail
			return layout.Owned(at, table.Owner{Rule: p.Base.Rule, Item: key})
		}
		text := fmt.Sprintf(`{"TableName":%q,"ConsistentRead":true,"Key":%s}`, d.J.Report.Name, key)
		answer, err := d.Call(ctx, "GetItem", []byte(text))
		var refused *Refusal
		if errors.As(err, &refused) {
			fail(of(report.Failure{Want: "the item", Got: refused.Error(), Detail: "GetItem through the DynamoDB endpoint is refused"}))
			return nil
		}
		if err != nil {
			return err
		}
		items, _, err := answerItems(answer)
		if err != nil {
			return err
		}
		if len(items) == 0 {
			fail(of(report.Failure{Want: phrase.Clip(itemText(p.Back))}))
			return nil
		}
		compare.DiffItems(p.Back, items[0], func(f report.Failure) { fail(of(f)) })
		return nil
	})
	if err == nil && d.report.Differences == before {
		fail(report.Failure{Want: phrase.Counted(d.J.Wanted.Items.Count, "item"), Got: detail, Detail: "Scan through the DynamoDB endpoint returns different items from GetItem"})
	}
	return detail, err
}

// unservedJob returns why the DynamoDB endpoint cannot serve the job's table; "" if it can.
func unservedJob(j *table.Job) string {
	if !source.TableName().MatchString(j.Report.Name) {
		return fmt.Sprintf("%q is not a valid name for a DynamoDB table", j.Report.Name)
	}
	return Unserved(j.Mapping)
}

// Unserved returns why the DynamoDB endpoint cannot serve a table with that mapping, or
// "" if it can.
func Unserved(m *layout.Mapping) string {
	if spec := m.Spec(); spec != nil && spec.Compat != "" {
		return "the layout " + spec.Compat + " does not return items unchanged, so the DynamoDB endpoint does not serve it"
	}
	return ""
}

// NewServer returns a DynamoDB endpoint with the tables of all jobs that it can serve.
func NewServer(ctx context.Context, conn grpc.ClientConnInterface, o table.Options, jobs ...*table.Job) (*facade.Server, error) {
	fo := facade.Options{
		Conn: conn, Project: o.Project, Instance: o.Instance, Now: o.Now,
		NoAuth: true, // clients here do not sign
	}
	for _, j := range jobs {
		if unservedJob(j) == "" {
			fo.Mappings = append(fo.Mappings, (*mapping.Mapping)(j.Mapping))
		}
	}
	server, err := facade.New(ctx, fo)
	if err != nil {
		return nil, fmt.Errorf("opening the DynamoDB endpoint: %w", err)
	}
	return server, nil
}
