package spec

import (
	"bytes"
	"encoding/json"
	"os"
	"reflect"
	"testing"
	"unicode/utf8"

	"jobq/core/dag"
)

// FuzzParse holds for every text, in both formats: no panic, a definition or an
// error but never both, places inside of the text, and a definition that is
// valid and survives storage. Reading by task means what reading the whole does.
func FuzzParse(f *testing.F) {
	for _, dir := range []string{"ok", "bad"} {
		for _, path := range corpusFiles(f, dir) {
			text, err := os.ReadFile(path)
			if err != nil {
				f.Fatal(err)
			}
			f.Add(text, bytes.HasPrefix(bytes.TrimSpace(text), []byte("{")))
		}
	}
	limits := Limits{MaxBytes: 1 << 16, MaxValues: 2000, MaxTasks: 200, MaxDependencies: 500, MaxDepth: 20}
	f.Fuzz(func(t *testing.T, text []byte, asJSON bool) {
		o := &Options{Format: FormatYAML, Limits: limits, CheckCondition: markConditions}
		if asJSON {
			o.Format = FormatJSON
		}
		d, ds := Parse("f", text, o)
		checkDiagnostics(t, text, ds)
		if (d == nil) != ds.HasErrors() {
			t.Fatalf("definition %v beside %v", d, ds)
		}
		if d != nil {
			checkDefinition(t, d)
		}
		if !asJSON {
			checkWays(t, text, o)
		}
	})
}

func checkDiagnostics(t *testing.T, text []byte, ds Diagnostics) {
	var b bytes.Buffer
	if err := ds.Render(&b); err != nil || !utf8.Valid(b.Bytes()) {
		t.Fatalf("Render: %v, %q", err, b.Bytes())
	}
	for _, c := range b.String() {
		if c < ' ' && c != '\n' || c == 0x7f {
			t.Fatalf("the control character %U reaches the terminal: %q", c, b.String())
		}
	}
	if _, err := json.Marshal(ds); err != nil {
		t.Fatal(err)
	}
	for _, d := range ds {
		if d.Message == "" || d.Line < 0 || d.Line > bytes.Count(text, []byte("\n"))+bytes.Count(text, []byte("\r"))+len(text)+2 || d.Column < 0 || d.Column > len(text)+2 {
			t.Fatalf("a diagnostic is out of place: %+v", d)
		}
	}
}

func checkDefinition(t *testing.T, d *dag.Definition) {
	if problems := dag.Validate(d); problems != nil {
		t.Fatalf("the definition is not valid: %v", problems)
	}
	b, err := dag.Encode(d)
	if err != nil {
		t.Fatal(err)
	}
	back, err := dag.Decode(b)
	if err != nil || dag.Hash(back) != dag.Hash(d) {
		t.Fatalf("the definition does not survive storage: %v", err)
	}
}

// checkWays compares the two ways of reading YAML where both are open.
func checkWays(t *testing.T, text []byte, o *Options) {
	byTask, whole := newReader("f", text, o), newReader("f", text, o)
	byTask.partSize = 1 // every task alone
	if !byTask.acceptText() || !whole.acceptText() {
		return
	}
	if at, _ := firstControl(byTask.text); at >= 0 {
		return
	}
	byTask.unusualBreaks = hasUnusualBreaks(byTask.text)
	whole.unusualBreaks = byTask.unusualBreaks
	if !byTask.readByTask() || byTask.stopped {
		return
	}
	whole.readWhole()
	a, dsA := byTask.finish()
	b, dsB := whole.finish()
	if !reflect.DeepEqual(a, b) || !reflect.DeepEqual(dsA, dsB) {
		t.Fatalf("by task: %v %v\nas a whole: %v %v", a, dsA, b, dsB)
	}
}
