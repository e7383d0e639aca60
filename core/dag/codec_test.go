package dag

import (
	"bytes"
	"compress/gzip"
	"flag"
	"io"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"jobq/core/fault"
)

var update = flag.Bool("update", false, "write golden files that do not exist yet")

func fullDefinition() *Definition {
	return &Definition{
		Name: "full <&>", DefaultQueue: "cpu-general", DefaultTimeout: time.Hour, MaxParallelism: 7, ResultPolicy: AllSinksSucceed,
		Tasks: []Task{
			{Name: "a/ü", Queue: "cpu-general", Kwargs: kwargs("cmd", `"echo <a> && true"`, "n", `9007199254740993`, "env", `{"B":"no","A":"2024-01-01"}`)},
			{Name: "b", Queue: "gpu", DependsOn: []string{"a/ü"}, DepPolicy: DepPolicy{AtLeast, 1}, NumRetries: 3, Condition: `inputs["a/ü"].x < 0.1`, Timeout: 90 * time.Second},
			{Name: "c", Queue: "gpu", DependsOn: []string{"a/ü", "b"}, DepPolicy: DepPolicy{Kind: AllSettled}},
		},
	}
}

func TestEncodeDecode(t *testing.T) {
	t.Parallel()
	want := fullDefinition()
	b, err := Encode(want)
	if err != nil {
		t.Fatal(err)
	}
	got, err := Decode(b)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("Decode(Encode(d)) (-want +got):\n%s", diff)
	}
}

// The golden file is what version 1 wrote on its first day. It is never
// rewritten: a change of the form gets a new version and a new file.
func TestDecodeGolden(t *testing.T) {
	t.Parallel()
	const path = "testdata/definition.v1.json"
	if *update {
		if _, err := os.Stat(path); err == nil {
			t.Fatalf("%s exists and is never rewritten", path)
		}
		b, err := Encode(fullDefinition())
		if err != nil {
			t.Fatal(err)
		}
		z, _ := gzip.NewReader(bytes.NewReader(b))
		text, _ := io.ReadAll(z)
		if err := os.WriteFile(path, text, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	got, err := Decode(b)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(fullDefinition(), got); diff != "" {
		t.Errorf("golden (-want +got):\n%s", diff)
	}
}

func TestDecodeRefusals(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		in   string
		want fault.Code
	}{
		"later version":        {`{"v":2,"definition":{"tasks":3}}`, fault.TooNew},
		"no version":           {`{"definition":{"name":"w","tasks":[]}}`, fault.Corrupt},
		"no content":           {`{"v":1}`, fault.Corrupt},
		"not JSON":             {`nonsense`, fault.Corrupt},
		"empty":                {``, fault.Corrupt},
		"cut compression":      {"\x1f\x8b\x08", fault.Corrupt},
		"unknown dep_policy":   {`{"v":1,"definition":{"name":"w","tasks":[{"name":"a","dep_policy":"most"}]}}`, fault.Corrupt},
		"wrong type of a list": {`{"v":1,"definition":{"name":"w","tasks":{}}}`, fault.Corrupt},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if _, err := Decode([]byte(tc.in)); !fault.Is(err, tc.want) {
				t.Errorf("Decode = %v, want %v", err, tc.want)
			}
		})
	}
}

func TestDecodeIgnoresUnknownFields(t *testing.T) {
	t.Parallel()
	d, err := Decode([]byte(`{"v":1,"later":1,"definition":{"name":"w","later":2,"tasks":[{"name":"a","later":3}]}}`))
	if err != nil || d.Tasks[0].Name != "a" {
		t.Errorf("Decode = %v, %v", d, err)
	}
}

func TestHash(t *testing.T) {
	t.Parallel()
	base := Hash(fullDefinition())
	if base != Hash(fullDefinition()) || len(base) != 64 {
		t.Fatalf("Hash = %q, not stable or not SHA-256", base)
	}
	for name, tc := range map[string]struct {
		change func(*Definition)
		same   bool
	}{
		"other order of kwargs":        {func(d *Definition) { k := d.Tasks[0].Kwargs; k[0], k[1] = k[1], k[0] }, true},
		"other order in a nested map":  {func(d *Definition) { d.Tasks[0].Kwargs[2].Value = []byte(`{ "A":"2024-01-01", "B":"no"}`) }, true},
		"queue left to the default":    {func(d *Definition) { d.Tasks[0].Queue = "" }, true},
		"other command":                {func(d *Definition) { d.Tasks[0].Kwargs[0].Value = []byte(`"false"`) }, false},
		"other big number":             {func(d *Definition) { d.Tasks[0].Kwargs[1].Value = []byte(`9007199254740992`) }, false},
		"other order of tasks":         {func(d *Definition) { d.Tasks[1], d.Tasks[2] = d.Tasks[2], d.Tasks[1] }, false},
		"other order of dependencies":  {func(d *Definition) { p := d.Tasks[2].DependsOn; p[0], p[1] = p[1], p[0] }, false},
		"other result policy":          {func(d *Definition) { d.ResultPolicy = AllTasksSucceed }, false},
		"a value moved to another key": {func(d *Definition) { d.Tasks[0].Kwargs[1].Key = "m" }, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := fullDefinition()
			tc.change(d)
			before := strings.Clone(d.Tasks[0].Queue)
			if got := Hash(d) == base; got != tc.same {
				t.Errorf("equal to the base = %v, want %v", got, tc.same)
			}
			if d.Tasks[0].Queue != before {
				t.Error("Hash changed its argument")
			}
		})
	}
}
