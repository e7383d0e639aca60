package dag

import (
	"encoding/json"
	"time"
)

// Definition is a workflow as its author wrote it. It is immutable once it has
// been validated.
type Definition struct {
	// Name is free text shown to people; it need not be unique.
	Name string `json:"name"`
	// DefaultQueue is the queue of tasks that name none. Never empty after
	// ApplyDefaults.
	DefaultQueue string `json:"default_queue,omitempty"`
	// DefaultTimeout bounds each start of a task that has no Timeout; 0 is no bound.
	DefaultTimeout time.Duration `json:"default_timeout,omitempty"`
	// MaxParallelism bounds how many tasks are ready or running at once; 0 is no bound.
	MaxParallelism int `json:"max_parallelism,omitempty"`
	// ResultPolicy decides when the workflow counts as completed.
	ResultPolicy ResultPolicy `json:"result_policy,omitempty"`
	// Tasks keeps the order of the file.
	Tasks []Task `json:"tasks"`
}

// Task is one node of the graph.
type Task struct {
	Name      string   `json:"name"`
	Kwargs    []Kwarg  `json:"kwargs,omitempty"`
	DependsOn []string `json:"depends_on,omitempty"`
	// Queue is empty until ApplyDefaults.
	Queue     string    `json:"queue,omitempty"`
	DepPolicy DepPolicy `json:"dep_policy,omitzero"`
	// NumRetries is the number of further attempts after the first failed one.
	NumRetries int `json:"num_retries,omitempty"`
	// Condition is the source text, empty for none.
	Condition string `json:"condition,omitempty"`
	// Timeout bounds each start; 0 means DefaultTimeout of the definition.
	Timeout time.Duration `json:"timeout,omitempty"`
}

// Kwarg is one entry of kwargs in the order of the file. Value is JSON: for
// cmd, cwd and the values of env always a string with the source text.
type Kwarg struct {
	Key   string          `json:"key"`
	Value json.RawMessage `json:"value"`
}

// Kwarg returns the value of the kwarg called key.
func (t *Task) Kwarg(key string) (json.RawMessage, bool) {
	for _, k := range t.Kwargs {
		if k.Key == key {
			return k.Value, true
		}
	}
	return nil, false
}
