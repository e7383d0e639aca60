package sim

// op is a method of core/port.
type op uint8

const (
	opCreateDefinition op = iota
	opDefinition
	opDeleteDefinition
	opCreateState
	opLoad
	opSave
	opCreateRecord
	opReadRecord
	opChangeRecord
	opDeleteRecord
	opDeleteRecords
	opRow
	opProject
	opSetCancel
	opDeleteRow
	opListRows
	opPutDue
	opDeleteDue
	opDueBefore
	opCancelRequests
	opEnsure
	opSend
	opReceive
	opExtend
	opAcknowledge
	opRelease
	opPoison
	opCount
	opPeek
	opClear
	opPutOutput
	opGetOutput
	opListOutputs
	opDeleteOutputs
	opAppend
	opReadLog
	opLogSize
	opLogNames
	opDeleteLogs
	opAcquire
	opReleaseLease
	opHolder
	opJoin
	opMembers
	opBeat
	opLeave
	ops
)

var opNames = [ops]string{
	"create definition", "read definition", "delete definition", "create state", "load state", "save state",
	"create record", "read record", "change record", "delete record", "delete records",
	"read row", "write row", "write cancel flag", "delete row", "list rows", "put due", "delete due", "list due", "list cancel flags",
	"create queue", "send", "receive", "extend", "acknowledge", "release", "poison", "count", "peek", "clear",
	"put output", "get output", "list outputs", "delete outputs", "append log", "read log", "size of log", "list logs", "delete logs",
	"acquire lease", "release lease", "read lease", "join", "list members", "beat", "leave",
}

func (o op) String() string { return opNames[o] }

// conditional reports whether o writes under a tag.
func (o op) conditional() bool {
	switch o {
	case opSave, opChangeRecord, opDeleteRecord, opProject, opSetCancel:
		return true
	}
	return false
}

// reads reports whether o changes nothing.
func (o op) reads() bool {
	switch o {
	case opDefinition, opLoad, opReadRecord, opRow, opListRows, opDueBefore, opCancelRequests,
		opCount, opPeek, opGetOutput, opListOutputs, opReadLog, opLogSize, opLogNames, opHolder, opMembers:
		return true
	}
	return false
}

// outputs reports whether o is about outputs.
func (o op) outputs() bool {
	return o == opPutOutput || o == opGetOutput || o == opListOutputs || o == opDeleteOutputs
}
