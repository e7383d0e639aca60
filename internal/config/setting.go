package config

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"jobq/core/fault"
)

// Kind is what a setting holds. The zero value is Text.
type Kind uint8

// The closed list of kinds.
const (
	Text Kind = iota
	Switch
	Number
	Duration
	Size
)

// String returns the word that usage texts show in the place of a value.
func (k Kind) String() string {
	switch k {
	case Switch:
		return "bool"
	case Number:
		return "number"
	case Duration:
		return "duration"
	case Size:
		return "size"
	default:
		return "text"
	}
}

// Setting is one row of the table.
type Setting struct {
	// Name is the key of the setting and, where it has verbs, its flag.
	Name string
	// Letter is the short form of the flag, empty for none.
	Letter string
	// Env are the variables that set it; the first that is present wins.
	Env []string
	// Default is written as a user would write it; empty is unset.
	Default string
	// Defaults are those of verbs that have another one.
	Defaults map[string]string
	Kind     Kind
	// Least bounds a Number, or a Duration in nanoseconds, from below.
	Least int64
	// Verbs have the flag. Every verb has it where the list is {Everywhere};
	// where it is empty the setting has no flag.
	Verbs []string
	// Readers are verbs that use the setting without having its flag.
	Readers []string
	// Doc is one sentence.
	Doc string
}

// Everywhere stands for every verb.
const Everywhere = "*"

// DefaultFor returns the default of the setting where verb uses it.
func (s *Setting) DefaultFor(verb string) string {
	if text, ok := s.Defaults[verb]; ok {
		return text
	}
	return s.Default
}

// HasFlag reports whether verb has the setting as a flag.
func (s *Setting) HasFlag(verb string) bool { return covers(s.Verbs, verb) }

// UsedBy reports whether verb reads the setting at all.
func (s *Setting) UsedBy(verb string) bool { return covers(s.Verbs, verb) || covers(s.Readers, verb) }

func covers(list []string, verb string) bool {
	return slices.Contains(list, verb) || slices.Contains(list, Everywhere)
}

// check parses text as a value of s. Its error says what is allowed, without
// the name of the setting.
func (s *Setting) check(text string) (any, error) {
	if text == "" {
		return nil, nil
	}
	switch s.Kind {
	case Switch:
		return parseSwitch(text)
	case Number:
		n, err := strconv.ParseInt(text, 10, 32)
		if err != nil {
			return nil, fault.Newf(fault.Invalid, "%q is not a whole number", text)
		}
		if n < s.Least {
			return nil, fault.Newf(fault.Invalid, "%d is less than %d", n, s.Least)
		}
		return int(n), nil
	case Duration:
		d, err := ParseDuration(text)
		if err == nil && d < time.Duration(s.Least) {
			err = fault.Newf(fault.Invalid, "%s is shorter than %s", text, time.Duration(s.Least))
		}
		return d, err
	case Size:
		return ParseSize(text)
	default:
		return text, nil
	}
}

func parseSwitch(text string) (bool, error) {
	switch strings.ToLower(text) {
	case "1", "true", "yes", "on":
		return true, nil
	case "0", "false", "no", "off":
		return false, nil
	}
	return false, fault.Newf(fault.Invalid, "%q is neither true nor false", text)
}

// units are the endings of a duration that Go's own notation lacks.
var units = map[string]time.Duration{"d": 24 * time.Hour, "w": 7 * 24 * time.Hour}

// ParseDuration reads a duration: a bare number is seconds, everything else is
// numbers with the units ns, us, ms, s, m, h, d and w, such as "1d12h". It fails
// with fault.Invalid, for a negative one too.
func ParseDuration(text string) (time.Duration, error) {
	bad := fault.Newf(fault.Invalid, "%q is not a duration such as 90, 90s, 1h30m or 2d", text)
	if seconds, err := strconv.ParseFloat(text, 64); err == nil {
		if !(seconds >= 0) || seconds > math.MaxInt64/float64(time.Second) {
			return 0, bad
		}
		return time.Duration(seconds * float64(time.Second)), nil
	}
	var total time.Duration
	rest := text
	for rest != "" {
		number := len(rest) - len(strings.TrimLeft(rest, "0123456789."))
		unit := number + strings.IndexAny(rest[number:]+"0", "0123456789.")
		part, err := parsePart(rest[:number], rest[number:unit])
		if err != nil || total > math.MaxInt64-part {
			return 0, bad
		}
		total += part
		rest = rest[unit:]
	}
	if text == "" {
		return 0, bad
	}
	return total, nil
}

func parsePart(number, unit string) (time.Duration, error) {
	scale, ok := units[unit]
	if !ok {
		return time.ParseDuration(number + unit)
	}
	n, err := strconv.ParseFloat(number, 64)
	if err != nil || n > math.MaxInt64/float64(scale) {
		return 0, fmt.Errorf("%q is out of range", number)
	}
	return time.Duration(n * float64(scale)), nil
}

var sizeUnits = []struct {
	ending string
	bytes  int64
}{{"KiB", 1 << 10}, {"MiB", 1 << 20}, {"GiB", 1 << 30}, {"B", 1}, {"", 1}}

// ParseSize reads a size in bytes, or in KiB, MiB or GiB. It fails with
// fault.Invalid.
func ParseSize(text string) (int64, error) {
	for _, u := range sizeUnits {
		number, ok := strings.CutSuffix(text, u.ending)
		if !ok {
			continue
		}
		n, err := strconv.ParseInt(strings.TrimSpace(number), 10, 64)
		if err == nil && n >= 0 && n <= math.MaxInt64/u.bytes {
			return n * u.bytes, nil
		}
		break
	}
	return 0, fault.Newf(fault.Invalid, "%q is not a size such as 1048576, 512KiB or 64MiB", text)
}
