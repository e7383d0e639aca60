package dag

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"
)

// Limits of the numbers and texts of a definition.
const (
	MaxWorkflowName = 1024
	MaxNumRetries   = 1_000_000
	MaxTimeout      = 10 * 365 * 24 * time.Hour
	MaxKwargKey     = 256
)

// DefaultQueueName is the queue of a task when neither it nor the definition
// names one.
const DefaultQueueName = "default"

// ApplyDefaults fills DefaultQueue and the Queue of every task that has none.
// It returns what the author should know about it: notes, not faults.
func ApplyDefaults(d *Definition) []Problem {
	var notes []Problem
	usesDefault := false
	for i := range d.Tasks {
		usesDefault = usesDefault || d.Tasks[i].Queue == ""
	}
	if d.DefaultQueue == "" {
		d.DefaultQueue = DefaultQueueName
		if usesDefault {
			notes = append(notes, Problem{
				Path:    Top(FieldDefaultQueue),
				Message: `no default_queue is given: tasks without a queue use the queue "default"`,
				Remedy:  "set default_queue to choose another",
			})
		}
	}
	for i := range d.Tasks {
		if d.Tasks[i].Queue == "" {
			d.Tasks[i].Queue = d.DefaultQueue
		}
	}
	return notes
}

// TimeoutOf returns the bound of each start of task i, 0 for none.
func (d *Definition) TimeoutOf(i int) time.Duration {
	if t := d.Tasks[i].Timeout; t != 0 {
		return t
	}
	return d.DefaultTimeout
}

// Validate returns everything that is wrong with d, at most MaxProblems, or
// nil: first the fields in the order of the file, then the graph. Conditions are not looked into: that needs
// their language. It does not change d, and accepts it before and after
// ApplyDefaults.
func Validate(d *Definition) []Problem {
	var c collector
	validateTop(d, &c)
	for i := range d.Tasks {
		validateTask(&d.Tasks[i], i, &c)
	}
	newGraph(d, &c)
	return c.result()
}

func validateTop(d *Definition, c *collector) {
	switch {
	case d.Name == "":
		c.add(Top(FieldName), "the workflow has no name", "add `name: my-workflow` at the top")
	case len(d.Name) > MaxWorkflowName:
		c.add(Top(FieldName), tooLong("the workflow name "+Quote(d.Name), len(d.Name), MaxWorkflowName), "shorten it")
	case !utf8.ValidString(d.Name) || strings.ContainsFunc(d.Name, isControl):
		c.add(Top(FieldName), "the workflow name "+Quote(d.Name)+" contains a control character or is not valid UTF-8", "use printable characters")
	}
	if d.DefaultQueue != "" {
		c.addViolation(Top(FieldDefaultQueue), queueViolation(d.DefaultQueue))
	}
	if d.MaxParallelism < 0 {
		c.add(Top(FieldMaxParallelism), fmt.Sprintf("max_parallelism is %d; at least 1 is needed", d.MaxParallelism), "give the number of tasks that may run at once, or leave the key out")
	}
	validateTimeout(d.DefaultTimeout, Top(FieldDefaultTimeout), c)
	if len(d.Tasks) == 0 {
		c.add(Top(FieldTasks), "the workflow has no tasks", "add at least one task")
	}
}

func validateTask(t *Task, i int, c *collector) {
	c.addViolation(At(i, FieldName), taskNameViolation(t.Name))
	if t.Queue != "" {
		c.addViolation(At(i, FieldQueue), queueViolation(t.Queue))
	}
	if t.NumRetries < 0 || t.NumRetries > MaxNumRetries {
		c.add(At(i, FieldNumRetries), fmt.Sprintf("num_retries is %d; it must be between 0 and %d", t.NumRetries, MaxNumRetries), "give the number of further attempts after the first")
	}
	validateTimeout(t.Timeout, At(i, FieldTimeout), c)
	validatePolicy(t, i, c)
	validateKwargs(t, i, c)
}

func validateTimeout(t time.Duration, at Path, c *collector) {
	if t < 0 || t > MaxTimeout {
		c.add(at, fmt.Sprintf("the time limit is %v; it must be above 0 and at most ten years", t), "give a duration such as 30s, 10m or 2h, or a number of seconds")
	}
}

func validatePolicy(t *Task, i int, c *collector) {
	if t.DepPolicy.Kind != AtLeast {
		return
	}
	n, parents := t.DepPolicy.N, len(t.DependsOn)
	switch {
	case n < 1:
		c.add(At(i, FieldDepPolicy), fmt.Sprintf("dep_policy is %d; at least 1 is needed", n), "use all, any, all_settled, or the number of dependencies that must succeed")
	case n > parents:
		c.add(At(i, FieldDepPolicy), fmt.Sprintf("dep_policy wants %d dependencies to succeed, but depends_on has %d", n, parents), "lower the number or add dependencies")
	}
}

func validateKwargs(t *Task, i int, c *collector) {
	var seen map[string]bool
	if len(t.Kwargs) > 1 {
		seen = make(map[string]bool, len(t.Kwargs))
	}
	for e := range t.Kwargs {
		k := &t.Kwargs[e]
		at := AtElement(i, FieldKwargs, e)
		switch {
		case k.Key == "":
			c.add(at, "a key of kwargs is empty", "name it or remove it")
		case len(k.Key) > MaxKwargKey:
			c.add(at, tooLong("the kwargs key "+Quote(k.Key), len(k.Key), MaxKwargKey), "shorten it")
		case strings.HasPrefix(k.Key, ReservedPrefix):
			c.add(at, "the kwargs key "+Quote(k.Key)+` starts with "__", which is reserved for jobq`, "choose a key that starts otherwise")
		case seen[k.Key]:
			c.add(at, "the kwargs key "+Quote(k.Key)+" is given twice", "remove one of them")
		case !json.Valid(bytes.TrimSpace(k.Value)):
			c.add(at, "the value of the kwargs key "+Quote(k.Key)+" is not JSON", "give a value that JSON can hold")
		}
		if seen != nil {
			seen[k.Key] = true
		}
	}
}

func (c *collector) addViolation(at Path, v violation) {
	if v.message != "" {
		c.add(at, v.message, v.remedy)
	}
}

func isControl(r rune) bool { return r < 0x20 || r >= 0x7f && r < 0xa0 }
