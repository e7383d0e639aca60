package coord

// AppendMove gives the tests of the package's outside one line of the event log.
func AppendMove(dst []byte, m *Move) []byte { return appendMove(dst, m) }
