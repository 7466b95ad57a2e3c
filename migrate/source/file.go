package source

import (
	"errors"
	"io"
	"path"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/tabletop-emu/tabletop/facade/attr"
)

// fileLayout is the recognized form of a file.
type fileLayout uint8

const (
	unknownLayout  fileLayout = iota
	itemLines                 // items one after the other
	itemArray                 // one array of items
	itemsMember               // {"Items": [item, …]}, the answer to a Scan or Query
	batchWrite                // {"Table": [{"PutRequest": …}, …], …}
	batchRequest              // {"RequestItems": {"Table": …}}
	workbenchModel            // NoSQL Workbench
	exportManifest            // manifest-summary.json of an export to S3
	recordLines               // change records one after the other
	recordArrays              // arrays of change records
	recordPages               // {"Records": [record, …]}, the answer of GetRecords, or an event of Lambda
)

// openFile recognizes one file by its content.
func openFile(t tree, name string, plain bool) (*Source, error) {
	in, err := t.open(name)
	if err != nil {
		return nil, err
	}
	if err := refuseHive(in); err != nil {
		in.close()
		return nil, err
	}
	recognized := recognize
	if plain {
		recognized = recognizePlain
	}
	found, s, err := recognized(in)
	in.close()
	if in.ion {
		if known, ok := errors.AsType[*Error](err); ok && known.Damage != Unsupported {
			found, s, err = itemLines, wrappedItem, nil // the reader of the first line reports the fault
		}
	}
	if err != nil {
		return nil, err
	}
	switch found {
	case itemLines:
		src := openJSONLines(t, name, s)
		if in.ion {
			src.Format = formatIon
		}
		return src, nil
	case itemArray, itemsMember:
		return openJSONItems(t, name, found, s), nil
	case batchWrite, batchRequest:
		return openBatchWrite(t, name, found)
	case workbenchModel:
		return openWorkbench(t, name)
	case exportManifest:
		return openExport(t, path.Dir(name))
	case recordLines, recordArrays, recordPages:
		return nil, recordsAlone(Position{File: in.label})
	case unknownLayout:
	}
	return nil, unknownInput(Position{File: in.label}, nil)
}

// recognize determines the form of a file from the first members of its first JSON value.
func recognize(in *input) (fileLayout, shape, error) {
	d := newDocument(in)
	tok, err := d.ReadToken()
	switch {
	case errors.Is(err, io.EOF) && in.packing != "":
		return unknownLayout, 0, Damaged(Unrecognized, Position{File: in.label}, nil, "the %s data holds no text", in.packing)
	case errors.Is(err, io.EOF):
		return unknownLayout, 0, Damaged(Unrecognized, Position{File: in.label}, nil, "the file is empty")
	case err != nil && !startsJSON(err):
		return unknownLayout, 0, unknownInput(Position{in.label, 1}, JSONCause(err))
	case err != nil:
		return unknownLayout, 0, d.failed(err)
	}
	kind := tok.Kind()
	if kind == '[' {
		if d.PeekKind() != '{' {
			return itemArray, plainItem, nil
		}
		if _, err := d.ReadToken(); err != nil {
			return unknownLayout, 0, d.failed(err)
		}
		inner, s, err := recognizeObject(d)
		if inner == recordLines {
			return recordArrays, s, err
		}
		return itemArray, s, err
	}
	if kind == '{' {
		return recognizeObject(d)
	}
	return unknownLayout, 0, nil
}

// unknownInput returns an error that lists the known forms.
func unknownInput(at Position, cause error) error {
	return Damaged(Unrecognized, at, cause,
		"not a known input: neither an export to S3, JSON lines, Ion text or a JSON array of items, the response of a Scan or Query, a BatchWriteItem request, a NoSQL Workbench model nor a .csv file, plain, gzip or zstd")
}

// startsJSON reports whether err, at the first token of a file, is an error of reading, or of
// truncated JSON.
func startsJSON(err error) bool {
	var syntactic *jsontext.SyntacticError
	return !errors.As(err, &syntactic) || errors.Is(err, io.ErrUnexpectedEOF)
}

// recognizeObject continues after the opening brace. It skips only scalar members, since others
// may be larger than memory. Any other object counts as an item, whose reader reports the
// fault: mostly it is plain JSON, without DynamoDB's types.
func recognizeObject(d *document) (fileLayout, shape, error) {
	for scalars := 0; ; scalars++ {
		if d.PeekKind() == '}' {
			if scalars > 0 {
				return itemLines, plainItem, nil
			}
			return unknownLayout, plainItem, nil
		}
		tok, err := d.ReadToken()
		if err != nil {
			return unknownLayout, 0, d.failed(err)
		}
		name := tok.String()
		switch d.PeekKind() {
		case '[':
			switch name {
			case "DataModel":
				return workbenchModel, 0, nil
			case "Items":
				return itemsMember, plainItem, nil
			case "AttributeDefinitions", "KeySchema":
				return unknownLayout, 0, schemaAsSource(d)
			case "Responses", "TransactItems":
				if err := ofTransaction(d, name); err != nil {
					return unknownLayout, 0, err
				}
				return batchWrite, putRequest, nil
			case "Records":
				if found, err := recognizeRecords(d); found == recordPages || err != nil {
					return found, 0, err
				}
			}
			if scalars > 0 { // a table never follows a scalar
				return itemLines, plainItem, nil
			}
			return batchWrite, putRequest, nil
		case '{':
			switch name {
			case "ModelMetadata":
				return workbenchModel, 0, nil
			case "Item":
				return itemLines, wrappedItem, nil
			}
			if name == "userIdentity" && scalars > 0 {
				if err := d.skip(); err != nil {
					return unknownLayout, 0, err
				}
				continue
			}
			if _, err := d.ReadToken(); err != nil {
				return unknownLayout, 0, d.failed(err)
			}
			first, err := d.ReadToken()
			if err != nil {
				return unknownLayout, 0, d.failed(err)
			}
			_, typed := attr.ParseType(first.String())
			_, pipeline := pipelineTags[first.String()]
			switch {
			case pipeline && first.Kind() == '"':
				return itemLines, pipelineItem, nil
			case typed && first.Kind() == '"':
				return itemLines, plainItem, nil
			case name == "Responses":
				return unknownLayout, 0, Damaged(Unsupported, Position{d.in.label, 1}, nil,
					"the file is a BatchGetItem response, which has only the requested items: scan the table, or extract the items (jq -c '.Responses[][]')")
			case name == "dynamodb":
				return recordLines, plainItem, nil
			case name == "PutRequest":
				return itemLines, putRequest, nil
			case name == "RequestItems":
				return batchRequest, putRequest, nil
			case name == "Metadata", name == "Keys", name == "NewImage", name == "OldImage":
				return unknownLayout, 0, Damaged(Unsupported, Position{d.in.label, 1}, nil,
					"the file is part of an incremental export: open the folder that holds both this export and the full export before it")
			case name == "Table", name == "TableDescription":
				return unknownLayout, 0, schemaAsSource(d)
			}
			return itemLines, plainItem, nil // the reader of the value reports the fault
		case '"', '0', 't', 'f', 'n':
			if name == "exportArn" || name == "manifestFilesS3Key" {
				return exportManifest, 0, nil
			}
			value, err := d.ReadToken()
			if err != nil {
				return unknownLayout, 0, d.failed(err)
			}
			if name == "format" && strings.HasPrefix(value.String(), "onetable:") {
				return unknownLayout, 0, Damaged(Unsupported, Position{d.in.label, 1}, nil,
					"the file is a schema or a dump of OneTable, whose items have no type tags: extract the items, one per line, and read them with --plain and --key")
			}
		case 0, '}', ']':
			_, err := d.ReadToken() // the error of PeekKind
			return unknownLayout, 0, d.failed(err)
		}
	}
}

// recognizeRecords reports whether the array named Records holds change records, or the requests of
// BatchWriteItem to a table of that name. It rejects Kinesis records.
func recognizeRecords(d *document) (fileLayout, error) {
	if _, err := d.ReadToken(); err != nil {
		return unknownLayout, d.failed(err)
	}
	if d.PeekKind() != '{' {
		return recordPages, nil // a page without records
	}
	if _, err := d.ReadToken(); err != nil {
		return unknownLayout, d.failed(err)
	}
	scalars := false
	for d.PeekKind() == '"' {
		name, err := d.ReadToken()
		if err != nil {
			return unknownLayout, d.failed(err)
		}
		switch what, next := name.String(), d.PeekKind(); {
		case what == "Data" && next == '"', what == "kinesis" && next == '{':
			return unknownLayout, recordsOfKinesis(d)
		case what == "dynamodb" && next == '{':
			return recordPages, nil
		case next != '{' && next != '[':
			scalars = true
		case !scalars:
			return unknownLayout, nil
		}
		if err := d.skip(); err != nil {
			return unknownLayout, err
		}
	}
	return unknownLayout, nil
}

// ofTransaction rejects transactions and answers with items, whose members are called like a
// table of a BatchWriteItem request.
func ofTransaction(d *document, member string) error {
	for _, kind := range []jsontext.Kind{'[', '{'} {
		if d.PeekKind() != kind {
			return nil
		}
		if _, err := d.ReadToken(); err != nil {
			return d.failed(err)
		}
	}
	first, err := d.ReadToken()
	if err != nil {
		return d.failed(err)
	}
	switch first.String() {
	case "Item", "TableName", "Error":
		return Damaged(Unsupported, Position{d.in.label, 1}, nil,
			"the file is a TransactGetItems or BatchExecuteStatement response, which has only the requested items: scan the table, or extract the items (jq -c '.Responses[].Item')")
	case "Put", "Update", "Delete", "ConditionCheck":
		return Damaged(Unsupported, Position{d.in.label, 1}, nil,
			"the file is a TransactWriteItems request: extract the items (jq -c '.%s[].Put.Item'), if it has only puts", member)
	}
	return nil
}

// schemaAsSource rejects a table description, even before items; d is inside it.
func schemaAsSource(d *document) error {
	for d.StackDepth() > 0 {
		if _, err := d.ReadToken(); err != nil {
			break
		}
		d.advance(max(d.done, d.InputOffset()))
	}
	if tok, err := d.ReadToken(); err == nil && tok.Kind() == '{' {
		if tok, err = d.ReadToken(); err == nil && tok.Kind() == '"' && tok.String() != "TimeToLiveDescription" {
			return Damaged(Unsupported, Position{File: d.in.label}, nil,
				"the file has a table description before the items, as dyno writes it: give the first line as the table schema (--table-schema), and the others as the source (tail -n +2)")
		}
	}
	return Damaged(Unrecognized, Position{File: d.in.label}, nil, "the file is a table description, not data: give it as the table schema of a source")
}
