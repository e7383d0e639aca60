package spec

import (
	"bytes"
	_ "embed" // for the schema file
	"encoding/json"
	"maps"

	"jobq/core/dag"
)

// schema is a JSON Schema, or a part of one.
type schema map[string]any

//go:embed schema.json
var schemaFile []byte

// Schema returns the JSON Schema (draft 2020-12) of workflow files, as it is in
// the file schema.json beside this package. Editors use it; Parse is stricter,
// as it also knows the graph.
func Schema() []byte { return bytes.Clone(schemaFile) }

// generateSchema makes the schema from the table of keys.
func generateSchema() ([]byte, error) {
	top := object(topKeys())
	top["$schema"] = "https://json-schema.org/draft/2020-12/schema"
	top["title"] = "jobq workflow"
	top["description"] = "A directed acyclic graph of tasks. Reference: docs/workflow-file.md."
	top["required"] = []string{"name", "tasks"}
	task := object(taskKeys())
	task["required"] = []string{"name"}
	// timeout and timeout_s are one key.
	task["not"] = schema{"required": []string{"timeout", "timeout_s"}}
	top["$defs"] = schema{"task": task}
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	err := e.Encode(top)
	return b.Bytes(), err
}

func object[T any](keys []key[T]) schema {
	properties := schema{}
	for _, k := range keys {
		s := schema{"description": k.doc}
		maps.Copy(s, k.schema)
		properties[k.name] = s
	}
	return schema{"type": "object", "properties": properties, "additionalProperties": false}
}

func types(names ...string) []string { return names }

// anyTextSchema is a text whose source is kept: YAML readers see a number or a
// truth value where the author left the quotes out.
func anyTextSchema() schema {
	return schema{"type": types("string", "number", "boolean"), "minLength": 1}
}

func textSchema(most int) schema {
	s := anyTextSchema()
	s["maxLength"] = most
	return s
}

func taskNameSchema() schema {
	s := textSchema(dag.MaxTaskName)
	s["pattern"] = `^([^_\x00-\x1f]|_([^_\x00-\x1f]|$))[^\x00-\x1f]*$`
	return s
}

func queueSchema() schema {
	const name = `[a-z0-9](-?[a-z0-9])+`
	return schema{
		"type":    types("string", "number", "null"),
		"pattern": `^([a-z0-9]{3,24}/|sb://[A-Za-z][A-Za-z0-9.-]+/)?` + name + `$`,
		// The longest namespace, the scheme and the name.
		"minLength": dag.MinQueueName, "maxLength": 253 + len("sb:///") + dag.MaxQueueName,
	}
}

func durationSchema() schema {
	return schema{
		"type":             types("number", "string", "null"),
		"exclusiveMinimum": 0,
		"pattern":          `^([0-9.]+(ns|us|µs|ms|s|m|h|d|w))+$|^[0-9.]+$`,
	}
}

func integerSchema(least, most int) schema {
	return schema{"type": types("integer", "null"), "minimum": least, "maximum": most}
}

func enumSchema(words ...string) schema {
	all := make([]any, 0, len(words)+1)
	for _, w := range words {
		all = append(all, w)
	}
	return schema{"enum": append(all, nil)}
}

func depPolicySchema() schema {
	return schema{"anyOf": []schema{enumSchema(depPolicyWords()...), {"type": "integer", "minimum": 1}}}
}

func dependsOnSchema() schema {
	return schema{"type": "array", "items": anyTextSchema(), "uniqueItems": true}
}

func tasksSchema() schema {
	return schema{"type": "array", "minItems": 1, "items": schema{"$ref": "#/$defs/task"}}
}

func envSchema() schema {
	return schema{
		"type":                 "object",
		"propertyNames":        schema{"pattern": "^[^=]+$"},
		"additionalProperties": schema{"type": types("string", "number", "boolean")},
	}
}

func kwargsSchema() schema {
	properties := schema{}
	for _, k := range shellKeys() {
		s := schema{"description": k.doc}
		maps.Copy(s, k.schema)
		properties[k.name] = s
	}
	return schema{
		"type":       "object",
		"properties": properties,
		"propertyNames": schema{
			"minLength": 1, "maxLength": dag.MaxKwargKey,
			"pattern": `^([^_]|_([^_]|$))`,
		},
	}
}
