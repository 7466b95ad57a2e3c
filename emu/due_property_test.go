package emu

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	btapb "cloud.google.com/go/bigtable/admin/apiv2/adminpb"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/tabletop-emu/tabletop/emu/internal/resname"
	"github.com/tabletop-emu/tabletop/internal/test/long"
)

// dueModel is the simplest model of one table's backups, by the documentation.
type dueModel struct {
	now     time.Time
	expires map[string]time.Time // of all backups, including removed ones
	keep    time.Duration        // retention of the policy; 0 without a policy
	from    time.Time            // start of the policy, then the latest scheduled day
	deleted time.Time            // when table t was deleted; zero if it exists
}

func (m *dueModel) live() bool { return m.deleted.IsZero() }

// advance moves the time by d. The schedule of a deleted table advances too, without backups.
func (m *dueModel) advance(d time.Duration) {
	m.now = m.now.Add(d)
	for m.keep > 0 && !m.from.Add(day).After(m.now) {
		m.from = m.from.Add(day)
		if m.live() {
			m.expires["t-auto-"+m.from.UTC().Format("20060102T150405Z")] = m.from.Add(m.keep)
		}
	}
}

// shown returns the sorted existing backups with their times.
func (m *dueModel) shown() []string {
	var out []string
	for id, at := range m.expires {
		if at.After(m.now) {
			out = append(out, fmt.Sprint(id, " ", at.UnixMicro()))
		}
	}
	slices.Sort(out)
	return out
}

// TestDue_Property: property (f). Time passes in random steps, policies change, backups are
// created, moved and deleted, and their table is deleted and undeleted. The listed backups
// match a plain model, and nothing else is kept.
func TestDue_Property(t *testing.T) {
	t.Parallel()
	runs, steps := 1, 600 // five of six steps move the clock
	if long.Enabled() {
		runs, steps = 4, 3000
	}
	for seed := range uint64(runs) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			t.Parallel()
			r := rand.New(rand.NewPCG(seed, 0))
			e := newTable(t, "f")
			m := &dueModel{now: start, expires: map[string]time.Time{}}
			automated := 0
			for step := range steps {
				what := e.dueStep(r, m, step)
				var listed, kept, want []string
				for _, b := range e.backups() {
					listed = append(listed, fmt.Sprint(resname.Last(b.GetName()), " ", b.GetExpireTime().AsTime().UnixMicro()))
				}
				for _, b := range e.db.Backups().List("") {
					kept = append(kept, resname.Last(b.Name))
				}
				slices.Sort(listed)
				slices.Sort(kept)
				shown := m.shown()
				for _, s := range shown {
					id, _, _ := strings.Cut(s, " ")
					want = append(want, id)
				}
				if !slices.Equal(listed, shown) || !slices.Equal(kept, want) {
					t.Fatalf("step %d, %s, at %v: listed\n%q, kept\n%q, want\n%q", step, what, m.now, listed, kept, shown)
				}
			}
			for id := range m.expires {
				if strings.Contains(id, "-auto-") {
					automated++
				}
			}
			t.Logf("%v passed, %d backups, %d automated", m.now.Sub(start), len(m.expires), automated)
			if automated < steps/50 || len(m.expires)-automated < steps/50 {
				t.Errorf("too few backups: %d, %d of them automated", len(m.expires), automated)
			}
		})
	}
}

// dueStep performs a random action or moves the clock, and returns its description.
func (e *env) dueStep(r *rand.Rand, m *dueModel, step int) string {
	e.t.Helper()
	must := func(err error, want ...codes.Code) {
		e.t.Helper()
		if len(want) == 0 {
			want = []codes.Code{codes.OK}
		}
		if !slices.Contains(want, status.Code(err)) {
			e.t.Fatalf("step %d: %v, want %v", step, err, want)
		}
	}
	setPolicy := func(p *btapb.Table_AutomatedBackupPolicy, keep time.Duration) {
		_, err := e.updateTable(withBackupPolicy(p), "automated_backup_policy")
		if must(err); m.keep == 0 {
			m.from = m.now
		}
		m.keep = keep
	}
	// Deletes and policies are rare: most steps move the clock.
	switch n := r.IntN(100); {
	case n < 3 && m.live():
		d := r.IntN(20) + 3
		setPolicy(keep(d), time.Duration(d)*day)
		return "policy"
	case n < 4 && m.live():
		setPolicy(&btapb.Table_AutomatedBackupPolicy{Disabled: true}, 0)
		return "no policy"
	case n < 5 && m.live():
		must(e.deleteTable())
		m.deleted = m.now
		return "delete table"
	case n < 9 && !m.live():
		_, err := e.admin.UndeleteTable(e.ctx(), &btapb.UndeleteTableRequest{Name: testTable})
		if gone := !m.now.Before(m.deleted.Add(7 * day)); gone {
			must(err, codes.NotFound)
			e.createTable("t", "f")
			m.keep = 0
		} else {
			must(err)
		}
		m.deleted = time.Time{}
		return "undelete table"
	case n < 13 && m.live():
		id, life := fmt.Sprint("b", step), 6*time.Hour+time.Duration(r.Int64N(int64(10*day))).Truncate(time.Microsecond)
		must(e.tryBackup(id, func(req *btapb.CreateBackupRequest) { req.Backup.ExpireTime = e.in(life) }))
		m.expires[id] = m.now.Add(life)
		return "create " + id
	case n < 17:
		shown := m.shown()
		if len(shown) == 0 {
			return "nothing"
		}
		id, _, _ := strings.Cut(shown[r.IntN(len(shown))], " ")
		name := e.backupNamed(id)
		if r.IntN(2) == 0 {
			_, err := e.admin.DeleteBackup(e.ctx(), &btapb.DeleteBackupRequest{Name: name})
			must(err)
			delete(m.expires, id)
			return "delete " + id
		}
		to := time.Duration(r.Int64N(int64(20*day)) + 1).Truncate(time.Microsecond)
		_, err := e.updateBackup(&btapb.Backup{Name: name, ExpireTime: e.in(to)}, "expire_time")
		must(err, codes.OK, codes.InvalidArgument) // the limit counts from the backup's start
		if err == nil {
			m.expires[id] = m.now.Add(to)
		}
		return "update " + id
	}
	var by time.Duration
	next, ok, err := e.srv.NextDue()
	must(err)
	switch n := r.IntN(20); {
	case n < 5 && ok:
		by = next.Sub(m.now)
	case n < 8 && ok:
		by = next.Sub(m.now) - time.Microsecond
	case n < 10:
		by = time.Microsecond
	case n < 11:
		by = time.Duration(r.Int64N(int64(5 * day))).Truncate(time.Microsecond)
	default:
		by = time.Duration(r.Int64N(int64(4 * time.Hour))).Truncate(time.Microsecond)
	}
	e.advance(by)
	m.advance(by)
	return fmt.Sprint("advance ", by)
}

// backupNamed returns the resource name of a backup id.
func (e *env) backupNamed(id string) string {
	for _, b := range e.backups() {
		if resname.Last(b.GetName()) == id {
			return b.GetName()
		}
	}
	return testCluster + "/backups/" + id
}
