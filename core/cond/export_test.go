package cond

// MatchPattern gives the tests of the package's outside a single match.
func MatchPattern(pattern, name string) bool { return parseGlob(pattern).match(name) }
