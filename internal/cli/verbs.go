package cli

import "github.com/spf13/cobra"

// verbs returns the commands of one call.
func verbs(a *app) []*cobra.Command {
	return []*cobra.Command{
		newRun(a),
		newStatus(a), newList(a), newTasks(a), newLogs(a),
		newCancel(a), newRetry(a),
		newValidate(a), newVersion(a),
		newOutput(a), newUpstream(a),
	}
}
