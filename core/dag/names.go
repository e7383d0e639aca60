package dag

import (
	"fmt"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"jobq/core/fault"
)

// Limits of names, in bytes.
const (
	MaxTaskName   = 256
	MaxWorkflowID = 63
	MaxPrefix     = 35
	// MinQueueName and MaxQueueName are the limits of Storage Queues, less the
	// room for the name of the poison queue.
	MinQueueName = 3
	MaxQueueName = 56
)

// ReservedPrefix starts the names that jobq makes itself (merge nodes, kwargs
// of the task message). Users may not use it.
const ReservedPrefix = "__"

const queueRule = "3 to 56 lower-case letters, digits and single hyphens, starting and ending with a letter or digit"

// violation says what is wrong with a name, and what to do. The zero value is
// no violation.
type violation struct{ message, remedy string }

func (v violation) err() error {
	if v.message == "" {
		return nil
	}
	return fault.New(fault.Invalid, v.message).WithRemedy(v.remedy)
}

// CheckTaskName returns an error of code Invalid that names the broken rule:
// 1 to 256 bytes of printable Unicode that do not start with "__".
func CheckTaskName(name string) error { return taskNameViolation(name).err() }

// CheckWorkflowID returns an error of code Invalid that names the broken rule:
// 1 to 63 letters, digits, dots, underscores and hyphens, starting with a
// letter or digit.
func CheckWorkflowID(id string) error {
	const rule = "use 1 to 63 letters, digits, dots, underscores and hyphens, starting with a letter or digit"
	what := "the workflow id " + Quote(id)
	switch {
	case id == "":
		return violation{"the workflow id is empty", rule}.err()
	case len(id) > MaxWorkflowID:
		return violation{tooLong(what, len(id), MaxWorkflowID), rule}.err()
	case !isLetter(id[0]) && !isDigit(id[0]):
		return violation{what + " does not start with a letter or digit", rule}.err()
	}
	for _, r := range id {
		if r >= utf8.RuneSelf || !isLetter(byte(r)) && !isDigit(byte(r)) && !strings.ContainsRune("._-", r) {
			return violation{fmt.Sprintf("%s contains %s, which is not allowed", what, describeRune(r)), rule}.err()
		}
	}
	return nil
}

// CheckPrefix returns an error of code Invalid that names the broken rule: 2 to
// 35 letters and digits, starting with a letter. Prefixes are compared without
// case.
func CheckPrefix(prefix string) error {
	const rule = "use 2 to 35 letters and digits, starting with a letter"
	what := "the prefix " + Quote(prefix)
	switch {
	case prefix == "":
		return violation{"the prefix is empty", rule}.err()
	case len(prefix) > MaxPrefix:
		return violation{tooLong(what, len(prefix), MaxPrefix), rule}.err()
	case len(prefix) < 2:
		return violation{what + " is 1 byte long; at least 2 are needed", rule}.err()
	case !isLetter(prefix[0]):
		return violation{what + " does not start with a letter", rule}.err()
	}
	for _, r := range prefix {
		if r >= utf8.RuneSelf || !isLetter(byte(r)) && !isDigit(byte(r)) {
			return violation{fmt.Sprintf("%s contains %s, which is not allowed", what, describeRune(r)), rule}.err()
		}
	}
	return nil
}

// CheckQueue returns an error of code Invalid that names the broken rule. The
// forms are "name", "account/name" and "sb://namespace/name"; the name follows
// the rule of Storage Queues everywhere, so that a definition can move between
// services.
func CheckQueue(queue string) error { return queueViolation(queue).err() }

func taskNameViolation(name string) violation {
	what := "the task name " + Quote(name)
	switch {
	case name == "":
		return violation{"the task name is empty", "give the task a name of 1 to 256 bytes"}
	case len(name) > MaxTaskName:
		return violation{tooLong(what, len(name), MaxTaskName), "shorten it"}
	case !utf8.ValidString(name):
		return violation{what + " is not valid UTF-8", "write the name in UTF-8"}
	case strings.HasPrefix(name, ReservedPrefix):
		return violation{what + ` starts with "__", which is reserved for jobq`, "choose a name that starts otherwise"}
	}
	for _, r := range name {
		switch {
		case unicode.IsControl(r):
			return violation{fmt.Sprintf("%s contains the control character %U", what, r), "remove the control character"}
		case !unicode.IsPrint(r):
			return violation{fmt.Sprintf("%s contains %U, which is not printable", what, r), "use printable characters and plain spaces"}
		}
	}
	return violation{}
}

func queueViolation(queue string) violation {
	what := "the queue name " + Quote(queue)
	if queue == "" {
		return violation{"the queue name is empty", "leave the key out to use default_queue, or name a queue of " + queueRule}
	}
	name := queue
	if rest, ok := strings.CutPrefix(queue, "sb://"); ok {
		namespace, last, found := strings.Cut(rest, "/")
		if !found || !isNamespace(namespace) {
			return violation{what + " is not of the form sb://namespace/name", "name a Service Bus namespace and a queue, such as sb://my-namespace/gpu-a100"}
		}
		name = last
	} else if account, last, found := strings.Cut(queue, "/"); found {
		if !isAccount(account) {
			return violation{what + ": " + Quote(account) + " is not a storage account name", "an account name has 3 to 24 lower-case letters and digits"}
		}
		name = last
	}
	switch {
	case len(name) > MaxQueueName:
		return violation{tooLong(what, len(name), MaxQueueName), "use " + queueRule}
	case len(name) < MinQueueName:
		return violation{fmt.Sprintf("%s is %d bytes long; at least %d are needed", what, len(name), MinQueueName), "use " + queueRule}
	case strings.Contains(name, "--"):
		return violation{what + " has two hyphens in a row", "use " + queueRule}
	case name[0] == '-' || name[len(name)-1] == '-':
		return violation{what + " starts or ends with a hyphen", "use " + queueRule}
	}
	for _, r := range name {
		if r >= utf8.RuneSelf || !isLower(byte(r)) && !isDigit(byte(r)) && r != '-' {
			return violation{fmt.Sprintf("%s contains %s, which is not allowed", what, describeRune(r)), "use " + queueRule}
		}
	}
	return violation{}
}

// isNamespace accepts a bare Service Bus namespace and a full host name.
func isNamespace(s string) bool {
	if len(s) < 3 || len(s) > 253 || !isLetter(s[0]) {
		return false
	}
	for i := range len(s) {
		if c := s[i]; !isLetter(c) && !isDigit(c) && c != '-' && c != '.' {
			return false
		}
	}
	return true
}

func isAccount(s string) bool {
	if len(s) < 3 || len(s) > 24 {
		return false
	}
	for i := range len(s) {
		if !isLower(s[i]) && !isDigit(s[i]) {
			return false
		}
	}
	return true
}

func isLower(c byte) bool  { return 'a' <= c && c <= 'z' }
func isLetter(c byte) bool { return isLower(c | 0x20) }
func isDigit(c byte) bool  { return '0' <= c && c <= '9' }

func tooLong(what string, have, most int) string {
	return fmt.Sprintf("%s is %d bytes long; at most %d are allowed", what, have, most)
}

func describeRune(r rune) string {
	if unicode.IsPrint(r) && r != ' ' {
		return Quote(string(r))
	}
	if r == ' ' {
		return "a space"
	}
	return fmt.Sprintf("%U", r)
}

// Quote returns s in double quotes, control characters escaped, cut to 64
// characters, for messages to people.
func Quote(s string) string {
	const most = 64
	runes := 0
	for i := range s {
		if runes == most {
			return strconv.Quote(s[:i]) + "…"
		}
		runes++
	}
	return strconv.Quote(s)
}
