package testkit

import (
	"encoding/json"
	"strconv"
	"strings"

	"jobq/core/dag"
)

// define reads a definition: its name, options of the workflow, and a line a task
// such as
//
//	D < B C  policy=any retries=2 queue=gpu condition='inputs.B.x > 1'
func (p *player) define(head string, lines []string) {
	a := parseArgs(head)
	d := &dag.Definition{Name: a.word(0)}
	d.MaxParallelism, _ = strconv.Atoi(a.get("max_parallelism", "0"))
	if a.get("result", "") == "sinks" {
		d.ResultPolicy = dag.AllSinksSucceed
	}
	for _, line := range lines {
		d.Tasks = append(d.Tasks, defineTask(strings.TrimSpace(line)))
	}
	dag.ApplyDefaults(d)
	if problems := dag.Validate(d); len(problems) > 0 {
		p.t.Fatalf("definition %s: %s", d.Name, problems[0].Message)
	}
	p.defs[d.Name] = d
	p.w.Know(d)
}

func defineTask(line string) dag.Task {
	a := parseArgs(line)
	t := dag.Task{
		Name: a.word(0), Queue: a.get("queue", "cpu"), Condition: a.get("condition", ""),
		Kwargs: []dag.Kwarg{{Key: "cmd", Value: json.RawMessage(strconv.Quote(a.get("cmd", "true")))}},
	}
	if len(a.words) > 1 {
		t.DependsOn = a.words[2:]
	}
	t.NumRetries, _ = strconv.Atoi(a.get("retries", "0"))
	switch policy := a.get("policy", "all"); policy {
	case "all":
	case "any":
		t.DepPolicy = dag.DepPolicy{Kind: dag.Any}
	case "settled":
		t.DepPolicy = dag.DepPolicy{Kind: dag.AllSettled}
	default:
		n, _ := strconv.Atoi(policy)
		t.DepPolicy = dag.DepPolicy{Kind: dag.AtLeast, N: n}
	}
	return t
}
