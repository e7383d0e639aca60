package msg

// ScanCompletion and DecodeInboxAsJSON give the tests of the package's outside the
// two ways in which DecodeInbox reads.
func ScanCompletion(body []byte) (*Completion, bool) { return scanCompletion(body) }
func DecodeInboxAsJSON(body []byte) (Inbox, error)   { return decodeInbox(body) }
