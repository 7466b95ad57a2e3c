package source

import "errors"

// openBatchWrite opens the request of a BatchWriteItem call, or only its RequestItems as the
// CLI takes it: put requests by table.
func openBatchWrite(t tree, name string, found fileLayout) (*Source, error) {
	src := &Source{Format: "batch-write"}
	err := readBatchWrite(t, name, found, func(d *document, table string) error {
		declared := int64(0)
		err := d.array(func() error {
			declared++
			return d.skip()
		})
		src.Tables = append(src.Tables, &Table{
			Name:     table,
			Declared: declared,
			entries: func(yield func(Entry, error) bool) {
				err := readBatchWrite(t, name, found, func(d *document, other string) error {
					if other != table {
						return d.skip()
					}
					return d.array(func() error { return d.yieldEntry(putRequest, yield) })
				})
				if err != nil && !errors.Is(err, errStopped) {
					yield(Entry{}, err)
				}
			},
		})
		return err
	})
	return src, err
}

// readBatchWrite calls table at the request list of each table.
func readBatchWrite(t tree, name string, found fileLayout, table func(d *document, name string) error) error {
	in, err := t.open(name)
	if err != nil {
		return err
	}
	defer in.close()
	d := newDocument(in)
	tables := func() error { return d.object(func(name string) error { return table(d, name) }) }
	if found == batchRequest {
		err = d.object(func(name string) error {
			if name == "RequestItems" {
				return tables()
			}
			return d.skip()
		})
	} else {
		err = tables()
	}
	if err != nil {
		return err
	}
	return d.end()
}
