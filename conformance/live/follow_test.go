package live

import (
	"strings"
	"syscall"
	"testing"
	"time"
)

// traffic writes, and calls event in the middle of the writes: some times, or every interval of the
// full size.
func (s *stage) traffic(times int, every time.Duration, event func()) {
	s.t.Helper()
	if full() {
		s.paced(every, event)
		return
	}
	for range times {
		s.g.give(100)
		event()
		s.g.give(50)
	}
}

// paced writes at the rate of -live.rate for the time of -live.for, and calls event every interval.
func (s *stage) paced(every time.Duration, event func()) {
	end := time.Now().Add(*runFor)
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		ticker := time.NewTicker(10 * time.Millisecond)
		defer ticker.Stop()
		due, last := 0.0, time.Now()
		for now := range ticker.C {
			if !now.Before(end) || s.t.Failed() {
				return
			}
			// The ticks that pass while all writers are busy are made up for.
			due += float64(*rate)*now.Sub(last).Seconds() - float64(s.g.extra.Swap(0))
			for last = now; due >= 1; due-- {
				s.g.give(1)
			}
		}
	}()
	for {
		timer := time.NewTimer(every) // since the end of the last event
		select {
		case <-stopped:
			timer.Stop()
			return
		case <-timer.C:
			event()
		}
	}
}

// TestFollow: items and index entries of the target are those of the source, while clients write.
func TestFollow(t *testing.T) {
	s := setStage(t)
	f := s.follow()
	m := s.measure(f)
	s.traffic(3, time.Hour, func() {})
	s.g.quiet()
	m.report("follow")
	s.drain(f)
}

// TestFollow_Killed: the same while the follower is killed, for each way to write.
func TestFollow_Killed(t *testing.T) {
	modes := []string{"guarded", "ordered", "auto"}
	if !full() {
		t.Parallel()
		modes = []string{"ordered"}
	}
	for _, mode := range modes {
		t.Run(mode, func(t *testing.T) {
			s := setStage(t)
			f := s.follow("--apply", mode)
			s.j.allowBackwards(mode != "guarded")
			m := s.measure(f)
			kills := 0
			s.traffic(1, 10*time.Second, func() {
				f.kill()
				kills++
			})
			s.g.quiet()
			s.caughtUp()
			m.report("follower killed, " + mode)
			t.Logf("%d kills", kills)
			s.drain(f)
		})
	}
}

// TestKill: the same while the source, the target and the follower are killed in turn. The source keeps
// every acknowledged write.
func TestKill(t *testing.T) {
	s := setStage(t)
	f := s.follow()
	s.j.allowBackwards(true)
	m := s.measure(f)
	kills := 0
	s.traffic(3, 20*time.Second, func() {
		switch kills++; kills % 3 {
		case 0:
			f.kill()
		case 1:
			s.source.kill()
			s.source.start()
		case 2:
			s.target.kill()
			s.target.start()
		}
	})
	s.g.quiet()
	s.caughtUp()
	m.report("all killed in turn")
	t.Logf("%d kills", kills)
	s.drain(f)
}

// TestPause: the owner of the lease stops for longer than its lease, and another process takes over.
// The first one ends when it runs again.
func TestPause(t *testing.T) {
	s := setStage(t)
	younger := s.follow()
	s.j.allowBackwards(true)
	m := s.measure(younger)
	s.traffic(1, time.Minute, func() {
		elder := younger
		if err := elder.signal(syscall.SIGSTOP); err != nil {
			t.Error(err)
		}
		younger = s.start()
		for !s.owns(younger.pid()) && t.Context().Err() == nil {
			pause(t.Context())
		}
		s.g.give(50)
		if err := elder.signal(syscall.SIGCONT); err != nil {
			t.Error(err)
		}
		<-elder.over
		if exit := elder.cmd.ProcessState.ExitCode(); exit != 2 {
			t.Errorf("the elder follower ends with exit code %d, want 2", exit)
		}
	})
	s.g.quiet()
	s.caughtUp()
	m.report("owner of the lease paused")
	s.drain(younger)
}

// TestRelay: connections of the follower are slow, are cut, and lose their answers.
func TestRelay(t *testing.T) {
	s := setStage(t)
	source, target := relayTo(t, s.source.address, relayDelay), relayTo(t, s.target.address, relayDelay)
	s.via.source, s.via.target = source.address, target.address
	f := s.follow()
	s.j.allowBackwards(true)
	m := s.measure(f)
	events := 0
	s.traffic(4, 5*time.Second, func() {
		switch events++; events % 4 {
		case 0:
			source.cut()
		case 1:
			target.cut()
		case 2:
			end := target.silence()
			s.g.give(30)
			end()
		case 3:
			end := source.silence()
			s.g.give(30)
			end()
		}
		if !full() {
			s.applied() // so that the next event meets connections
		}
	})
	s.g.quiet()
	s.caughtUp()
	m.report("connections delayed and cut")
	s.drain(f)
}

// TestShards: shards end and split while the follower runs and while it does not. After a day without
// a follower, records are missing, and it says what to do.
func TestShards(t *testing.T) {
	rotation := "1s"
	if full() {
		rotation = "15s"
	}
	s := setStage(t, "--stream-shards", "1,2,4", "--stream-shard-rotation", rotation)
	f := s.follow()
	m := s.measure(f)
	s.traffic(2, *runFor/3+time.Second, func() {
		f.stop()
		s.g.give(100)
		for range 300 * int(runFor.Minutes()) / 3 { // a third of the time
			pause(t.Context())
		}
		f = s.start()
	})
	s.g.quiet()
	s.caughtUp()
	m.report("shards end and split")
	s.drain(f)
	s.ctl("advance", "1h")
	s.g.give(50)
	s.g.quiet()
	s.ctl("advance", "25h")
	out, code := s.run(s.followArgs("--until", "tip")...)
	if code != 2 || !strings.Contains(out, "are missing") || !strings.Contains(out, "export") {
		t.Errorf("exit code %d, want 2 and the remedy: %s", code, out)
	}
}
