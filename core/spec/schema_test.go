package spec

import (
	"bytes"
	"flag"
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "write schema.json and the .want files anew")

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
