package archtest

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// goFiles calls f with every Go file of the repository.
func goFiles(t *testing.T, f func(path string, file *ast.File, fset *token.FileSet)) {
	t.Helper()
	fset := token.NewFileSet()
	err := filepath.WalkDir(filepath.Join("..", ".."), func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && (d.Name() == "testdata" || d.Name() == "dist" || strings.HasPrefix(d.Name(), ".") && len(d.Name()) > 2) {
			return filepath.SkipDir
		}
		if !strings.HasSuffix(path, ".go") {
			return nil
		}
		file, err := parser.ParseFile(fset, path, nil, parser.ParseComments)
		if err != nil {
			return err
		}
		f(path, file, fset)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// TestNobodySleepsInTests holds HOUSE H8: time is passed in, virtual, or awaited.
func TestNobodySleepsInTests(t *testing.T) {
	t.Parallel()
	goFiles(t, func(path string, file *ast.File, fset *token.FileSet) {
		if !strings.HasSuffix(path, "_test.go") || usesSynctest(file) {
			return
		}
		for call := range calls(file) {
			if isSelector(call, "time", "Sleep") {
				t.Errorf("%s: time.Sleep in a test", fset.Position(call.Pos()))
			}
		}
	})
}

// TestNoPackageStartsWork holds the rule against init functions.
func TestNoPackageStartsWork(t *testing.T) {
	t.Parallel()
	goFiles(t, func(path string, file *ast.File, fset *token.FileSet) {
		for _, d := range file.Decls {
			if fn, ok := d.(*ast.FuncDecl); ok && fn.Recv == nil && fn.Name.Name == "init" {
				t.Errorf("%s: func init", fset.Position(fn.Pos()))
			}
		}
	})
}

// TestOnlyProgramsExit keeps os.Exit in cmd and in the mains of tests.
func TestOnlyProgramsExit(t *testing.T) {
	t.Parallel()
	goFiles(t, func(path string, file *ast.File, fset *token.FileSet) {
		if strings.Contains(path, string(os.PathSeparator)+"cmd"+string(os.PathSeparator)) || strings.HasSuffix(path, "_test.go") {
			return
		}
		for call := range calls(file) {
			if isSelector(call, "os", "Exit") {
				t.Errorf("%s: os.Exit outside cmd", fset.Position(call.Pos()))
			}
		}
	})
}

// timeless are the packages that the simulation drives, which have clock and
// goroutines from the scheduler, and the pure ones, which have neither.
var timeless = []string{
	"core/coord", "worker/protocol", "core/cond", "core/dag", "core/engine", "core/msg", "core/spec", "core/state", "core/port", "core/fault",
}

func TestTimeAndGoroutinesComeFromTheScheduler(t *testing.T) {
	t.Parallel()
	goFiles(t, func(path string, file *ast.File, fset *token.FileSet) {
		dir := filepath.ToSlash(filepath.Dir(path))
		driven := slices.ContainsFunc(timeless, func(p string) bool { return strings.HasSuffix(dir, "/"+p) })
		if !driven || strings.HasSuffix(path, "_test.go") {
			return
		}
		ast.Inspect(file, func(n ast.Node) bool {
			if g, ok := n.(*ast.GoStmt); ok {
				t.Errorf("%s: a goroutine of its own", fset.Position(g.Pos()))
			}
			return true
		})
		for call := range calls(file) {
			for _, name := range []string{"Now", "Sleep", "After", "NewTimer", "NewTicker", "Since", "AfterFunc"} {
				if isSelector(call, "time", name) {
					t.Errorf("%s: time.%s, which the package must be given", fset.Position(call.Pos()), name)
				}
			}
		}
	})
}

func calls(file *ast.File) func(yield func(*ast.CallExpr) bool) {
	return func(yield func(*ast.CallExpr) bool) {
		more := true
		ast.Inspect(file, func(n ast.Node) bool {
			if c, ok := n.(*ast.CallExpr); ok && more {
				more = yield(c)
			}
			return more
		})
	}
}

func isSelector(c *ast.CallExpr, pkg, name string) bool {
	s, ok := c.Fun.(*ast.SelectorExpr)
	if !ok || s.Sel.Name != name {
		return false
	}
	id, ok := s.X.(*ast.Ident)
	return ok && id.Name == pkg
}

func usesSynctest(file *ast.File) bool {
	for _, i := range file.Imports {
		if i.Path.Value == `"testing/synctest"` {
			return true
		}
	}
	return false
}
