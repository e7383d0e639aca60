package sim

import (
	"fmt"
	"os"
	"strings"
)

// RewriteDocument replaces the part of a text file between the marks
// "<!-- name: begin -->" and "<!-- name: end -->" by what change makes of it.
func RewriteDocument(file, name string, change func(old string) string) error {
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	begin, end := "<!-- "+name+": begin -->\n", "<!-- "+name+": end -->\n"
	before, rest, ok1 := strings.Cut(string(text), begin)
	old, after, ok2 := strings.Cut(rest, end)
	if !ok1 || !ok2 {
		return fmt.Errorf("%s has no part %q", file, name)
	}
	return os.WriteFile(file, []byte(before+begin+change(old)+end+after), 0o644)
}
