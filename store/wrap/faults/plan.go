package faults

import (
	"jobq/core/fault"
)

// StopBefore stops the process at call n, which has no effect.
func StopBefore(n int) Decide {
	return func(c Call) Fate { return Fate{Stop: c.N == n} }
}

// StopAfter stops the process at call n, which has its effect.
func StopAfter(n int) Decide {
	return func(c Call) Fate {
		if c.N != n {
			return Fate{}
		}
		return Fate{Stop: true, After: errStopped}
	}
}

// LoseAnswer lets call n have its effect and answers that it is unknown.
func LoseAnswer(n int) Decide {
	return func(c Call) Fate {
		if c.N != n {
			return Fate{}
		}
		return Fate{After: fault.Newf(fault.Unavailable, "the answer of %s was lost", c.Op)}
	}
}

// Fail fails the first n calls of op with code, without an effect; below 0 all.
func Fail(op string, code fault.Code, n int) Decide {
	return func(c Call) Fate {
		if c.Op != op || n == 0 {
			return Fate{}
		}
		n--
		return Fate{Before: fault.Newf(code, "%s fails on purpose", op)}
	}
}

// First gives a call the first fate of the plans that is not to pass.
func First(plans ...Decide) Decide {
	return func(c Call) Fate {
		for _, plan := range plans {
			if f := plan(c); f != (Fate{}) {
				return f
			}
		}
		return Fate{}
	}
}
