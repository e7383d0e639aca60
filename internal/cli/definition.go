package cli

import (
	"context"
	"io"
	"os"
	"slices"
	"strings"

	"jobq/core/cond"
	"jobq/core/dag"
	"jobq/core/fault"
	"jobq/core/spec"
	"jobq/internal/config"
)

// readDefinition reads and parses the workflow file called name; "-" is standard
// input. The error is about reading; what is wrong with the text is in the
// diagnostics.
func (a *app) readDefinition(ctx context.Context, name string) (*dag.Definition, spec.Diagnostics, error) {
	if err := ctx.Err(); err != nil {
		return nil, nil, fault.Wrap(fault.Canceled, err, "reading was stopped")
	}
	limits := spec.Limits{MaxBytes: a.values.Bytes(config.MaxDefinition)}
	var in io.Reader = a.in
	if name != "-" {
		file, err := os.Open(name)
		if err != nil {
			return nil, nil, fileError(name, err)
		}
		defer file.Close()
		if info, err := file.Stat(); err == nil && info.IsDir() {
			return nil, nil, fault.Newf(fault.Invalid, "%s is a directory", name).WithRemedy("name a workflow file in it")
		}
		in = file
	}
	text, err := spec.ReadText(fileTitle(name), in, limits)
	if err != nil {
		return nil, nil, err
	}
	d, ds := spec.Parse(name, text, &spec.Options{Limits: limits, CheckCondition: checkCondition})
	return d, ds, nil
}

// fileTitle is what errors call the file of that name.
func fileTitle(name string) string {
	if name == "-" {
		return "standard input"
	}
	return name
}

// titled returns ds with the titles of files, for people.
func titled(ds spec.Diagnostics) spec.Diagnostics {
	ds = slices.Clone(ds)
	for i := range ds {
		ds[i].File = fileTitle(ds[i].File)
	}
	return ds
}

func fileError(name string, err error) error {
	if name == "" {
		return fault.New(fault.Invalid, "the name of the file is empty").WithRemedy("is a variable of the shell not set?")
	}
	if os.IsNotExist(err) {
		return fault.Newf(fault.Invalid, "%s does not exist", name).WithRemedy("check the name of the file")
	}
	return fault.Wrapf(fault.Invalid, err, "%s cannot be read", fileTitle(name)).WithRemedy("check the file and its rights")
}

// checkCondition lends the language of conditions to package spec.
func checkCondition(source string, parents []string) []spec.ConditionFault {
	expression, faults := cond.Parse(source)
	if expression != nil {
		faults = expression.Check(parents)
	}
	out := make([]spec.ConditionFault, len(faults))
	for i, f := range faults {
		out[i] = spec.ConditionFault{Line: f.Line, Column: f.Column, Message: f.Message, Hint: f.Hint}
	}
	return out
}

// accept reads a workflow file for a verb that goes on with it. It prints the
// diagnostics and fails where there are errors among them.
func (a *app) accept(ctx context.Context, name string) (*dag.Definition, error) {
	return a.acceptTo(ctx, name, spec.Warning, func(text string) { io.WriteString(a.err, text) })
}

// acceptTo is accept with tell for the diagnostics that are at least as grave as
// least: what queue a task gets, as the notes say, means nothing on one machine.
func (a *app) acceptTo(ctx context.Context, name string, least spec.Severity, tell func(text string)) (*dag.Definition, error) {
	d, ds, err := a.readDefinition(ctx, name)
	if err != nil {
		return nil, err
	}
	ds = slices.DeleteFunc(ds, func(d spec.Diagnostic) bool { return d.Severity > least })
	if len(ds) > 0 && (ds.HasErrors() || !a.quiet()) {
		var text strings.Builder
		titled(ds).Render(&text) // a Builder takes everything
		tell(text.String())
	}
	if ds.HasErrors() {
		remedy := "correct what is listed above"
		if name != "-" {
			remedy += "; `jobq validate " + shellQuote(name) + "` checks it again"
		}
		return nil, fault.Newf(fault.Invalid, "%s is not a valid workflow: %s", fileTitle(name), count(ds.Count(spec.Error), "fault")).WithRemedy(remedy)
	}
	return d, nil
}
