package ddbmodel

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"
)

// sizeOf returns the counted bytes of an item.
// https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/CapacityUnitCalculations.html
func sizeOf(item Item) int {
	size := 0
	for name, v := range item {
		size += len(name) + v.size()
	}
	return size
}

func (v Value) size() int {
	switch v.Type {
	case "S", "B":
		return len(v.Text)
	case "N":
		return numberSize(v.Text)
	case "NS":
		size := 0
		for _, m := range v.Set {
			size += numberSize(m)
		}
		return size
	case "SS", "BS":
		return len(strings.Join(v.Set, ""))
	case "L":
		size := 3
		for _, e := range v.List {
			size += 1 + e.size()
		}
		return size
	case "M":
		return 3 + len(v.Map) + sizeOf(v.Map)
	default: // BOOL, NULL
		return 1
	}
}

// numberSize counts one byte per two digits, from the first to the last digit that is not
// zero, plus one, and one more for a minus.
func numberSize(text string) int {
	digits, negative := strings.CutPrefix(text, "-")
	whole, fraction, _ := strings.Cut(digits, ".")
	size := 1
	if negative {
		size++
	}
	if fraction == "" {
		whole = strings.TrimRight(whole, "0")
	}
	if whole == "0" || whole == "" {
		whole = ""
		for strings.HasPrefix(fraction, "00") {
			fraction = fraction[2:]
		}
	}
	return size + (len(whole)+1)/2 + (len(fraction)+1)/2
}

// writeUnits returns the cost of changing one item to another.
func writeUnits(old, updated Item) float64 {
	return float64(max(1, (max(sizeOf(old), sizeOf(updated))+1023)/1024))
}

// entry returns the entry of an item in an index, or nil.
func (t *Table) entry(x *Index, item Item) Item {
	one := Table{Key: t.Key, items: []Item{item}}
	for _, entry := range one.Entries(x) {
		return entry
	}
	return nil
}

// written returns the ConsumedCapacity of a write, with all its parts.
func (t *Table) written(old, updated Item) map[string]any {
	table := writeUnits(old, updated)
	total := table
	answer := map[string]any{"TableName": t.Name, "Table": arm(table)}
	for _, x := range slices.Clone(t.Indexes) {
		was, is := t.entry(&x, old), t.entry(&x, updated)
		var units float64
		switch {
		case Text(was) == Text(is):
			continue
		case was != nil && is != nil && Text(only(was, x.Key)) != Text(only(is, x.Key)):
			units = writeUnits(was, nil) + writeUnits(nil, is)
		default:
			units = writeUnits(was, is)
		}
		total += units
		arms := "LocalSecondaryIndexes"
		if x.Global {
			arms = "GlobalSecondaryIndexes"
		}
		if answer[arms] == nil {
			answer[arms] = map[string]any{}
		}
		answer[arms].(map[string]any)[x.Name] = arm(units)
	}
	answer["CapacityUnits"] = double(total)
	return answer
}

func arm(units float64) map[string]any { return map[string]any{"CapacityUnits": double(units)} }

// double formats a number as the service does.
func double(units float64) json.RawMessage {
	return json.RawMessage(strconv.FormatFloat(units, 'f', 1, 64))
}
