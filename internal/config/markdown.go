package config

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Markdown returns docs/config.md.
func Markdown() string {
	var b strings.Builder
	b.WriteString(`# Settings

<!-- Generated from internal/config by ` + "`make gen`" + `; a test holds it to the code. -->

A value is taken from the first of these that has one: the flag, the environment variables in the
order of the table, the default. ` + "`jobq config show`" + ` prints every value and where it came from.

A duration is text (` + "`90s`, `1h30m`, `2d`, `1w`" + `) or a bare number of seconds; a size is a number of bytes
or has ` + "`KiB`, `MiB` or `GiB`" + `. A setting without a flag is set by its variable alone.

| setting | flag of | variables | kind | default | meaning |
|---|---|---|---|---|---|
`)
	for _, s := range Settings() {
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s | %s | %s |\n",
			s.flagText(), s.verbText(), code(s.Env), s.Kind, s.defaultText(), s.Doc)
	}
	return b.String()
}

func (s *Setting) flagText() string {
	switch {
	case len(s.Verbs) == 0:
		return s.Name
	case s.Letter != "":
		return "-" + s.Letter + ", --" + s.Name
	default:
		return "--" + s.Name
	}
}

func (s *Setting) verbText() string {
	switch {
	case len(s.Verbs) == 0:
		return "none"
	case s.HasFlag(Everywhere):
		return "every verb"
	default:
		return code(s.Verbs)
	}
}

func (s *Setting) defaultText() string {
	if s.Default == "" {
		return "unset"
	}
	text := "`" + s.Default + "`"
	for _, verb := range slices.Sorted(maps.Keys(s.Defaults)) {
		text += ", `" + verb + "` `" + s.Defaults[verb] + "`"
	}
	return text
}

func code(words []string) string {
	return "`" + strings.Join(words, "`, `") + "`"
}
