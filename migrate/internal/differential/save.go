package differential

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/go-json-experiment/json"
	"github.com/goccy/go-yaml"

	"github.com/tabletop-emu/tabletop/facade/attr"
	"github.com/tabletop-emu/tabletop/fixtures"
	"github.com/tabletop-emu/tabletop/internal/layout/mapfile"
)

// regressionItems is the source of a saved fixture.
const regressionItems = "items.jsonl"

// saveRegression writes failing items and their mapping as a fixture directory below dir.
// Verify runs it through the same differential check.
func saveRegression(dir, name string, spec *mapfile.Spec, items []attr.Item, requests []fixtures.Exchange) (string, error) {
	dir = filepath.Join(dir, name)
	files := map[string][]byte{}
	var err error
	if files[fixtures.MappingFile], err = spec.YAML(); err != nil {
		return "", fmt.Errorf("writing the mapping: %w", err)
	}
	for file, set := range spec.Descriptors {
		files[filepath.FromSlash(file)] = set
	}
	files[fixtures.FixtureFile], err = yaml.Marshal(yaml.MapSlice{
		{Key: "title", Value: "items that a differential run found"},
		{Key: "name", Value: name},
		{Key: "source", Value: regressionItems},
		{Key: "checks", Value: yaml.MapSlice{{Key: "differential", Value: true}}},
	})
	if err != nil {
		return "", fmt.Errorf("writing %s: %w", fixtures.FixtureFile, err)
	}
	for _, item := range items {
		files[regressionItems] = fmt.Appendf(files[regressionItems], "{\"Item\":%s}\n", attr.AppendItemJSON(nil, item))
	}
	for _, x := range requests {
		line, err := json.Marshal(x, json.OmitZeroStructFields(true))
		if err != nil {
			return "", fmt.Errorf("writing %s: %w", fixtures.RequestsFile, err)
		}
		files[fixtures.RequestsFile] = append(append(files[fixtures.RequestsFile], line...), '\n')
	}
	for file, text := range files {
		file = filepath.Join(dir, file)
		if err := os.MkdirAll(filepath.Dir(file), 0o777); err != nil {
			return "", err
		}
		if err := os.WriteFile(file, text, 0o666); err != nil {
			return "", err
		}
	}
	return dir, nil
}
