package proc

// Limit is a limit of this process in words for people: "it needs more" On, and how to
// Raise it.
type Limit struct{ On, Raise string }
