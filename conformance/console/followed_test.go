package console

import (
	"fmt"
	"strings"
	"testing"
	"time"

	ms "github.com/tabletop-emu/tabletop/internal/layout/migrationstate"
	"github.com/tabletop-emu/tabletop/internal/test/labserver"
)

// followed writes the state of a migration into a table: with its lags in steps of ten seconds until now, and
// dead letters.
func (s *server) followed(t *testing.T, table string, lags []int64, letters ...ms.Letter) {
	t.Helper()
	now := s.lab.Clock().Now().UTC()
	labserver.WriteState(t, s.lab, ms.FamilyState, ms.StateRow(table), ms.State{
		Phase: ms.Following, By: "ana@desk 4711", At: now.Add(-time.Hour), Owner: "ana@desk 4711", Lease: now.Add(time.Hour), Verified: 3, Dirty: 4,
		Proof: ms.Proof{At: now.Add(-10 * time.Minute), Compared: 41_220_907, Unsettled: 14},
	})
	lag := time.Duration(lags[len(lags)-1]) * time.Millisecond
	labserver.WriteState(t, s.lab, ms.FamilyCheckpoint, ms.CheckpointRow(table, "stream"), ms.Checkpoint{
		Watermark: now.Add(-lag), At: now.Add(time.Hour), // so that its age adds nothing to the lag
		Flags:  "--dynamodb-endpoint http://127.0.0.1:8001",
		Shards: []ms.Shard{{ID: "shardId-1", Watermark: now}, {ID: "shardId-2", Watermark: now.Add(-lag)}},
		Progress: ms.Progress{
			SourceNow: now, Changes: 18_204_113, Rate: 1040.4, Mode: "guarded", Throttles: 3,
			Lags: ms.Lags{From: now.Truncate(ms.LagStep).Add(-time.Duration(len(lags)-1) * ms.LagStep), Millis: lags},
		},
	})
	for i, l := range letters {
		labserver.WriteState(t, s.lab, ms.FamilyLetter, ms.LetterRow(table, [16]byte{byte(i)}), l)
	}
	for i, e := range []ms.Event{{To: ms.CatchingUp}, {From: ms.CatchingUp, To: ms.Following}} {
		e.By, e.At = "ana@desk 4711", now.Add(time.Duration(i-2)*time.Hour)
		labserver.WriteState(t, s.lab, ms.FamilyHistory, ms.HistoryRow(table, e.At), e)
	}
}

// TestFollowed: the page shows how to begin; then, without a reload, the lag of the last hour, the dead
// letters with their reasons, and the next command. It shows texts of the source and never executes them.
func TestFollowed(t *testing.T) {
	ctx := browser(t)
	srv := start(t)
	p := open(t, ctx, srv)
	p.visit("/migration")
	p.click("main details summary")
	p.until("document.querySelector('main').innerText.includes('tabletop migrate follow TABLE --target 127.0.0.1:1')")
	p.sound("nothing is followed")
	p.shoot("followed-none")

	var lags []int64
	for i := range 360 {
		switch {
		case i >= 200 && i < 230:
			lags = append(lags, -1)
		case i >= 230 && i < 260:
			lags = append(lags, int64(260-i)*9_000)
		default:
			lags = append(lags, int64(400+i%7*150))
		}
	}
	lags[359] = 800
	srv.followed(t, "orders", lags)
	p.visit("/migration")
	p.until("document.querySelector('[data-followed=orders] canvas')?.getAttribute('aria-label').endsWith('at most 4.5 min') ?? false")
	for _, want := range []string{"FOLLOWING", "ana@desk 4711, guarded", "800 ms worst of 2 shards", "18,204,113 changes, 1,040 per second", "41,220,907 compared, 0 differences, 14 unsettled; 0 keys changed since"} {
		if text := ask[string](p, "document.querySelector('[data-followed=orders]').innerText"); !strings.Contains(text, want) {
			t.Errorf("the page lacks %q: %s", want, text)
		}
	}
	p.sound("followed")
	// The chart: a bar has the height of its lag, the moments without a follower have a line at the bottom.
	bars := ask[[]int](p, `(() => { const c = document.querySelector('[data-followed=orders] canvas'), { data } = c.getContext('2d').getImageData(0, 0, c.width, c.height);
		return Array.from({ length: c.width }, (_, x) => { let n = 0; for (let y = 0; y < c.height; y++) if (data[4 * (y * c.width + x) + 3]) n++; return n; }); })()`)
	if len(bars) != 360 {
		t.Fatalf("the chart has %d steps, want 360", len(bars))
	}
	// A step may have passed since the state was written.
	if tall, half, none, low := bars[230], bars[245], bars[215], bars[100]; tall < 90 || tall > 96 || half < 40 || half > 55 || none != 3 || low > 2 {
		t.Errorf("the bars are %d, %d, %d and %d of 96 high", tall, half, none, low)
	}
	p.press("Home", "[data-followed=orders] canvas")
	if tip := ask[string](p, "document.querySelector('[data-followed=orders] .lag p').innerText"); !strings.Contains(tip, "at most 400 ms") && !strings.Contains(tip, "at most 550 ms") {
		t.Errorf("the tip is %q", tip)
	}
	p.shoot("followed")

	// A later letter appears without a reload, and an open part stays open.
	p.click("[data-followed=orders] details summary")
	for i, text := range texts {
		labserver.WriteState(t, srv.lab, ms.FamilyLetter, ms.LetterRow("orders", [16]byte{1, byte(i)}), ms.Letter{
			Key: fmt.Sprintf(`{"id":{"S":%s}}`, quoted(text)), Code: "E-DOMAIN", Reason: "E-DOMAIN: attribute " + text, Mapping: "mapping.yaml:12", At: time.Unix(1_800_000_000, 0),
		})
	}
	p.until(fmt.Sprintf("document.querySelectorAll('[data-followed=orders] [data-letter]').length === %d", len(texts)))
	p.until("document.querySelector('[data-followed=orders]').innerText.includes('tabletop migrate status --letters --target 127.0.0.1:1')")
	if open := ask[bool](p, "[...document.querySelectorAll('[data-followed=orders] details')].at(-1).open"); !open {
		t.Error("the history is closed again")
	}
	p.sound("hostile letters")
	for _, width := range []int64{1280, 640} {
		p.resize(width, 800)
		for _, wrong := range ask[[]string](p, structure) {
			t.Error(wrong)
		}
		if out := ask[[]string](p, outside); len(out) > 0 {
			t.Errorf("%d pixels: outside are %q", width, out)
		}
		p.shoot(fmt.Sprint("followed-letters-", width))
	}

	// The end of a migration takes the chart away.
	now := srv.lab.Clock().Now()
	labserver.WriteState(t, srv.lab, ms.FamilyState, ms.StateRow("other"), ms.State{Phase: ms.Ended, By: "ana@desk 4711", At: now})
	p.until("!!document.querySelector('[data-followed=other]')")
	if shown := ask[bool](p, "document.querySelector('[data-followed=other] canvas').checkVisibility()"); shown {
		t.Error("a table without lags has a chart")
	}
	p.sound("ended")
	p.shoot("followed-ended")
}
