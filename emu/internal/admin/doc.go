// Package admin implements the rules of Bigtable's control plane: which values a
// resource may have, how the engine stores it, and how it is shown at a time. It makes no
// changes; the RPCs in emu's admin_*.go do.
//
//   - gc_rule.go, value_type.go, settings.go: tables and families, between the API and
//     the engine.
//   - backup_rules.go, automated_backup.go: backups, their lists, and the schedule of
//     automated ones.
//   - memory_layer_rules.go, iam_rules.go: memory layers and IAM policies, which are stored and
//     have no effect.
//   - fieldpath.go: the paths of field masks.
package admin
