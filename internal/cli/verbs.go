package cli

import "github.com/spf13/cobra"

// verbs returns the commands of one call.
func verbs(a *app) []*cobra.Command {
	return []*cobra.Command{
		newRun(a),
		newStatus(a), newList(a), newTasks(a), newWhy(a), newLogs(a), newWatch(a), newSummary(a), newDoctor(a),
		newCancel(a), newRetry(a), newRerun(a), newMark(a), newPurge(a), newSubmit(a),
		newCoordinator(a), newWorker(a),
		newValidate(a), newSimulate(a), newCondition(a), newSchema(a), newConfig(a), newCompletion(a), newVersion(a),
		newOutput(a), newUpstream(a),
	}
}
