package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"jobq/core/cond"
	"jobq/core/fault"
)

// conditionAnswer is the answer of condition --json.
type conditionAnswer struct {
	// Outcome is true, false, error or, for a condition that was only checked or
	// refused, valid or invalid.
	Outcome string           `json:"outcome"`
	Reason  string           `json:"reason,omitempty"`
	Values  []conditionValue `json:"values,omitempty"`
	Faults  []conditionFault `json:"faults,omitempty"`
}

type conditionValue struct {
	Reference string `json:"reference"`
	Value     string `json:"value,omitempty"`
	Problem   string `json:"problem,omitempty"`
}

type conditionFault struct {
	Line    int    `json:"line,omitempty"`
	Column  int    `json:"column,omitempty"`
	Message string `json:"message"`
	Hint    string `json:"hint,omitempty"`
}

// maxInputs bounds what is read as the inputs of a condition, in bytes.
const maxInputs = 64 << 20

func newCondition(a *app) *cobra.Command {
	var inputs string
	var parents []string
	var check, asJSON bool
	cmd := a.command(verb{
		use: "condition EXPR", short: "Try a condition by hand", group: groupFile, least: 1, most: 1,
		long: `Evaluate a condition on outputs that a file holds: a JSON object from task names to outputs, where null
is a task without one. The exit code is 0 for true, 1 for false, and 2 for a condition that is
refused or has no answer. With --check nothing is evaluated.`,
		example: `  jobq condition 'inputs.train.mae < 0.1' --inputs outputs.json
  echo '{"train": {"mae": 0.03}}' | jobq condition 'inputs.train.mae < 0.1' --inputs -
  jobq condition --check 'all(inputs["train-*"].ok)' --depends-on train-a,train-b`,
		run: func(_ *cobra.Command, args []string) error {
			if check {
				return a.checkByHand(args[0], parents, asJSON)
			}
			outputs, err := a.readInputs(inputs)
			if err != nil {
				return err
			}
			return a.evaluateByHand(args[0], parents, outputs, asJSON)
		},
	})
	cmd.Flags().StringVar(&inputs, "inputs", "", "read the outputs from `FILE`; - is standard input")
	cmd.Flags().BoolVar(&check, "check", false, "only check the condition against --depends-on")
	cmd.Flags().StringSliceVar(&parents, "depends-on", nil, "the `NAMES` of the parents, separated by commas; else those in --inputs")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON object")
	return cmd
}

func (a *app) checkByHand(source string, parents []string, asJSON bool) error {
	expression, faults := cond.Parse(source)
	if expression != nil {
		faults = expression.Check(parents)
	}
	if len(faults) > 0 {
		return a.refuse(source, faults, asJSON)
	}
	if asJSON {
		return printJSON(a.out, conditionAnswer{Outcome: "valid"})
	}
	return a.print("valid")
}

func (a *app) evaluateByHand(source string, parents []string, outputs map[string]json.RawMessage, asJSON bool) error {
	names := parents
	if len(names) == 0 {
		names = slices.Sorted(maps.Keys(outputs))
	}
	program, faults := cond.CompileTolerant(source, names)
	if len(faults) > 0 {
		return a.refuse(source, faults, asJSON)
	}
	inputs := make(map[string]cond.Input, len(names))
	for name, output := range outputs {
		if string(output) == "null" {
			output = nil
		}
		inputs[name] = cond.Input{Output: output, Completed: output != nil}
	}
	result := program.Evaluate(inputs)
	answer := conditionAnswer{Outcome: result.Outcome.String(), Reason: result.Reason}
	for _, e := range result.Trace {
		answer.Values = append(answer.Values, conditionValue{e.Reference, e.Value, e.Problem})
	}
	if result.Err != nil {
		answer.Faults = faultViews([]cond.Fault{*result.Err})
	}
	if err := a.printCondition(answer, asJSON); err != nil {
		return err
	}
	switch result.Outcome {
	case cond.True:
		return nil
	case cond.False:
		return ended(exitFailed)
	default:
		return ended(exitInvalid)
	}
}

func (a *app) printCondition(answer conditionAnswer, asJSON bool) error {
	if asJSON {
		return printJSON(a.out, answer)
	}
	if err := a.print(answer.Outcome); err != nil {
		return err
	}
	if a.quiet() {
		return nil
	}
	fmt.Fprintln(a.err, "because", line(answer.Reason))
	for _, v := range answer.Values {
		fmt.Fprintf(a.err, "  %s = %s\n", line(v.Reference), line(orProblem(v)))
	}
	return nil
}

func orProblem(v conditionValue) string {
	if v.Problem != "" {
		return "(" + v.Problem + ")"
	}
	return v.Value
}

// refuse answers a condition that cannot be compiled.
func (a *app) refuse(source string, faults []cond.Fault, asJSON bool) error {
	if asJSON {
		if err := printJSON(a.out, conditionAnswer{Outcome: "invalid", Faults: faultViews(faults)}); err != nil {
			return err
		}
		return ended(exitInvalid)
	}
	if err := a.print("invalid"); err != nil {
		return err
	}
	rows := strings.Split(source, "\n")
	for _, f := range faults {
		fmt.Fprintf(a.err, "%d:%d: %s\n", f.Line, f.Column, line(f.Message))
		if f.Line > 0 && f.Line <= len(rows) {
			fmt.Fprintf(a.err, "    %s\n    %s^\n", line(rows[f.Line-1]), strings.Repeat(" ", max(f.Column-1, 0)))
		}
		if f.Hint != "" {
			fmt.Fprintf(a.err, "    = %s\n", line(f.Hint))
		}
	}
	return ended(exitInvalid)
}

func faultViews(faults []cond.Fault) []conditionFault {
	out := make([]conditionFault, len(faults))
	for i, f := range faults {
		out[i] = conditionFault{f.Line, f.Column, f.Message, f.Hint}
	}
	return out
}

// readInputs reads the object of outputs; without a name there are none.
func (a *app) readInputs(name string) (map[string]json.RawMessage, error) {
	if name == "" {
		return nil, nil
	}
	in := a.in
	if name != "-" {
		file, err := os.Open(name)
		if err != nil {
			return nil, fileError(name, err)
		}
		defer file.Close()
		in = file
	}
	body, err := io.ReadAll(io.LimitReader(in, maxInputs+1))
	if err != nil {
		return nil, fileError(name, err)
	}
	if len(body) > maxInputs {
		return nil, fault.Newf(fault.TooLarge, "%s is longer than %d bytes", fileTitle(name), maxInputs)
	}
	var outputs map[string]json.RawMessage
	if !json.Valid(body) || json.Unmarshal(body, &outputs) != nil {
		return nil, fault.Newf(fault.Invalid, "%s is not a JSON object from task names to outputs", fileTitle(name)).
			WithRemedy(`write it as in {"train": {"mae": 0.03}, "notify": null}`)
	}
	return outputs, nil
}
