package console

import (
	"embed"
	"html"
	"io"
	"io/fs"
	"net/http"
	"strings"

	"github.com/tabletop-emu/tabletop/facade/mapping"
)

//go:embed static
var embedded embed.FS

// Files returns the files of the pages, with their names below /static/.
func Files() fs.FS {
	sub, err := fs.Sub(embedded, "static")
	if err != nil {
		panic(err) // the folder is embedded
	}
	return sub
}

// pages are the paths that the scripts render; page.html is the file for all of them.
var pages = []string{
	"/t/{instance}/{table}", "/t/{instance}/{table}/rows", "/v/{instance}/{view}", "/d/{table}", "/requests", "/lab",
	"/keys/{instance}/{table}", "/history/{table}", "/history/{instance}/{table}", "/query", "/streams", "/migration",
}

// Index serves the page for any path.
func Index(w http.ResponseWriter, r *http.Request) {
	http.ServeFileFS(w, r, Files(), "page.html")
}

// Missing serves the page for an unknown path.
func Missing(w http.ResponseWriter) { write(w, http.StatusNotFound, page()) }

func page() string {
	text, err := fs.ReadFile(Files(), "page.html")
	if err != nil {
		panic(err) // the file is embedded
	}
	return string(text)
}

func write(w http.ResponseWriter, code int, page string) {
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.WriteHeader(code)
	_, _ = io.WriteString(w, page) // the client may have left
}

// Document returns the title and the HTML of a document, whose links lead to /docs/NAME; ok is false
// for an unknown name.
type Document func(name string) (title string, content []byte, ok bool)

// serve serves the page with a document in it, around which the script builds the frame.
func (d Document) serve(w http.ResponseWriter, r *http.Request) {
	title, content, ok := d(r.PathValue("name"))
	if !ok {
		Missing(w)
		return
	}
	head := "<title>" + html.EscapeString(title) + " · "
	body := `<body><main id="main" class="doc" tabindex="-1">` + string(content) + "</main>"
	write(w, http.StatusOK, strings.NewReplacer("<title>", head, "<body>", body).Replace(page()))
}

// elsewhere is the only document of a server without documents.
func elsewhere(string) (title string, content []byte, ok bool) {
	return "Documents", []byte("<h1>Documents</h1><p>They are part of the program: <code>tabletop help</code> lists them.</p>"), true
}

// schema serves the schema of mappings, for the completions of the editor.
func schema(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	_, _ = io.WriteString(w, mapping.JSONSchema()) // the client may have left
}

// Handle registers the pages, except the start page, and their static files with mux. Without
// documents, a page says where they are.
func Handle(mux *http.ServeMux, documents Document) {
	if documents == nil {
		documents = elsewhere
	}
	mux.Handle("GET /static/", http.StripPrefix("/static/", http.FileServerFS(Files())))
	mux.HandleFunc("GET /static/mapping.schema.json", schema)
	mux.HandleFunc("GET /docs/{name...}", documents.serve)
	for _, path := range pages {
		mux.HandleFunc("GET "+path, Index)
	}
}
