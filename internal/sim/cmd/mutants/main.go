// Command mutants puts each defect of internal/sim/mutants into a copy of the
// module, plays the campaign there, and prints which rule found it after how
// many histories.
package main

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"jobq/internal/sim"
)

func main() {
	root := flag.String("root", ".", "the module")
	only := flag.String("only", "", "names of mutants, with commas; empty means all")
	last := flag.Uint64("last", 5000, "histories on each queue before a mutant counts as survived")
	doc := flag.String("doc", "", "file whose table of mutants is to be rewritten")
	flag.Parse()
	survived, err := run(*root, *only, *last, *doc)
	if err != nil {
		fmt.Fprintln(os.Stderr, "mutants:", err)
		os.Exit(2)
	}
	if survived > 0 {
		os.Exit(1)
	}
}

func run(root, only string, last uint64, doc string) (survived int, err error) {
	all, err := sim.ReadMutants(filepath.Join(root, "internal", "sim", "mutants"))
	if err != nil {
		return 0, err
	}
	copied, err := os.MkdirTemp("", "jobq-mutants-")
	if err != nil {
		return 0, err
	}
	defer os.RemoveAll(copied)
	if err := copyModule(root, copied); err != nil {
		return 0, err
	}
	var table strings.Builder
	table.WriteString("| defect | found by | after histories |\n|---|---|---|\n")
	for _, m := range all {
		if only != "" && !strings.Contains(","+only+",", ","+m.Name+",") {
			continue
		}
		line, found, err := hunt(m, copied, last)
		if err != nil {
			return survived, err
		}
		if !found {
			survived++
		}
		fmt.Print(line)
		table.WriteString(line)
	}
	if doc == "" {
		return survived, nil
	}
	return survived, sim.RewriteDocument(doc, "mutants", func(old string) string { return merge(old, table.String()) })
}

// copyModule copies what the simulation is built from.
func copyModule(from, to string) error {
	for _, name := range []string{"go.mod", "go.sum", "core", "store", "worker", filepath.Join("internal", "sim")} {
		err := filepath.WalkDir(filepath.Join(from, name), func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() {
				return err
			}
			if strings.HasSuffix(path, "_test.go") {
				return nil
			}
			rel, err := filepath.Rel(from, path)
			if err != nil {
				return err
			}
			text, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			if err := os.MkdirAll(filepath.Dir(filepath.Join(to, rel)), 0o755); err != nil {
				return err
			}
			return os.WriteFile(filepath.Join(to, rel), text, 0o644)
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// hunt plays the campaign with m in place and returns a line of the table.
func hunt(m sim.Mutant, root string, last uint64) (line string, found bool, err error) {
	undo, err := m.Apply(root)
	if err != nil {
		return "", false, err
	}
	defer func() {
		if failed := undo(); err == nil {
			err = failed
		}
	}()
	program := filepath.Join(root, "simulate")
	build := exec.Command("go", "build", "-trimpath", "-o", program, "./internal/sim/cmd/simulate")
	build.Dir = root
	if out, err := build.CombinedOutput(); err != nil {
		return fmt.Sprintf("| %s (`%s`) | **does not build** | |\n%s", m.What, m.Name, out), false, nil
	}
	var out, told bytes.Buffer
	c := exec.Command(program, "-json", "-stop", "1", "-small", "2", "-last", fmt.Sprint(last))
	c.Env = append(os.Environ(), "GOMAXPROCS=1") // one order of histories
	c.Stdout, c.Stderr = &out, &told
	failed := c.Run()
	var result struct {
		Histories int
		Oracle    string
	}
	if err := json.Unmarshal(out.Bytes(), &result); err != nil {
		if failed == nil {
			return "", false, err
		}
		return fmt.Sprintf("| %s (`%s`) | the program ends | |\n", m.What, m.Name), true, nil
	}
	if result.Oracle == "" {
		return fmt.Sprintf("| %s (`%s`) | **survived** | %d |\n", m.What, m.Name, result.Histories), false, nil
	}
	return fmt.Sprintf("| %s (`%s`) | %s | %d |\n", m.What, m.Name, result.Oracle, result.Histories), true, nil
}

// merge keeps the lines of defects that were not played now.
func merge(old, now string) string {
	name := func(line string) string {
		_, rest, _ := strings.Cut(line, "(`")
		name, _, _ := strings.Cut(rest, "`)")
		return name
	}
	lines := map[string]string{}
	for _, text := range []string{old, now} {
		for line := range strings.Lines(text) {
			if n := name(line); n != "" {
				lines[n] = line
			}
		}
	}
	var b strings.Builder
	b.WriteString("| defect | found by | after histories |\n|---|---|---|\n")
	for _, n := range slices.Sorted(maps.Keys(lines)) {
		b.WriteString(lines[n])
	}
	return b.String()
}
