// Package jobs runs work that outlives its request: backups, restores, exports, imports,
// deliveries. Each job is one row of the catalog. A process does the work in the background,
// and another process takes over if that one ends.
//
// # What it promises
//
//  1. A job that Create returned is in the catalog, and will end: Done, or Failed with
//     the reason, unless it is deleted. A restart, and the end of the process that works
//     on it, only delay that.
//  2. A client token gives the job that it made first, for eight hours of the clock,
//     however many ask at once; with another request it is refused.
//  3. One process at a time works on a job, but for one that has lost it and does not
//     know yet: what a job does must come to the same when it is done again, from its
//     start or from what Claim.Save kept. After Save or the end was refused, it has
//     no effect on the job.
//  4. How many jobs of a kind there are, and how many a process works on at once, is
//     bounded. Where there are no jobs, a process makes no call for them but one when it
//     starts and one for each Tidy.
//
// # How
//
// A row holds the job as one JSON text, and a version that changes with each write, by
// which it is guarded: every change is one check-and-mutate. A process claims a job by
// writing itself down as its owner. While it works it raises a counter in the row;
// another process that has seen the counter stand still for a lease takes the job
// over. Leases go by Options.Wall, which no test clock of tables moves: two processes
// may have different ones, and clocks that stand. All times in rows are of Options.Now.
//
// A job's state is what was really done. What it looks like, where it is to take some
// time at least, follows from its times and the clock: that is for the kinds to say,
// and needs nobody to wake up.
//
// # How to use it
//
// A kind of job is a name and a function, given to Runner.Handle before Start:
//
//	runner.Handle(jobs.Kind{Name: "export", Run: func(ctx context.Context, c *jobs.Claim) error {
//		… // what c.Job().Request says; now and then c.Save(ctx, progress)
//		return nil
//	}})
//
// Run returns nil when the work is done and a *Failure when it never can be. After any
// other error it is called again, a few times. When ctx ends, the work is to stop: it
// goes on later, here or elsewhere. An operation looks for its token with Find before
// it looks at any table, then makes the job with Create; what it has to do to tables goes
// into Spec.Prepare, so that a process that ends in the middle leaves a job that does it
// again, and nothing that nobody knows of. It changes a job with Update, of which Run is
// told by Claim.Changed.
package jobs
