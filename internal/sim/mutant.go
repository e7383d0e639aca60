package sim

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Mutant is a defect that is put into a copy of the source, to see that a
// campaign finds it. Its text is a file of the folder mutants: what is wrong,
// then a file and the lines to be replaced, as often as needed.
type Mutant struct {
	Name string
	What string
	Cuts []Cut
}

// Cut replaces text that must occur exactly once in a file of the module.
type Cut struct{ File, Old, New string }

// ReadMutants reads the mutants of a folder, by name.
func ReadMutants(folder string) ([]Mutant, error) {
	paths, err := filepath.Glob(filepath.Join(folder, "*.txt"))
	if err != nil {
		return nil, err
	}
	slices.Sort(paths)
	var all []Mutant
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			return nil, err
		}
		m, err := parseMutant(string(text))
		if err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		m.Name = strings.TrimSuffix(filepath.Base(path), ".txt")
		all = append(all, m)
	}
	return all, nil
}

func parseMutant(text string) (Mutant, error) {
	what, rest, _ := strings.Cut(text, "\n")
	m := Mutant{What: what}
	for {
		_, after, found := strings.Cut(rest, "\n--- ")
		if !found {
			break
		}
		file, after, ok1 := strings.Cut(after, "\n<<<<\n")
		from, after, ok2 := strings.Cut(after, "\n====\n")
		to, after, ok3 := strings.Cut(after, "\n>>>>\n")
		if !ok3 { // nothing takes the place
			to, after, ok3 = strings.Cut("\n"+to, "\n>>>>\n")
		}
		if !ok1 || !ok2 || !ok3 {
			return Mutant{}, fmt.Errorf("a cut is not complete")
		}
		m.Cuts = append(m.Cuts, Cut{file, from, strings.TrimPrefix(to, "\n")})
		rest = "\n" + after
	}
	if len(m.Cuts) == 0 {
		return Mutant{}, fmt.Errorf("it cuts nothing")
	}
	return m, nil
}

// Apply makes the cuts in the module at root and returns what undoes them.
func (m Mutant) Apply(root string) (undo func() error, err error) {
	before := map[string][]byte{}
	undo = func() error {
		for file, text := range before {
			if err := os.WriteFile(filepath.Join(root, file), text, 0o644); err != nil {
				return err
			}
		}
		return nil
	}
	for _, c := range m.Cuts {
		path := filepath.Join(root, c.File)
		text, err := os.ReadFile(path)
		if err != nil {
			return undo, err
		}
		if n := strings.Count(string(text), c.Old); n != 1 {
			return undo, fmt.Errorf("mutant %s: %s has %d places that match, not one", m.Name, c.File, n)
		}
		if before[c.File] == nil {
			before[c.File] = text
		}
		if err := os.WriteFile(path, []byte(strings.Replace(string(text), c.Old, c.New, 1)), 0o644); err != nil {
			return undo, err
		}
	}
	return undo, nil
}
