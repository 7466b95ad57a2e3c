package iontext

import (
	"errors"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/tabletop-emu/tabletop/facade/attr"
)

// everyType is an item with all types, and with characters that need escapes.
const everyType = `{"b":{"B":"AAECAw=="},"bs":{"BS":["","AA=="]},"l":{"L":[{"N":"-1.5"},{"NULL":true},{"L":[]}]},"m":{"M":{"a b":{"BOOL":false},"null":{"S":""},"it's":{"M":{}},"$x":{"S":"x"}}},` +
	`"n":{"N":"100000000000000000000"},"ns":{"NS":["-2","0.001"]},"s":{"S":"\"\\\n\r\t\u0001é😀'"},"ss":{"SS":["a","b"]},"t":{"BOOL":true}}`

func item(tb testing.TB, text string) attr.Item {
	tb.Helper()
	i, err := attr.UnmarshalItem([]byte(text))
	if err != nil {
		tb.Fatal(err)
	}
	return i
}

func TestAppendLine(t *testing.T) {
	t.Parallel()
	const want = `$ion_1_0 {Item:{b:{{AAECAw==}},bs:$dynamodb_BS::[{{}},{{AA==}}],l:[-1.5,null,[]],m:{'$x':"x",'a b':false,'it\'s':{},'null':""},` +
		`n:100000000000000000000.,ns:$dynamodb_NS::[-2.,0.001],s:"\"\\\n\r\t\x01é😀'",ss:$dynamodb_SS::["a","b"],t:true},Keys:{t:true}}`
	got := string(AppendLine(nil, Member{"Item", item(t, everyType)}, Member{"Keys", item(t, `{"t":{"BOOL":true}}`)}))
	if got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	back, err := AppendJSON(nil, []byte(got))
	if err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(string(back), `{"Item":`) || !strings.HasSuffix(string(back), `,"Keys":{"t":{"BOOL":true}}}`) {
		t.Errorf("read back as %s", back)
	}
}

func TestAppendJSON(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		`{Item:{}}`: `{"Item":{}}`,
		" $ion_1_0\t{ 'Item' : { \"a\" : 1 , b : 2.50 , } , } ": `{"Item":{"a":{"N":"1"},"b":{"N":"2.50"}}}`,
		`{Item:{a:1d3,b:-12.5E-2,c:2e0,d:5.}}`:                  `{"Item":{"a":{"N":"1e3"},"b":{"N":"-12.5E-2"},"c":{"N":"2e0"},"d":{"N":"5."}}}`,
		`{Item:{a:"\x41\u00e9\U0001F600\ud83d\ude00\0\?\/"}}`:   `{"Item":{"a":{"S":"Aé😀😀\u0000?/"}}}`,
		`{Item:{a:{{ AA == }}}}`:                                `{"Item":{"a":{"B":"AA=="}}}`,
		`{Item:{a:'$dynamodb_SS' :: ["x"]}}`:                    `{"Item":{"a":{"SS":["x"]}}}`,
		`{Item:{a:[{b:null},true]}}`:                            `{"Item":{"a":{"L":[{"M":{"b":{"NULL":true}}},{"BOOL":true}]}}}`,
		`{Item:{a:$dynamodb_NS::[]}}`:                           `{"Item":{"a":{"NS":[]}}}`, // the reader of the JSON rejects it
	} {
		got, err := AppendJSON(nil, []byte(text))
		if err != nil || string(got) != want {
			t.Errorf("%s:\n got %s, error %v\nwant %s", text, got, err, want)
		}
	}
}

func TestAppendJSON_Refused(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		``:                                   "byte 1: the text ends, want a structure",
		"\xe0\x01\x00\xea":                   "want a structure",
		`{Item:1}`:                           `byte 7: found "1}", want a structure`,
		`{Item:{a:1}} x`:                     `byte 14: found "x", want the end of the line`,
		`{Item:{a:1`:                         "the text ends",
		`{Item:{a:2024-01-01T}}`:             "want a decimal number",
		`{Item:{a:0x1F}}`:                    "want a decimal number",
		`{Item:{a:1.2.3}}`:                   "want a decimal number",
		`{Item:{a:-}}`:                       "want a decimal number",
		`{Item:{a:"x`:                        `the text ends, want '"'`,
		"{Item:{a:\"x\n\"}}":                 `want '"'`,
		`{Item:{a:"\q"}}`:                    "want a character after a backslash",
		`{Item:{a:"\ud83d"}}`:                "want a character after a backslash",
		`{Item:{a:"\U00110000"}}`:            "want a character after a backslash",
		"{Item:{a:\"\xff\"}}":                "not UTF-8",
		`{Item:{a:'''x'''}}`:                 "strings in three quotes are not supported",
		`{Item:{a:{{"clob"}}}}`:              "not base64",
		`{Item:{a:{{AA`:                      "want a blob",
		`{Item:{a:symbol}}`:                  `the symbol "symbol" is not valid in an item`,
		`{Item:{a:'null'}}`:                  `the symbol "null" is not valid in an item`,
		`{Item:{a:null.string}}`:             "want a comma",
		`{Item:{a:$dynamodb_XS::[]}}`:        `the annotation "$dynamodb_XS" does not denote a set`,
		`{Item:{a:$dynamodb_SS::[1]}}`:       "want a string",
		`{Item:{a:$dynamodb_BS::["x"]}}`:     "want a blob",
		`{Item:{a:(1 2)}}`:                   "want a value",
		`{Item:{$10:1}}`:                     "$10 needs a symbol table",
		`{Item:{a::1}}`:                      "want a colon and a value",
		`{Item:{a 1}}`:                       "want a colon",
		`{Item:{a:[1 2]}}`:                   "want a comma or ']'",
		strings.Repeat("[", 1<<16):           "want a structure",
		`{I:{a:` + strings.Repeat("[", 99):   "nested deeper",
		`{I:{a:` + strings.Repeat("{a:", 99): "nested deeper",
	} {
		got, err := AppendJSON(nil, []byte(text))
		if !errors.Is(err, ErrSyntax) || !strings.Contains(err.Error(), want) || len(got) > 0 {
			t.Errorf("%.60q: %q, error %v, want %q", text, got, err, want)
		}
	}
}

// Accepted input becomes JSON, and an item in it survives a round trip.
func FuzzAppendJSON(f *testing.F) {
	f.Add(string(AppendLine(nil, Member{"Item", item(f, everyType)})))
	f.Add(`{Item:{a:"\x41\u00e9\U0001F600\ud83d\ude00\0",b:{{AA ==}},c:1d3,'x y':$dynamodb_NS::[1,2.]}}`)
	f.Fuzz(func(t *testing.T, text string) {
		got, err := AppendJSON([]byte("before"), []byte(text))
		if err != nil {
			if !errors.Is(err, ErrSyntax) || string(got) != "before" {
				t.Errorf("%q, error %v", got, err)
			}
			return
		}
		line := jsontext.Value(got[len("before"):])
		if !line.IsValid(jsontext.AllowDuplicateNames(true)) {
			t.Fatalf("no JSON: %s", line)
		}
		body, ok := strings.CutPrefix(string(line), `{"Item":`)
		if !ok {
			return
		}
		read, err := attr.UnmarshalItem([]byte(strings.TrimSuffix(body, "}")))
		if err != nil {
			return
		}
		again, err := AppendJSON(nil, AppendLine(nil, Member{"Item", read}))
		if err != nil {
			t.Fatal(err)
		}
		back, err := attr.UnmarshalItem(again[len(`{"Item":`) : len(again)-1])
		if err != nil || !attr.EqualItems(read, back) {
			t.Errorf("read as %v, then as %v, error %v", read, back, err)
		}
	})
}
