package worker

import (
	"bytes"
	"encoding/json"
	"os"
	"slices"
	"strconv"
	"strings"

	"jobq/core/fault"
	"jobq/core/msg"
	"jobq/worker/proc"
	"jobq/worker/protocol"
)

// command is what kwargs say about the child.
type command struct {
	text, cwd string
	// env are NAME=value entries in the order of the definition.
	env []string
}

// parseCommand reads the kwargs that a shell task knows; others are ignored.
func parseCommand(kwargs []msg.Kwarg) (command, error) {
	var c command
	found := false
	for _, k := range kwargs {
		var err error
		switch k.Key {
		case "cmd":
			found = true
			c.text, err = textOf(k.Key, k.Value)
		case "cwd":
			c.cwd, err = textOf(k.Key, k.Value)
		case "env":
			c.env, err = environOf(k.Value)
		}
		if err != nil {
			return command{}, err
		}
	}
	if !found {
		return command{}, errNoCommand
	}
	return c, nil
}

// textOf returns a JSON string as it is and a number or boolean as its source.
func textOf(name string, value json.RawMessage) (string, error) {
	var text string
	if err := json.Unmarshal(value, &text); err == nil && !isNull(value) {
		return text, nil
	}
	trimmed := bytes.TrimSpace(value)
	if len(trimmed) == 0 || isNull(trimmed) || trimmed[0] == '{' || trimmed[0] == '[' {
		return "", fault.Newf(fault.Invalid, "kwargs entry %q must be a text", name)
	}
	return string(trimmed), nil
}

func isNull(value json.RawMessage) bool { return string(bytes.TrimSpace(value)) == "null" }

func environOf(value json.RawMessage) ([]string, error) {
	if isNull(value) {
		return nil, nil
	}
	// A decoder keeps the order, in which the last of two equal names counts.
	dec := json.NewDecoder(bytes.NewReader(value))
	if token, err := dec.Token(); err != nil || token != json.Delim('{') {
		return nil, fault.New(fault.Invalid, `kwargs entry "env" must map names to texts`)
	}
	var env []string
	for dec.More() {
		token, err := dec.Token()
		if err != nil {
			return nil, fault.Wrap(fault.Invalid, err, `kwargs entry "env" cannot be read`)
		}
		name, _ := token.(string)
		if name == "" || strings.ContainsAny(name, "=\x00") {
			return nil, fault.Newf(fault.Invalid, "%q cannot be the name of an environment variable", name)
		}
		var raw json.RawMessage
		if err := dec.Decode(&raw); err != nil {
			return nil, fault.Wrap(fault.Invalid, err, `kwargs entry "env" cannot be read`)
		}
		text, err := textOf("env."+name, raw)
		if err != nil {
			return nil, err
		}
		env = setVariable(env, name, text)
	}
	return env, nil
}

// setVariable adds NAME=value, in the place of an entry of that name.
func setVariable(env []string, name, value string) []string {
	entry := name + "=" + value
	for i, there := range env {
		if strings.HasPrefix(there, name) && len(there) > len(name) && there[len(name)] == '=' {
			env[i] = entry
			return env
		}
	}
	return append(env, entry)
}

// ownVariables are set for each child or for none: what a worker inherited,
// because it is itself the task of another, is not theirs.
var ownVariables = []string{
	"JOBQ_WORKFLOW_ID", "JOBQ_WORKFLOW_TASK", "JOBQ_WORKFLOW_ATTEMPT", "JOBQ_WORKFLOW_UPSTREAM_REFS",
	"JOBQ_WORKFLOW_PREFIX", "JOBQ_WORKFLOW_QUEUES", "JOBQ_OUTPUT_FILE", "JOBQ_UPSTREAM_DIR",
	proc.RunIDVariable, "JOBQ_TASK_ID", "JOBQ_QUEUE_NAME", "JOBQ_QUEUE", "PYTHONUNBUFFERED", "PATH",
}

// inheritedEnviron returns the part of environ that children get, and a PATH
// that finds our helper first.
func inheritedEnviron(environ []string, bin string) []string {
	env := make([]string, 0, len(environ)+2)
	path := ""
	for _, entry := range environ {
		name, value, _ := strings.Cut(entry, "=")
		if name == "PATH" {
			path = value
		}
		if !slices.Contains(ownVariables, name) && !isCredential(name) {
			env = append(env, entry)
		}
	}
	if path == "" {
		path = "/usr/local/bin:/usr/bin:/bin"
	}
	return append(env, "PATH="+bin+string(os.PathListSeparator)+path, "PYTHONUNBUFFERED=1")
}

// isCredential reports whether a variable opens the store or the cloud account.
// A task never holds one: what it needs of the store, the worker does.
func isCredential(name string) bool {
	upper := strings.ToUpper(name)
	if strings.Contains(upper, "CONNECTION_STRING") || strings.Contains(upper, "CONNECTIONSTRING") {
		return true
	}
	switch {
	case strings.HasPrefix(upper, "AZURE_"), strings.HasPrefix(upper, "JOBQ_"), strings.HasPrefix(upper, "ARM_"):
		for _, part := range []string{"SECRET", "PASSWORD", "SAS_TOKEN", "ACCESS_KEY", "ACCOUNT_KEY", "STORAGE_KEY", "CERTIFICATE", "FEDERATED_TOKEN"} {
			if strings.Contains(upper, part) {
				return true
			}
		}
	case strings.HasPrefix(upper, "AZUREWEBJOBS"):
		return true
	}
	return slices.Contains([]string{"MSI_SECRET", "MSI_ENDPOINT", "IDENTITY_HEADER", "IDENTITY_ENDPOINT"}, upper)
}

// childEnviron returns the complete environment of one start. The task's own
// values come last and replace whatever there is, but for the run id: by it we
// find what is left of a start.
func (r *commandRunner) childEnviron(s protocol.Start, c command, files *startFiles) []string {
	env := make([]string, len(r.environ), len(r.environ)+len(c.env)+16)
	copy(env, r.environ)
	queue := strings.TrimPrefix(s.Queue, r.namespace)
	env = append(env,
		proc.RunIDVariable+"="+s.RunID,
		"JOBQ_TASK_ID="+s.Task.ID,
		"JOBQ_QUEUE_NAME="+queue,
		"JOBQ_QUEUE="+queue,
		"JOBQ_OUTPUT_FILE="+files.outputPath,
		"JOBQ_UPSTREAM_DIR="+files.upstreamDir,
		"JOBQ_WORKFLOW_UPSTREAM_REFS="+files.refsPath,
	)
	if s.Task.Workflow != "" {
		prefix := s.Task.Prefix
		if prefix == "" {
			prefix = r.prefix
		}
		env = append(env,
			"JOBQ_WORKFLOW_ID="+s.Task.Workflow,
			"JOBQ_WORKFLOW_TASK="+s.Task.Name,
			"JOBQ_WORKFLOW_ATTEMPT="+strconv.FormatUint(uint64(s.Attempt), 10),
			"JOBQ_WORKFLOW_PREFIX="+prefix,
		)
		if s.Task.Queues != "" {
			env = append(env, "JOBQ_WORKFLOW_QUEUES="+s.Task.Queues)
		}
	}
	for _, entry := range c.env {
		if name, value, _ := strings.Cut(entry, "="); name != proc.RunIDVariable {
			env = setVariable(env, name, value)
		}
	}
	return env
}
