package migrate_test

import (
	"context"
	"fmt"
	"io/fs"
	"log"
	"testing/fstest"

	"github.com/tabletop-emu/tabletop/emu"
	"github.com/tabletop-emu/tabletop/engine"
	"github.com/tabletop-emu/tabletop/fixtures"
	"github.com/tabletop-emu/tabletop/migrate"
	"github.com/tabletop-emu/tabletop/migrate/source"
)

// A source is loaded through an inferred mapping and read back through both endpoints. Any
// Bigtable works; here it is one in memory.
func ExampleVerify() {
	db, err := engine.Open(engine.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer db.Close()
	server, err := emu.New(emu.Options{DB: db})
	if err != nil {
		log.Fatal(err)
	}
	defer server.Close()

	export := fstest.MapFS{"users.json": {Data: []byte(`
{"Item":{"PK":{"S":"user#1"},"SK":{"S":"profile"},"name":{"S":"Ada"},"langs":{"SS":["en","fr"]}}}
{"Item":{"PK":{"S":"user#1"},"SK":{"S":"order#7"},"total":{"N":"12.50"}}}
`)}}
	source, err := source.OpenFS(export, "users.json", source.Options{})
	if err != nil {
		log.Fatal(err)
	}
	report, err := migrate.Verify(context.Background(), server.Conn(), migrate.OfSource(source), migrate.VerifyOptions{})
	if err != nil {
		log.Fatal(err)
	}
	for _, choice := range report.Tables[0].Choices {
		fmt.Println(choice.What+":", choice.Chosen)
	}
	fmt.Printf("%d items, %d rows, %d differences\n", report.Items, report.Rows, report.Differences)
	// Output:
	// key: PK (S), SK (S)
	// row key: {PK:s} {SK:s}
	// types: 3 attributes
	// families: a s.langs
	// timestamp: 2010-01-01T00:00:00.000Z
	// joiner: escaped('#')
	// 2 items, 2 rows, 0 differences
}

// A shipped fixture whose row keys begin with a time is linted against the design guides.
// Nothing is written.
func ExampleLint() {
	fixture, err := fs.Sub(fixtures.Folder(), "s6-anti-leading-time")
	if err != nil {
		log.Fatal(err)
	}
	report, err := migrate.Lint(context.Background(), migrate.OfFixture(fixture), migrate.LintOptions{})
	if err != nil {
		log.Fatal(err)
	}
	for _, finding := range report.Lint.Findings {
		fmt.Println(finding.Level, finding.Rule, finding.Name)
	}
	// Output:
	// error L03 key-starts-with-time
	// warn L11 granular-before-common
}
