package table

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"

	"github.com/tabletop-emu/tabletop/internal/layout"
	"github.com/tabletop-emu/tabletop/migrate/internal/parts"
	"github.com/tabletop-emu/tabletop/migrate/source"
)

// partOf returns the part of a source that the options name.
func partOf(src *source.Source, o Options) (*source.Source, error) {
	if o.Parts == "" {
		return nil, source.Damaged(source.CheckpointInvalid, source.Position{File: src.Path}, nil, "part %v has no folder for its progress: name the folder of the parts", o.Share)
	}
	if err := givenMapping(src, o); err != nil {
		return nil, err
	}
	return src.Part(o.Share)
}

// givenMapping returns an error if the mapping would be inferred, since a part sees too
// little of the data.
func givenMapping(src *source.Source, o Options) error {
	if len(o.Mappings) > 0 {
		return nil
	}
	return source.Damaged(source.MappingRefused, source.Position{File: src.Path}, nil, "parts need an explicit mapping, since a part sees only some of the items: infer the mapping first, from the whole source")
}

// identify sets the identity of the folder of the parts. It covers the source, the target,
// the mappings and the number of parts. It rejects mappings whose items may be copies of
// items in other parts.
func (r *Run) identify(src *source.Source, of int) error {
	o := r.Options
	files, err := src.Fingerprint()
	if err != nil {
		return err
	}
	text := fmt.Appendf(nil, "%s %d %s %q %q %q %q %v\n", o.folder().Verb, of, files, o.Target, o.Project, o.Instance, o.Timestamps, o.LenientSets)
	for _, j := range r.Jobs {
		if j.Mapping.ProveVersions() != nil {
			return source.Damaged(source.MappingRefused, source.Position{File: src.Path}, nil,
				"table %s: its mapping has rules whose items are copies of others (latest), which may be in another part: load and verify it without parts", j.Source.Name)
		}
		text = fmt.Appendf(text, "%q %q %d\n", j.Source.Name, j.Targets(), j.Micros)
		if j.Mapping.Spec() != nil {
			file, err := j.Mapping.YAML()
			if err != nil {
				return fmt.Errorf("writing the mapping of table %s: %w", j.Source.Name, err)
			}
			text = append(text, file...)
		}
	}
	sum := sha256.Sum256(text)
	r.Folder = o.folder()
	r.Folder.Identity, r.Folder.Tables = hex.EncodeToString(sum[:]), len(r.Jobs)
	return nil
}

// beginPart reads the result of the part if it is complete, otherwise it prepares for it.
func (r *Run) beginPart(src *source.Source) error {
	part := r.Options.Share
	if err := r.Options.folder().Admit(part); err != nil {
		return err
	}
	if err := r.identify(src, part.Of); err != nil {
		return err
	}
	done, err := r.Folder.Read(part)
	if err != nil {
		return err
	}
	if done != nil {
		r.complete, r.Report = done, done.Report
		r.Report.Warnings = append(r.Report.Warnings, fmt.Sprintf("part %v is already complete: see %s", part, r.Folder.File(part, parts.Done)))
		return nil
	}
	for _, j := range r.Jobs {
		j.Options.Checkpoint = r.Folder.File(part, parts.Checkpoint)
		if r.Folder.Verb == parts.Verifying {
			j.Ranges = j.RangesOf(part.Of)
		}
	}
	return nil
}

// Complete reports whether the run is a part that was already complete. The report of the
// run is then that of the part.
func (r *Run) Complete() bool { return r.complete != nil }

// EndPart records that the part is complete, along with its report and its tables. If another
// process has completed the part meanwhile, EndPart keeps that result, and warns.
func (r *Run) EndPart(tables []parts.Table) error {
	part := r.Options.Share
	if before, err := r.Folder.Read(part); err != nil {
		return err
	} else if before != nil {
		r.Report.Warnings = append(r.Report.Warnings, fmt.Sprintf("part %v was completed by another process in the meantime: the result of that process is used", part))
		return nil
	}
	return r.Folder.End(part, parts.Complete{Report: r.Report, Tables: tables})
}

// Finish returns a run for a source that was processed in parts. It finds the mappings,
// and reads the results of all parts. It returns an error if a part is not complete.
func Finish(ctx context.Context, src *source.Source, o Options) (*Run, []*parts.Complete, error) {
	o = o.Normalized()
	if err := givenMapping(src, o); err != nil {
		return nil, nil, err
	}
	r, err := newRun(ctx, src, o)
	if err != nil {
		return nil, nil, err
	}
	of, begun, err := o.folder().Count()
	if err != nil {
		return nil, nil, err
	}
	if err := r.identify(src, of); err != nil {
		return nil, nil, err
	}
	all, err := r.Folder.ReadAll(of, begun)
	return r, all, err
}

// ProveJoiners chooses the joiners that mappings leave open, based on the keys of all
// parts. After a pass over the whole source, all joiners are already chosen.
func (r *Run) ProveJoiners(all []*parts.Complete) (err error) {
	for i, j := range r.Jobs {
		if j.Mapping.ProveJoiner() == nil {
			continue
		}
		var joiners []string
		for _, p := range all {
			joiners = append(joiners, p.Tables[i].Joiner)
		}
		if j.Mapping, err = j.Mapping.Proven(layout.JoinerOfAll(joiners...)); err != nil {
			return err
		}
	}
	return nil
}
