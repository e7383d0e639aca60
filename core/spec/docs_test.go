package spec

import (
	"os"
	"regexp"
	"strings"
	"testing"
)

const referencePage = "../../docs/workflow-file.md"

// The page that people read names every key that the table has.
func TestReferenceNamesEveryKey(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile(referencePage)
	if err != nil {
		t.Fatal(err)
	}
	names := append(keyNames(topKeys()), keyNames(taskKeys())...)
	for _, k := range shellKeys() {
		names = append(names, k.name)
	}
	for _, name := range names {
		if !strings.Contains(string(page), "\n| `"+name+"` |") {
			t.Errorf("%s has no row for %s", referencePage, name)
		}
	}
}

// The workflow on that page is one.
func TestReferenceExample(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile(referencePage)
	if err != nil {
		t.Fatal(err)
	}
	block := regexp.MustCompile("(?s)```yaml\n(# yaml-language-server.*?)```").FindSubmatch(page)
	if block == nil {
		t.Fatal("the page has no example")
	}
	if d, ds := Parse("example.yaml", block[1], nil); d == nil || len(ds) > 0 {
		t.Errorf("Parse: %v", ds)
	}
}
