package cli

import (
	"fmt"
	"runtime/debug"

	"github.com/spf13/cobra"
)

func newVersion(a *app) *cobra.Command {
	return a.command(verb{
		use: "version", short: "Print the version of this program", group: groupFile,
		run: func(*cobra.Command, []string) error {
			if _, err := fmt.Fprintln(a.out, "jobq", version()); err != nil {
				return unwritten(err)
			}
			return nil
		},
	})
}

// version returns the version that the program was built as, else the commit.
func version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	if v := info.Main.Version; v != "" && v != "(devel)" {
		return v
	}
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" && len(s.Value) >= 12 {
			return "devel-" + s.Value[:12]
		}
	}
	return "devel"
}
