// Package jobs runs work that outlives its request: backups, restores, exports, imports
// and deliveries. Each job is one row of the catalog. A process does the work in the
// background, and another process takes over if that one ends.
//
// # Guarantees
//
//  1. A job that Create returned is in the catalog. Unless it is deleted, it ends as
//     Done, or as Failed with a reason. A restart, or the end of its process, only
//     delays that.
//  2. For eight hours, a request with the same client token returns the job that the
//     first request created, even if the requests are concurrent. A different request
//     with that token is rejected.
//  3. One process at a time works on a job, except that a process may have lost the job
//     without knowing it yet. Therefore the work must have the same result when it is
//     repeated, from its start or from the progress of Claim.Save. After a rejected Save
//     or a rejected end, the work no longer affects the job.
//  4. The number of jobs of a kind, and of those that a process works on at once, is
//     limited. Without jobs, a process makes one call at its start and one for each
//     Tidy.
//
// # Mechanism
//
// A row holds the job as one JSON text, and a version that guards the row and changes
// with each write: every change is one check-and-mutate. A process claims a job by
// writing itself into the row as the owner. While it works, it increments a counter in
// the row. Another process takes the job over if it has seen the counter unchanged for a
// lease. Leases use Options.Wall, which is independent of the test clocks of tables,
// since the test clocks of two processes may differ or stand still. All times in rows
// come from Options.Now.
//
// The state of a job is that of its real work. A kind that shows a state for a minimum
// time computes it from the times of the job and the clock, without a timer.
//
// # Usage
//
// A kind of job is a name and a function, given to Runner.Handle before Start:
//
//	runner.Handle(jobs.Kind{Name: "export", Run: func(ctx context.Context, c *jobs.Claim) error {
//		… // do c.Job().Request, and call c.Save(ctx, progress) now and then
//		return nil
//	}})
//
// Run returns nil when the work is done, and a *Failure if it can never be done. After
// any other error it is called again, up to a few times. When ctx ends, the work must
// stop; it continues later, here or in another process. An operation looks for its token
// with Find before it reads any table, and then creates the job with Create. It changes
// tables in Spec.Prepare, so that a process that ends in the middle leaves a job that
// repeats the change. It changes a job with Update; Claim.Changed notifies Run.
package jobs
