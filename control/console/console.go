package console

import (
	"html"
	"io"
	"io/fs"
	"net/http"
	"strings"

	"github.com/tabletop-emu/tabletop/facade/mapping"
)

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

// Documents are the documents of the console as HTML, whose links lead to /docs/NAME.
type Documents interface {
	// Page returns the title and the HTML of a document; ok is false for an unknown name.
	Page(name string) (title string, content []byte, ok bool)
	// Contents returns links to all documents, and to the sections of current, whose link is marked.
	Contents(current string) []byte
	// Search returns the sections that contain all words, as JSON for docs.js.
	Search(words string) []byte
}

// search is the name of the page below /docs/ in which docs.js shows the results of a search.
const search = "search"

// find is the field of a search, above the links to all documents.
const find = `<input type="search" aria-label="Search the docs" aria-keyshortcuts="/" placeholder="Search (press /)">`

// document serves the page with a document in it, around which the script builds the frame.
func document(d Documents, w http.ResponseWriter, r *http.Request) {
	name := r.PathValue("name")
	title, content, ok := d.Page(name)
	if name == search {
		title, content, ok = "Search", []byte("<h1>Search</h1>"), true
	}
	if !ok {
		Missing(w)
		return
	}
	head := "<title>" + html.EscapeString(title) + " · "
	contents := string(d.Contents(name))
	if contents != "" {
		contents = "<details><summary>All documents</summary>" + contents + "</details>" // the script opens it in a wide window
	}
	body := `<body><main id="main" class="doc" tabindex="-1"><nav aria-label="Documents">` + find + contents + "</nav><article>" + string(content) + "</article></main>"
	write(w, http.StatusOK, strings.NewReplacer("<title>", head, "<body>", body).Replace(page()))
}

// elsewhere are the documents of a server without documents.
type elsewhere struct{}

func (elsewhere) Page(string) (title string, content []byte, ok bool) {
	return "Documents", []byte("<h1>Documents</h1><p>They are part of the program: <code>tabletop help</code> lists them.</p>"), true
}

func (elsewhere) Contents(string) []byte { return nil }

func (elsewhere) Search(string) []byte { return []byte(`{"count":0,"sections":[]}`) }

// schema serves the schema of mappings, for the completions of the editor.
func schema(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	_, _ = io.WriteString(w, mapping.JSONSchema()) // the client may have left
}

// Handle registers the pages, except the start page, and their static files with mux. Without
// documents, a page says where they are.
func Handle(mux *http.ServeMux, documents Documents) {
	if documents == nil {
		documents = elsewhere{}
	}
	mux.Handle("GET /static/", http.StripPrefix("/static/", http.FileServerFS(Files())))
	mux.HandleFunc("GET /static/mapping.schema.json", schema)
	mux.HandleFunc("GET /static/docs.json", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write(documents.Search(r.FormValue("q"))) // the client may have left
	})
	mux.HandleFunc("GET /docs/{name...}", func(w http.ResponseWriter, r *http.Request) { document(documents, w, r) })
	for _, path := range []string{"/docs", "/docs/{$}"} {
		mux.Handle("GET "+path, http.RedirectHandler("/docs/index", http.StatusFound))
	}
	for _, path := range pages {
		mux.HandleFunc("GET "+path, Index)
	}
}
