package layout

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"
)

// ReadDescriptors reads the descriptor sets that codec proto names and that are
// in fsys. One that is missing is an error of Compile.
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

// descriptorFiles are the descriptor sets that codecs name.
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
