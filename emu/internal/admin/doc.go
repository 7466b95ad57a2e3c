// Package admin serves Bigtable's control plane: table and instance administration,
// long-running operations and locations. A [Control] has what it needs, and the look-ups that
// the data plane makes.
//
// A change validates the request, then runs as one change of the engine's catalog: it checks
// and stores tables and resources together, and starts an operation. What a resource is at a
// time follows from its stored record and the clock.
//
//   - control.go, resources.go, operations.go: the services; resources as they are stored, and
//     their changes; operations.
//   - instance.go, cluster.go, app_profile.go, table.go and so on: the RPCs, by resource.
//   - routes.go, partitions.go: where requests go, and the partitions of change streams.
//   - due.go: work at a time, such as deleting expired backups.
//   - gc_rule.go, value_type.go, settings.go: tables and families, between the API and
//     the engine.
//   - backup_rules.go, automated_backup.go: backups, their lists, and the schedule of
//     automated ones.
//   - fieldpath.go: the paths of field masks.
package admin
