// Package console opens the pages of the control API in a real browser.
package console

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"

	"github.com/tabletop-emu/tabletop/control/lab"
	"github.com/tabletop-emu/tabletop/control/lab/dynamodb"
	"github.com/tabletop-emu/tabletop/facade/mapping"
	"github.com/tabletop-emu/tabletop/internal/clock"
	"github.com/tabletop-emu/tabletop/internal/test/labserver"
)

const token = labserver.Token

// endChromium ends the browser; nil before chromium was called.
var endChromium func() error

// chromium starts the browser that all tests share, and returns its context.
var chromium = sync.OnceValue(func() context.Context {
	var path string
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
		if found, err := exec.LookPath(name); err == nil {
			path = found
			break
		}
	}
	if path == "" {
		log.Fatal("no Chromium is here: apt-get install chromium")
	}
	folder, err := os.MkdirTemp("", "console-")
	if err != nil {
		log.Fatal(err)
	}
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(path), chromedp.NoSandbox, chromedp.DisableGPU,
		chromedp.UserDataDir(folder), chromedp.WindowSize(1280, 800),
		chromedp.WSURLReadTimeout(2*time.Minute))
	allocated, free := chromedp.NewExecAllocator(context.Background(), options...)
	ctx, end := chromedp.NewContext(allocated)
	if err := chromedp.Do(ctx); err != nil {
		log.Fatal(err)
	}
	endChromium = func() error {
		err := chromedp.Cancel(ctx)
		end()
		free()
		if errors.Is(err, context.Canceled) {
			err = nil
		}
		return errors.Join(err, os.RemoveAll(folder))
	}
	return ctx
})

func TestMain(m *testing.M) {
	code := m.Run()
	if endChromium != nil {
		if err := endChromium(); err != nil {
			log.Fatal(err)
		}
	}
	os.Exit(code)
}

// browser returns a context for the tabs of a test, which have their own cookies and run beside
// those of other tests. Without
// REPORT_CHECK in the environment, which make report-check sets, the test is skipped. REPORT_SHOTS
// names a folder for pictures.
func browser(t *testing.T) context.Context {
	t.Helper()
	if os.Getenv("REPORT_CHECK") == "" {
		t.Skip("REPORT_CHECK is not set: make report-check runs this test")
	}
	t.Parallel()
	ctx, end := chromedp.NewContext(chromium(), chromedp.WithNewBrowserContext())
	if err := chromedp.Do(ctx); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(end)
	// A wait that never ends fails with its place, before the end of all tests hides it.
	if last, ok := t.Deadline(); ok {
		ctx, end = context.WithDeadline(ctx, last.Add(-30*time.Second))
		t.Cleanup(end)
	}
	return ctx
}

// server is a lab with its pages.
type server struct {
	lab *lab.Lab
	ddb *dynamodb.Endpoint
	url string
}

func start(t *testing.T) *server {
	t.Helper()
	return serverOf(startWith(t, labserver.Options{Closed: true}))
}

// startThings starts a server whose DynamoDB endpoint has the empty table things.
func startThings(t *testing.T) *server {
	t.Helper()
	srv := start(t)
	if err := srv.ddb.Open(); err != nil {
		t.Fatal(err)
	}
	srv.call(t, "CreateTable", createThings)
	return srv
}

func serverOf(s *labserver.Server) *server { return &server{s.Lab, s.DynamoDB, s.URL} }

// startFixture starts a server with the data of a shipped fixture.
func startFixture(t *testing.T, name string) (*server, *mapping.Mapping) {
	t.Helper()
	s := startWith(t, labserver.Options{Fixture: name})
	return serverOf(s), s.Mapping
}

// startWith starts a server with the shipped fixtures, unless o has others.
func startWith(t *testing.T, o labserver.Options) *labserver.Server {
	t.Helper()
	if o.Control.Fixtures == nil {
		o.Control.Fixtures = os.DirFS("../../fixtures/subjects")
	}
	o.Clock, o.Project, o.Instance = clock.New(), "tabletop", "tabletop"
	o.Control.Bigtable, o.Control.DynamoDB = "127.0.0.1:1", "http://127.0.0.1:2"
	return labserver.Start(t, o)
}

// tab is a page of the browser, with its complaints.
type tab struct {
	t   *testing.T
	ctx context.Context
	srv *server

	read chan struct{} // gets a value when the marker of hear arrives
	mu   sync.Mutex
	said []string // guarded by mu
}

// heard is the message by which hear marks the end of the complaints so far.
const heard = "the test has read all messages"

// hear waits until all complaints so far have arrived, which takes a moment on a busy machine.
func (p *tab) hear() {
	p.t.Helper()
	ask[bool](p, fmt.Sprintf("console.info(%q), true", heard))
	select {
	case <-p.read:
	case <-p.ctx.Done():
		p.t.Fatal("the tab is closed")
	}
}

// open opens a tab and signs it in.
func open(t *testing.T, ctx context.Context, srv *server) *tab {
	t.Helper()
	ctx, end := chromedp.NewContext(ctx)
	p := &tab{t: t, ctx: ctx, read: make(chan struct{}, 1)}
	messages := chromedp.Console(ctx)
	var reading sync.WaitGroup
	reading.Go(func() {
		for m, err := range messages {
			if err != nil {
				return // the tab is closed
			}
			if m.Text == heard {
				p.read <- struct{}{}
			}
			if m.Type == chromedp.ConsoleWarning || m.Type == chromedp.ConsoleError || m.Type == chromedp.ConsoleException {
				p.mu.Lock()
				p.said = append(p.said, fmt.Sprintf("%s: %s", m.Type, m.Text))
				p.mu.Unlock()
			}
		}
	})
	t.Cleanup(func() {
		end()
		reading.Wait()
	})
	p.resize(1280, 800)
	// A tab beside another one would have no focus.
	if _, err := chromedp.Call(ctx, emulation.SetFocusEmulationEnabled, emulation.SetFocusEmulationEnabledParams{Enabled: true}); err != nil {
		t.Fatal(err)
	}
	p.enter(srv)
	return p
}

// enter signs in to a server.
func (p *tab) enter(srv *server) {
	p.t.Helper()
	p.srv = srv
	p.do(chromedp.Navigate(srv.url + "/#token=" + token))
	p.ready("/")
}

func (p *tab) do(steps ...chromedp.Action[chromedp.Void]) {
	p.t.Helper()
	if err := chromedp.Do(p.ctx, steps...); err != nil {
		p.t.Fatal(err, p.complaints())
	}
}

// ready waits until the page of a path is complete.
func (p *tab) ready(path string) {
	p.t.Helper()
	path, _, _ = strings.Cut(path, "?")
	p.until(fmt.Sprintf("decodeURIComponent(document.documentElement.dataset.ready ?? '') === decodeURIComponent(%q)", path))
}

// until waits until an expression is true, at most five minutes.
func (p *tab) until(expression string) {
	p.t.Helper()
	if !ask[bool](p, fmt.Sprintf(`new Promise((done) => {
		const end = Date.now() + 300_000;
		(function look() { if (%s) done(true); else if (Date.now() > end) done(false); else setTimeout(look, 15); })();
	})`, expression)) {
		p.t.Fatalf("it never becomes true: %s %v\n%s", expression, p.complaints(), ask[string](p, "document.body.innerText.slice(0, 2000)"))
	}
}

func (p *tab) visit(path string) {
	p.t.Helper()
	p.do(chromedp.Navigate(p.srv.url + path))
	p.ready(path)
}

// turn shows a page as a link to it does. That takes a third of the time of visit, which loads
// all scripts again.
func (p *tab) turn(path string) {
	p.t.Helper()
	ask[bool](p, fmt.Sprintf(`((a) => { a.href = %q; document.body.append(a); a.click(); a.remove(); return true; })(document.createElement('a'))`, path))
	p.ready(path)
}

// ask evaluates an expression in the page, and awaits a promise.
func ask[T any](p *tab, expression string) T {
	p.t.Helper()
	out, err := chromedp.Run(p.ctx, chromedp.Evaluate[T](expression, chromedp.EvalAwaitPromise))
	if err != nil {
		p.t.Fatal(err, p.complaints())
	}
	return out
}

func (p *tab) complaints() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.said
}

// forget drops the complaints about a request that had to fail.
func (p *tab) forget() {
	p.t.Helper()
	p.hear()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.said = nil
}

// fits fails the test if the page is wider than the window.
func (p *tab) fits(what string) {
	p.t.Helper()
	if over := ask[int](p, "document.documentElement.scrollWidth - innerWidth"); over > 0 {
		p.t.Errorf("%s is %d pixels too wide", what, over)
	}
}

// sound fails the test if the page has complaints, or executed the data that it shows.
func (p *tab) sound(what string) {
	p.t.Helper()
	p.hear()
	if said := p.complaints(); len(said) > 0 {
		p.t.Errorf("%s: the browser says:\n%s", what, strings.Join(said, "\n"))
		p.mu.Lock()
		p.said = nil
		p.mu.Unlock()
	}
	if alien := ask[int](p, `document.querySelectorAll('img, iframe, object, embed, svg, body script, body style, [onerror], [onload], [style*=url]').length`); alien != 0 {
		p.t.Errorf("%s: %d elements that no page makes", what, alien)
	}
	if title := ask[string](p, "document.title"); title == "owned" {
		p.t.Errorf("%s: the data was obeyed", what)
	}
	if wrong := ask[string](p, "document.querySelector('.note.error')?.textContent ?? ''"); wrong != "" {
		p.t.Errorf("%s: the page says %s", what, wrong)
	}
}

// shoot takes pictures of the page, light and dark.
func (p *tab) shoot(name string) {
	p.t.Helper()
	folder := os.Getenv("REPORT_SHOTS")
	if folder == "" {
		return
	}
	for _, scheme := range []string{"light", "dark"} {
		_, err := chromedp.Call(p.ctx, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
			Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}},
		})
		if err != nil {
			p.t.Fatal(err)
		}
		picture, err := chromedp.Run(p.ctx, chromedp.CaptureScreenshot())
		if err == nil {
			err = os.WriteFile(filepath.Join(folder, name+"-"+scheme+".png"), picture, 0o644)
		}
		if err != nil {
			p.t.Fatal(err)
		}
	}
}
