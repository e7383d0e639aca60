package config

import "time"

// The names of the settings.
const (
	Home                = "home"
	Prefix              = "prefix"
	RequirePrefix       = "require-prefix"
	Queues              = "queues"
	HTTPPool            = "http-pool-size"
	Blobs               = "blobs"
	StorageQueue        = "storage-queue"
	Storage             = "storage"
	Queue               = "queue"
	Verbose             = "verbose"
	Quiet               = "quiet"
	LogJSON             = "log-json"
	Color               = "color"
	MaxDefinition       = "max-definition-size"
	Workers             = "workers"
	SubmitConcurrency   = "concurrency"
	WatchInterval       = "interval"
	BatchSize           = "batch-size"
	InboxVisibility     = "visibility-timeout-s"
	IdleSleep           = "idle-sleep-s"
	CancelScan          = "cancel-poll-interval-s"
	FlushRetryLimit     = "flush-retry-limit"
	SweepInterval       = "ready-sweep-interval-s"
	RepairThreshold     = "ready-repair-threshold-s"
	NoLease             = "no-lease"
	RunningRepair       = "running-repair-s"
	Slots               = "num-workers"
	TaskVisibility      = "visibility-timeout"
	IdleTimeout         = "idle-timeout"
	MaxIdleBackoff      = "max-idle-backoff"
	TimeLimit           = "time-limit"
	MaxFailures         = "max-consecutive-failures"
	KillTimeout         = "kill-timeout"
	CancelPoll          = "cancel-poll-interval"
	SendAttempts        = "completion-send-max-attempts"
	StalePending        = "stale-pending-sec"
	StaleRunningMinutes = "stale-running-min"
)

// Settings returns the table, in the order in which it is documented. The
// caller owns it.
func Settings() []Setting {
	var all []Setting
	for _, part := range [][]Setting{placeSettings(), outputSettings(), runSettings(), coordinatorSettings(), workerSettings(), doctorSettings()} {
		all = append(all, part...)
	}
	return all
}

func everywhere() []string { return []string{Everywhere} }

func placeSettings() []Setting {
	return []Setting{
		{Name: Home, Env: []string{"JOBQ_HOME"}, Verbs: everywhere(),
			Doc: "Directory of the store called local, on a local disk; unset is $XDG_DATA_HOME/jobq, else ~/.local/share/jobq."},
		{Name: Prefix, Env: []string{"JOBQ_WORKFLOW_PREFIX"}, Default: "local/default", Readers: everywhere(),
			Doc: "STORAGE/PREFIX, the name space of one installation; STORAGE/PREFIX in front of the verb wins."},
		{Name: RequirePrefix, Env: []string{"JOBQ_REQUIRE_PREFIX"}, Default: "false", Kind: Switch, Readers: everywhere(),
			Doc: "Refuse to fall back to local/default where no STORAGE/PREFIX is given."},
		{Name: Queues, Env: []string{"JOBQ_WORKFLOW_QUEUES"}, Readers: everywhere(),
			Doc: "Where the queues are, if not in the storage of the prefix: sb://NAMESPACE or another account."},
		{Name: Blobs, Env: []string{"JOBQ_WORKFLOW_BLOBS"}, Readers: everywhere(),
			Doc: "ACCOUNT/CONTAINER for large outputs and file outputs, if not in the storage of the prefix."},
		{Name: HTTPPool, Env: []string{"JOBQ_HTTP_POOL_SIZE"}, Default: "100", Kind: Number, Least: 1, Readers: everywhere(),
			Doc: "Connections to Azure Storage that this process has at most."},
	}
}

func outputSettings() []Setting {
	return []Setting{
		{Name: Verbose, Letter: "v", Env: []string{"JOBQ_VERBOSE"}, Default: "0", Kind: Number, Verbs: everywhere(),
			Doc: "Log more on stderr: -v what happens, -vv every step."},
		{Name: Quiet, Letter: "q", Env: []string{"JOBQ_QUIET"}, Default: "false", Kind: Switch, Verbs: everywhere(),
			Doc: "Write nothing on stderr but errors; of what tasks write, run shows their standard output alone."},
		{Name: LogJSON, Env: []string{"JOBQ_LOG_JSON"}, Default: "false", Kind: Switch, Verbs: everywhere(),
			Doc: "Log in JSON, one object a line."},
		{Name: Color, Env: []string{"JOBQ_COLOR"}, Default: "auto", Verbs: everywhere(),
			Doc: "Colours: auto (on a terminal, unless NO_COLOR is set), always or never."},
	}
}

func runSettings() []Setting {
	return []Setting{
		{Name: MaxDefinition, Env: []string{"JOBQ_MAX_DEFINITION_SIZE"}, Default: "64MiB", Kind: Size, Verbs: []string{"run", "validate", "submit"},
			Doc: "Largest workflow file that is read."},
		{Name: Workers, Letter: "n", Env: []string{"JOBQ_WORKERS"}, Kind: Number, Least: 1, Verbs: []string{"run", "retry"},
			Doc: "Tasks at a time; unset is one for each CPU."},
		{Name: SubmitConcurrency, Env: []string{"JOBQ_SUBMIT_CONCURRENCY"}, Default: "20", Kind: Number, Least: 1, Verbs: []string{"submit"},
			Doc: "Submissions at a time."},
		{Name: WatchInterval, Env: []string{"JOBQ_WATCH_INTERVAL"}, Default: "1s", Kind: Duration, Least: int64(50 * time.Millisecond), Verbs: []string{"watch", "logs"},
			Doc: "Pause between two looks at the store."},
	}
}

func coordinatorSettings() []Setting {
	verbs := []string{"coordinator"}
	return []Setting{
		{Name: BatchSize, Env: []string{"JOBQ_COMPLETION_BATCH_SIZE", "JOBQ_COORDINATOR_BATCH_SIZE"}, Default: "32", Kind: Number, Least: 1, Verbs: verbs,
			Doc: "Completions taken with one receive."},
		{Name: InboxVisibility, Env: []string{"JOBQ_COMPLETION_VISIBILITY_TIMEOUT_S", "JOBQ_COORDINATOR_VISIBILITY_TIMEOUT_S"}, Default: "60s", Kind: Duration, Least: int64(4 * time.Second), Verbs: verbs,
			Doc: "How long a received completion stays hidden from other coordinators; a round takes at most a quarter of it."},
		{Name: IdleSleep, Env: []string{"JOBQ_COORDINATOR_IDLE_SLEEP_S"}, Default: "500ms", Kind: Duration, Least: int64(time.Millisecond), Verbs: verbs,
			Doc: "Longest pause between two receives from an empty inbox."},
		{Name: CancelScan, Env: []string{"JOBQ_COORDINATOR_CANCEL_POLL_INTERVAL_S"}, Default: "1s", Kind: Duration, Verbs: verbs,
			Doc: "Accepted and without effect: `jobq cancel` is applied at once, and flags that scripts of ai4s-jobq set are found by the sweep."},
		{Name: FlushRetryLimit, Env: []string{"JOBQ_COORDINATOR_FLUSH_RETRY_LIMIT"}, Default: "2", Kind: Number, Least: 1, Verbs: verbs,
			Doc: "Further tries after another writer won a save; then the messages go back to the inbox."},
		{Name: SweepInterval, Env: []string{"JOBQ_COORDINATOR_READY_SWEEP_INTERVAL_S"}, Default: "60s", Kind: Duration, Least: int64(time.Second), Verbs: verbs,
			Doc: "Pause between two sweeps over the workflows that are due."},
		{Name: RepairThreshold, Env: []string{"JOBQ_COORDINATOR_READY_REPAIR_THRESHOLD_S"}, Default: "5m", Kind: Duration, Least: int64(time.Second), Verbs: verbs,
			Doc: "After how long without a change a workflow is due."},
		{Name: RunningRepair, Env: []string{"JOBQ_COORDINATOR_RUNNING_REPAIR_S", "JOBQ_COORDINATOR_RUNNING_TIMEOUT_S"}, Default: "1h", Kind: Duration, Least: int64(time.Minute), Verbs: verbs,
			Doc: "After how long a running task is looked after, in case its message was lost."},
		{Name: NoLease, Env: []string{"JOBQ_COORDINATOR_NO_LEASE"}, Kind: Switch, Verbs: verbs,
			Doc: "Drain beside other coordinators instead of waiting for the lease: right all the same, but not faster."},
	}
}

func workerSettings() []Setting {
	verbs := []string{"worker"}
	here := []string{"run", "retry"}
	return []Setting{
		{Name: StorageQueue, Env: []string{"JOBQ_STORAGE_QUEUE"}, Readers: verbs,
			Doc: "STORAGE/QUEUE of a worker that is given none."},
		{Name: Storage, Env: []string{"JOBQ_STORAGE"}, Readers: verbs,
			Doc: "STORAGE of a worker, together with JOBQ_QUEUE; unset is the storage of the prefix."},
		{Name: Queue, Env: []string{"JOBQ_QUEUE"}, Readers: verbs,
			Doc: "QUEUE of a worker that is given none."},
		{Name: Slots, Letter: "n", Env: []string{"JOBQ_NUM_WORKERS"}, Default: "1", Kind: Number, Least: 1, Verbs: verbs,
			Doc: "Tasks at a time."},
		{Name: TaskVisibility, Env: []string{"JOBQ_VISIBILITY_TIMEOUT"}, Default: "10m", Kind: Duration, Least: int64(10 * time.Second), Verbs: verbs,
			Doc: "How long the message of a task stays hidden without a sign of life of its worker."},
		{Name: IdleTimeout, Env: []string{"JOBQ_IDLE_TIMEOUT"}, Kind: Duration, Verbs: verbs,
			Doc: "End after this long without a task; unset is never."},
		{Name: MaxIdleBackoff, Env: []string{"JOBQ_MAX_IDLE_BACKOFF"}, Default: "30s", Kind: Duration, Least: int64(time.Millisecond), Verbs: verbs,
			Doc: "Longest pause between two looks into empty queues."},
		{Name: TimeLimit, Env: []string{"JOBQ_TIME_LIMIT"}, Kind: Duration, Verbs: verbs,
			Doc: "End after this long, giving back what runs; unset is never."},
		{Name: MaxFailures, Env: []string{"JOBQ_MAX_CONSECUTIVE_FAILURES"}, Default: "0", Kind: Number, Verbs: verbs,
			Doc: "End after more than this many failed tasks in a row; 0 is never."},
		{Name: KillTimeout, Env: []string{"JOBQ_KILL_TIMEOUT"}, Default: "10m", Kind: Duration, Verbs: here, Readers: verbs,
			Defaults: map[string]string{"run": "10s", "retry": "10s"},
			Doc:      "How long a command has between SIGTERM and SIGKILL; 0 is for ever."},
		{Name: CancelPoll, Env: []string{"JOBQ_CANCEL_POLL_INTERVAL"}, Default: "30s", Kind: Duration, Least: int64(100 * time.Millisecond), Readers: verbs,
			Doc: "Pause between two looks for a cancel request while a task runs."},
		{Name: SendAttempts, Env: []string{"JOBQ_COMPLETION_SEND_MAX_ATTEMPTS"}, Default: "5", Kind: Number, Least: 1, Readers: verbs,
			Doc: "Tries to send one completion before its message goes back; the attempt's record keeps it."},
	}
}

func doctorSettings() []Setting {
	verbs := []string{"doctor"}
	return []Setting{
		{Name: StalePending, Env: []string{"JOBQ_DOCTOR_STALE_PENDING_SEC"}, Default: "2m", Kind: Duration, Verbs: verbs,
			Doc: "After how long a pending workflow counts as stuck."},
		{Name: StaleRunningMinutes, Env: []string{"JOBQ_DOCTOR_STALE_RUNNING_MIN"}, Default: "60", Kind: Number, Verbs: verbs,
			Doc: "After how many minutes (a whole number) without a change a running workflow counts as stuck."},
	}
}
