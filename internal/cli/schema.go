package cli

import (
	"github.com/spf13/cobra"

	"jobq/core/spec"
)

func newSchema(a *app) *cobra.Command {
	return a.command(verb{
		use: "schema", short: "Print the JSON Schema of workflow files", group: groupFile,
		long: `Print the JSON Schema (2020-12) of workflow files, for editors:

  jobq schema > workflow.schema.json

and as the first line of a file: # yaml-language-server: $schema=workflow.schema.json`,
		run: func(*cobra.Command, []string) error {
			if _, err := a.out.Write(spec.Schema()); err != nil {
				return unwritten(err)
			}
			return nil
		},
	})
}
