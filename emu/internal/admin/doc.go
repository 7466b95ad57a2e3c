// Package admin serves Bigtable's control plane: table and instance administration, long-running
// operations and locations. [Control] holds its dependencies, and looks up resources for the data
// plane.
//
// Each mutating RPC validates its request and then runs as one change of the engine's catalog,
// which checks and stores tables and resources together and starts an operation. The state of a
// resource is computed from its stored record and the clock.
//
//   - control.go, resources.go, operations.go: the services, the stored resources and their
//     changes, and long-running operations.
//   - instance.go, cluster.go, app_profile.go, table.go and so on: the RPCs, by resource.
//   - routes.go, partitions.go: the routes of requests, and the partitions of change streams.
//   - hot_tablets.go: ListHotTablets, which package load computes.
//   - due.go: scheduled work, such as deleting expired backups.
//   - gc_rule.go, value_type.go, settings.go: conversion of tables and families between
//     the API and the engine.
//   - backup_rules.go, automated_backup.go: the rules of backups and their lists, and the schedule
//     of automated backups.
//   - fieldpath.go: the paths of field masks.
package admin
