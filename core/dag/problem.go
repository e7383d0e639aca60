package dag

import "fmt"

// Field names a part of a definition by the key that the author wrote.
type Field string

// The fields that a Path can name. The empty Field is the thing itself.
const (
	FieldName           Field = "name"
	FieldTasks          Field = "tasks"
	FieldDefaultQueue   Field = "default_queue"
	FieldDefaultTimeout Field = "default_task_timeout_s"
	FieldMaxParallelism Field = "max_parallelism"
	FieldKwargs         Field = "kwargs"
	FieldDependsOn      Field = "depends_on"
	FieldQueue          Field = "queue"
	FieldDepPolicy      Field = "dep_policy"
	FieldNumRetries     Field = "num_retries"
	FieldTimeout        Field = "timeout"
	FieldCondition      Field = "condition"
)

// Path is a place in a definition.
type Path struct {
	// Task is the index of the task, -1 for the definition itself.
	Task int
	// Field is empty for the whole task or definition.
	Field Field
	// Element is the index in Field (an entry of depends_on or kwargs), -1 for
	// the whole field.
	Element int
}

// Top returns the path of a field of the definition itself.
func Top(f Field) Path { return Path{Task: -1, Field: f, Element: -1} }

// At returns the path of a field of the task with index task.
func At(task int, f Field) Path { return Path{Task: task, Field: f, Element: -1} }

// AtElement returns the path of an element of a field of a task.
func AtElement(task int, f Field, element int) Path {
	return Path{Task: task, Field: f, Element: element}
}

// String returns the path in the notation of JSON path, without the root.
func (p Path) String() string {
	s := string(p.Field)
	if p.Task >= 0 {
		s = fmt.Sprintf("tasks[%d]", p.Task)
		if p.Field != "" {
			s += "." + string(p.Field)
		}
	}
	if p.Element >= 0 {
		s += fmt.Sprintf("[%d]", p.Element)
	}
	return s
}

// Problem is one thing that is wrong with a definition.
type Problem struct {
	Path Path
	// Message says what is wrong, in one sentence without the place.
	Message string
	// Remedy says what to do about it.
	Remedy string
	// Earlier is the other place of a repetition, nil otherwise.
	Earlier *Path
}

// Error returns place, message and remedy in one line.
func (p Problem) Error() string {
	s := p.Message
	if at := p.Path.String(); at != "" {
		s = at + ": " + s
	}
	if p.Remedy != "" {
		s += "; " + p.Remedy
	}
	return s
}

// MaxProblems bounds how many problems one call reports: past it, a person is
// helped no further and a hostile definition would only cost memory.
const MaxProblems = 1000

// collector keeps the first MaxProblems problems and counts the rest.
type collector struct {
	problems []Problem
	dropped  int
}

func (c *collector) add(p Path, message, remedy string) {
	c.addProblem(Problem{Path: p, Message: message, Remedy: remedy})
}

func (c *collector) addProblem(p Problem) {
	if len(c.problems) == MaxProblems {
		c.dropped++
		return
	}
	c.problems = append(c.problems, p)
}

func (c *collector) result() []Problem {
	if c.dropped > 0 {
		return append(c.problems, Problem{
			Path:    Top(""),
			Message: fmt.Sprintf("%d more faults are not shown", c.dropped),
			Remedy:  "correct the ones above first",
		})
	}
	return c.problems
}
