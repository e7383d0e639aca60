// Package spec reads the text of a workflow file, YAML or JSON, into a
// dag.Definition.
//
// It reports everything that is wrong at once, each fault with file, line,
// column, task and what to do; only a text that cannot be read at all ends the
// search early. One table of keys drives the reader, the JSON Schema for
// editors and the hints for misspelt keys. Text stays text: what an author
// wrote for a name, a command or a variable arrives letter by letter, whatever
// YAML would make of it.
//
// A text may be hostile. Its size is looked at before it is read, its number
// of values before a tree is built, and depth, aliases, tasks and dependencies
// have bounds (Limits). A file in the usual layout is read task by task, so
// that memory follows the definition and not the tree of its text.
//
// Parse keeps no state and is safe for concurrent use. The package does not
// know the language of conditions: the caller lends a checker.
package spec
