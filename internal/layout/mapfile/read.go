package mapfile

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"
)

// Read parses the mapping file src. Errors have the form `file:line:column: path: what; expected
// …`, with the given file name. It looks in each file system of beside for the descriptor sets
// that src names.
func Read(file string, src []byte, beside ...fs.FS) (*Spec, error) {
	spec, err := Parse(file, src)
	if err != nil {
		return nil, err
	}
	for _, fsys := range beside {
		if err := spec.ReadDescriptors(fsys); err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
	}
	return spec, nil
}

// ReadDescriptors reads the descriptor sets that codec proto names from fsys. It ignores missing
// files, which Compile reports.
func (s *Spec) ReadDescriptors(fsys fs.FS) error {
	for _, name := range s.descriptorFiles() {
		set, err := fs.ReadFile(fsys, name)
		switch {
		case errors.Is(err, fs.ErrNotExist), errors.Is(err, fs.ErrInvalid):
			continue
		case err != nil:
			return fmt.Errorf("reading descriptor set %s: %w", name, err)
		}
		if s.Descriptors == nil {
			s.Descriptors = map[string][]byte{}
		}
		s.Descriptors[name] = set
	}
	return nil
}

// descriptorFiles returns the names of the descriptor sets of codecs.
func (s *Spec) descriptorFiles() []string {
	var names []string
	for _, r := range s.Rules {
		for _, p := range r.Put {
			if args, ok := strings.CutPrefix(p.Codec, "proto("); ok {
				name, _, _ := strings.Cut(args, ",")
				names = append(names, strings.TrimSpace(name))
			}
		}
	}
	return names
}
