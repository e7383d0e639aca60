package config

import (
	"errors"
	"time"

	"jobq/core/fault"
)

// Value is a setting with what it is set to.
type Value struct {
	Setting Setting
	// Text is the value as it was written, empty for unset.
	Text string
	// Source says where it came from: "--flag", a variable, or "default".
	Source string

	parsed any
}

// FromDefault is the source of a value that nobody set.
const FromDefault = "default"

// Values are the settings of one verb.
type Values struct {
	all   []Value
	index map[string]int
}

// Resolve reads the settings that verb uses; Everywhere reads all. lookup reads
// the environment; flags holds the flags that were given, by name of setting.
//
// It fails with fault.Invalid, naming every setting that cannot be read. The
// Values are complete nevertheless: those settings have their default.
func Resolve(verb string, lookup func(string) (string, bool), flags map[string]string) (*Values, error) {
	v := &Values{index: map[string]int{}}
	var errs []error
	for _, s := range Settings() {
		if verb != Everywhere && !s.UsedBy(verb) {
			continue
		}
		value, err := resolve(s, verb, lookup, flags)
		if err != nil {
			errs = append(errs, err)
		}
		v.index[s.Name] = len(v.all)
		v.all = append(v.all, value)
	}
	return v, errors.Join(errs...)
}

func resolve(s Setting, verb string, lookup func(string) (string, bool), flags map[string]string) (Value, error) {
	v := Value{Setting: s, Text: s.DefaultFor(verb), Source: FromDefault}
	for _, name := range s.Env {
		// An empty variable is how a shell says that it is not set.
		if text, ok := lookup(name); ok && text != "" {
			v.Text, v.Source = text, name
			break
		}
	}
	if text, ok := flags[s.Name]; ok {
		v.Text, v.Source = text, "--"+s.Name
	}
	parsed, err := s.check(v.Text)
	if err != nil {
		err = fault.Wrapf(fault.Invalid, err, "%s cannot be used", v.Source).
			WithRemedy("`jobq config show` lists every setting with its present value")
		parsed, _ = s.check(s.DefaultFor(verb))
	}
	v.parsed = parsed
	return v, err
}

// All returns every value in the order of the table.
func (v *Values) All() []Value { return v.all }

// Get returns the value of the setting called name. The zero Value is a setting
// that the verb does not use.
func (v *Values) Get(name string) Value {
	if i, ok := v.index[name]; ok {
		return v.all[i]
	}
	return Value{}
}

// IsSet reports whether somebody set the setting called name.
func (v *Values) IsSet(name string) bool {
	s := v.Get(name).Source
	return s != "" && s != FromDefault
}

// Text returns the text of a setting, empty for unset.
func (v *Values) Text(name string) string { return v.Get(name).Text }

// Bool returns a Switch, false for unset.
func (v *Values) Bool(name string) bool { return typed[bool](v, name) }

// Int returns a Number, 0 for unset.
func (v *Values) Int(name string) int { return typed[int](v, name) }

// Duration returns a Duration, 0 for unset.
func (v *Values) Duration(name string) time.Duration { return typed[time.Duration](v, name) }

// Bytes returns a Size in bytes, 0 for unset.
func (v *Values) Bytes(name string) int64 { return typed[int64](v, name) }

func typed[T any](v *Values, name string) T {
	t, _ := v.Get(name).parsed.(T)
	return t
}
