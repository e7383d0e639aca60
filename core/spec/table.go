package spec

import (
	"gopkg.in/yaml.v3"

	"jobq/core/dag"
)

// key is one row of the table that the reader, the schema and the hints share.
type key[T any] struct {
	name string
	// field is the part of the definition that the key fills; synonyms share it.
	field dag.Field
	doc   string
	// optional keys may be null, which means "not given".
	optional bool
	schema   schema
	read     func(*reader, pair, T)
}

type topTarget struct {
	definition *dag.Definition
	// streamed is the value of `tasks` if its tasks are read elsewhere.
	streamed *yaml.Node
}

type taskTarget struct {
	index  int
	task   *dag.Task
	source *taskSource
}

const timeoutDoc = "A duration such as 30s, 10m or 2h, or a number of seconds."

func topKeys() []key[*topTarget] {
	return []key[*topTarget]{
		{
			name: "name", field: dag.FieldName, schema: textSchema(dag.MaxWorkflowName),
			doc:  "What people call the workflow. It need not be unique.",
			read: (*reader).readWorkflowName,
		},
		{
			name: "default_queue", field: dag.FieldDefaultQueue, optional: true, schema: queueSchema(),
			doc:  "The queue of tasks that name none; without it, the queue \"default\".",
			read: (*reader).readDefaultQueue,
		},
		{
			name: "default_task_timeout_s", field: dag.FieldDefaultTimeout, optional: true, schema: durationSchema(),
			doc:  "How long each start of a task may take if the task does not say. " + timeoutDoc,
			read: (*reader).readDefaultTimeout,
		},
		{
			name: "max_parallelism", field: dag.FieldMaxParallelism, optional: true, schema: integerSchema(1, maxParallelism),
			doc:  "How many tasks of the workflow may be ready or running at once; no bound if left out.",
			read: (*reader).readMaxParallelism,
		},
		{
			name: "result_policy", field: fieldResultPolicy, optional: true, schema: enumSchema(resultPolicies()...),
			doc:  "When the workflow counts as completed: every task, or every task that nothing depends on, has completed or was skipped.",
			read: (*reader).readResultPolicy,
		},
		{
			name: "tasks", field: dag.FieldTasks, schema: tasksSchema(),
			doc:  "The tasks, in any order.",
			read: (*reader).readTasks,
		},
		{
			name: "$schema", optional: true, schema: schema{"type": types("string", "null")},
			doc:  "Where editors find the schema of this file.",
			read: func(*reader, pair, *topTarget) {},
		},
	}
}

func taskKeys() []key[*taskTarget] {
	return []key[*taskTarget]{
		{
			name: "name", field: dag.FieldName, schema: taskNameSchema(),
			doc:  "The name of the task, unique in the workflow: 1 to 256 bytes of printable text, not starting with \"__\".",
			read: (*reader).readTaskName,
		},
		{
			name: "kwargs", field: dag.FieldKwargs, schema: kwargsSchema(),
			doc:  "The arguments of the task. For a shell task cmd is the command; keys that are not known are kept and not used.",
			read: (*reader).readKwargs,
		},
		{
			name: "depends_on", field: dag.FieldDependsOn, schema: dependsOnSchema(),
			doc:  "The names of the tasks that must end before this one may start.",
			read: (*reader).readDependsOn,
		},
		{
			name: "queue", field: dag.FieldQueue, optional: true, schema: queueSchema(),
			doc:  "The queue whose workers run the task; default_queue if left out.",
			read: (*reader).readQueue,
		},
		{
			name: "dep_policy", field: dag.FieldDepPolicy, optional: true, schema: depPolicySchema(),
			doc:  "How many dependencies must succeed: all (default), any, a number, or all_settled to run when every one has ended, however it ended.",
			read: (*reader).readDepPolicy,
		},
		{
			name: "num_retries", field: dag.FieldNumRetries, optional: true, schema: integerSchema(0, dag.MaxNumRetries),
			doc:  "How many further attempts a failed task gets; 0 if left out.",
			read: (*reader).readNumRetries,
		},
		{
			name: "condition", field: dag.FieldCondition, optional: true, schema: schema{"type": types("string", "boolean", "null")},
			doc:  "An expression over the outputs of the dependencies; the task is skipped if it is false.",
			read: (*reader).readCondition,
		},
		{
			name: "timeout", field: dag.FieldTimeout, optional: true, schema: durationSchema(),
			doc:  "How long each start of the task may take. " + timeoutDoc,
			read: (*reader).readTimeout,
		},
		{
			name: "timeout_s", field: dag.FieldTimeout, optional: true, schema: durationSchema(),
			doc:  "The same as timeout.",
			read: (*reader).readTimeout,
		},
	}
}

// shellKey is a kwargs key that the shell processor knows.
type shellKey struct {
	name, doc string
	schema    schema
	// values is set where the value is a map of texts.
	values bool
}

func shellKeys() []shellKey {
	return []shellKey{
		{name: "cmd", schema: anyTextSchema(), doc: "The command line, run by the system's shell."},
		{name: "env", schema: envSchema(), values: true, doc: "More environment variables for the command; the values arrive as they are written."},
		{name: "cwd", schema: anyTextSchema(), doc: "The directory in which the command runs."},
		{name: "bg_dirsync_to", schema: anyTextSchema(), doc: "Where to copy a directory to while the command runs."},
	}
}
