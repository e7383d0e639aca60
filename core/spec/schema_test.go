package spec

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/santhosh-tekuri/jsonschema/v6"
	"gopkg.in/yaml.v3"

	"jobq/core/dag"
)

var update = flag.Bool("update", false, "write schema.json and the .want files anew")

const examplesDir = "../../examples"

func TestSchemaFileIsCurrent(t *testing.T) {
	t.Parallel()
	want, err := generateSchema()
	if err != nil {
		t.Fatal(err)
	}
	if *update {
		if err := os.WriteFile("schema.json", want, 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if !bytes.Equal(Schema(), want) {
		t.Errorf("schema.json is not what the table of keys gives; run `go test ./core/spec -update` (-want +have):\n%s", cmp.Diff(string(want), string(Schema())))
	}
}

func compiledSchema(t *testing.T) *jsonschema.Schema {
	t.Helper()
	text, err := generateSchema()
	if err != nil {
		t.Fatal(err)
	}
	document, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	if err := c.AddResource("schema.json", document); err != nil {
		t.Fatal(err)
	}
	s, err := c.Compile("schema.json")
	if err != nil {
		t.Fatalf("schema.json is not a schema: %v", err)
	}
	return s
}

// plainValue reads a file the way an editor does before it looks at the schema.
// It reports false where an editor would already complain about the format.
func plainValue(t *testing.T, path string) (any, bool) {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if strings.HasSuffix(path, ".yaml") {
		var document yaml.Node
		if yaml.Unmarshal(text, &document) != nil || len(document.Content) == 0 {
			return nil, false
		}
		r := newReader(path, text, nil)
		text = r.appendJSON(nil, r.resolve(document.Content[0]), dag.Top(""), 0)
		if len(r.diagnostics) > 0 {
			return nil, false
		}
	}
	value, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	return value, err == nil
}

func TestSchemaAcceptsRightFiles(t *testing.T) {
	t.Parallel()
	s := compiledSchema(t)
	for _, path := range append(corpusFiles(t, "ok"), exampleFiles(t)...) {
		value, ok := plainValue(t, path)
		if !ok {
			t.Errorf("%s cannot be read", path)
			continue
		}
		if err := s.Validate(value); err != nil {
			t.Errorf("%s: %v", path, err)
		}
	}
}

// The schema knows the keys, their types and ranges. What it cannot know about
// names that refer to each other, and what no editor lets through, is left to
// Parse; the list says so file by file.
func TestSchemaRefusesWrongFiles(t *testing.T) {
	t.Parallel()
	leftToParse := map[string]string{
		"condition.json":               "the language of conditions",
		"cycle-self.yaml":              "the graph",
		"cycle-two.yaml":               "the graph",
		"cycle-three.yaml":             "the graph",
		"duplicate-names.yaml":         "the graph",
		"long-line.json":               "the graph",
		"wrong-yaml-in-flow-list.yaml": "the graph",
		"escape-in-source.yaml":        "printable characters",
		"second-document.yaml":         "documents",
		"second-document-empty.yaml":   "documents",
		"second-document-broken.yaml":  "documents",
		"lone-surrogate.json":          "surrogates",
		"utf16-be.yaml":                "encodings",
		"utf16-le.yaml":                "encodings",
		"utf16-without-mark.yaml":      "encodings",
		"duplicate-keys.json":          "repeated keys",
	}
	s := compiledSchema(t)
	refused := 0
	for _, path := range corpusFiles(t, "bad") {
		value, ok := plainValue(t, path)
		if !ok {
			continue
		}
		name := filepath.Base(path)
		_, left := leftToParse[name]
		if err := s.Validate(value); err == nil && !left {
			t.Errorf("the schema accepts %s", name)
		} else if err != nil && left {
			t.Errorf("the schema refuses %s: take it off the list", name)
		} else if err != nil {
			refused++
		}
	}
	if refused < 20 {
		t.Errorf("the schema refuses %d wrong files, want at least 20", refused)
	}
}

func exampleFiles(t *testing.T) []string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(examplesDir, "*.[yj]*"))
	if err != nil || len(files) < 7 {
		t.Fatalf("%d examples in %s: %v", len(files), examplesDir, err)
	}
	return files
}

func TestExamples(t *testing.T) {
	t.Parallel()
	for _, path := range exampleFiles(t) {
		t.Run(filepath.Base(path), func(t *testing.T) {
			t.Parallel()
			text, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if d, ds := Parse(path, text, &Options{CheckCondition: acceptConditions}); d == nil || len(ds) > 0 {
				t.Errorf("Parse: %v", ds)
			}
			if strings.HasSuffix(path, ".json") {
				var top struct {
					Schema string `json:"$schema"`
				}
				if err := json.Unmarshal(text, &top); err != nil || top.Schema != "../core/spec/schema.json" {
					t.Errorf("$schema = %q, %v", top.Schema, err)
				}
			} else if !bytes.HasPrefix(text, []byte("# yaml-language-server: $schema=../core/spec/schema.json\n")) {
				t.Error("the first line does not name the schema")
			}
		})
	}
}
