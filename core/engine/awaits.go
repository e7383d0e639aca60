package engine

// Awaits reports whether a completion of this attempt of the task would count;
// attempt 0 is a report without a number.
func (r *Run) Awaits(task string, attempt uint32) bool {
	t, ok := r.plan.Task(task)
	if !ok || !r.s.TaskStatus[t].Numbered() {
		return false
	}
	return attempt == r.s.Attempt[t] || attempt == 0 && r.s.Attempt[t] == 1
}

// Candidates returns the tasks whose condition waits for a verdict, ascending.
func (r *Run) Candidates() []int32 { return r.candidates.sorted() }
