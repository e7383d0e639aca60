package cli

import (
	"fmt"

	"github.com/spf13/cobra"

	"jobq/core/dag"
	"jobq/core/fault"
	"jobq/core/spec"
)

// fileReport is what validate says of one file.
type fileReport struct {
	File         string           `json:"file"`
	Valid        bool             `json:"valid"`
	Name         string           `json:"name,omitempty"`
	Tasks        int              `json:"tasks,omitempty"`
	Dependencies int              `json:"dependencies,omitempty"`
	Levels       int              `json:"levels,omitempty"`
	Diagnostics  spec.Diagnostics `json:"diagnostics"`
}

// validateReport is the answer of validate --json.
type validateReport struct {
	Valid bool         `json:"valid"`
	Files []fileReport `json:"files"`
}

func newValidate(a *app) *cobra.Command {
	var asJSON bool
	cmd := a.command(verb{
		use: "validate FILE...", short: "Check workflow files and say everything that is wrong", group: groupFile, least: 1, most: -1,
		long: `Check workflow files and say everything that is wrong, each fault with its place and what to do.
No store is opened. Verdicts go to standard output, faults to standard error.`,
		example: "  jobq validate pipeline.yaml\n  jobq validate workflows/*.yaml --json",
		run: func(cmd *cobra.Command, files []string) error {
			report := validateReport{Valid: true, Files: []fileReport{}}
			for _, name := range files {
				d, ds, err := a.readDefinition(cmd.Context(), name)
				if fault.Is(err, fault.Canceled) {
					return err
				}
				if err != nil {
					ds = spec.Diagnostics{{File: name, Message: err.Error(), Remedy: fault.RemedyOf(err)}}
				}
				r := reportOf(name, d, ds)
				report.Valid = report.Valid && r.Valid
				report.Files = append(report.Files, r)
				if !asJSON {
					if err := a.printVerdict(r); err != nil {
						return err
					}
				}
			}
			if asJSON {
				if err := printJSON(a.out, report); err != nil {
					return err
				}
			}
			if !report.Valid {
				return ended(exitInvalid)
			}
			return nil
		},
	})
	cmd.Flags().BoolVar(&asJSON, "json", false, "print the verdicts and faults as one JSON object")
	return cmd
}

func reportOf(name string, d *dag.Definition, ds spec.Diagnostics) fileReport {
	r := fileReport{File: name, Valid: !ds.HasErrors(), Diagnostics: ds}
	if r.Diagnostics == nil {
		r.Diagnostics = spec.Diagnostics{}
	}
	if d == nil {
		return r
	}
	r.Name, r.Tasks = d.Name, len(d.Tasks)
	if g, problems := dag.NewGraph(d); len(problems) == 0 {
		r.Dependencies, r.Levels = g.Edges(), len(g.LevelWidths())
	}
	return r
}

func (a *app) printVerdict(r fileReport) error {
	if err := titled(r.Diagnostics).Render(a.err); err != nil {
		return unwritten(err)
	}
	verdict := fmt.Sprintf("%s: OK, %s", fileTitle(r.File), shapeText(r))
	if !r.Valid {
		verdict = fmt.Sprintf("%s: FAIL, %s", fileTitle(r.File), count(r.Diagnostics.Count(spec.Error), "fault"))
	}
	if _, err := fmt.Fprintln(a.out, plain(verdict)); err != nil {
		return unwritten(err)
	}
	return nil
}

func shapeText(r fileReport) string {
	dependencies := fmt.Sprintf("%d dependencies", r.Dependencies)
	if r.Dependencies == 1 {
		dependencies = "1 dependency"
	}
	return fmt.Sprintf("%s, %s, %s", count(r.Tasks, "task"), dependencies, count(r.Levels, "level"))
}
