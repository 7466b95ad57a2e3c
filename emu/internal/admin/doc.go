// Package admin serves Bigtable's control plane: table and instance
// administration, long-running operations and locations. [Control] holds its
// dependencies, and provides look-ups to the data plane.
//
// Each change validates its request and then runs as one change of the engine's
// catalog: it checks and stores tables and resources together, and starts an
// operation. The state of a resource is computed from its stored record and the
// clock.
//
//   - control.go, resources.go, operations.go: the services; stored resources and their
//     changes; operations.
//   - instance.go, cluster.go, app_profile.go, table.go and so on: the RPCs, by resource.
//   - routes.go, partitions.go: the routes of requests, and the partitions of change streams.
//   - due.go: scheduled work, such as deleting expired backups.
//   - gc_rule.go, value_type.go, settings.go: conversion of tables and families between
//     the API and the engine.
//   - backup_rules.go, automated_backup.go: backups, their lists, and the schedule of
//     automated ones.
//   - fieldpath.go: the paths of field masks.
package admin
