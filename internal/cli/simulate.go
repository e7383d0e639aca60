package cli

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"jobq/core/fault"
	"jobq/internal/sim"
)

// simulation holds the flags of simulate.
type simulation struct {
	seed      uint64
	seeds     string
	queue     string
	faults    string
	minutes   float64
	shrink    bool
	print     bool
	evictions float64
	lasts     time.Duration
	workers   int
	slots     int
	histories int
}

func newSimulate(a *app) *cobra.Command {
	var s simulation
	cmd := a.command(verb{
		use: "simulate [FILE]", short: "Play histories in which everything goes wrong", group: groupFile, least: 0, most: 1,
		long: `Play histories of a whole installation on virtual time: processes stop, calls fail, answers are lost,
clocks differ. Every history is held to what jobq promises; one seed gives one history, everywhere.
With FILE, play that workflow on machines that are taken away and say how it fares. The exit code
is 0 where every promise was kept and 1 where one was broken.`,
		example: `  jobq simulate --seeds 1-500
  jobq simulate --seed 42 --queue servicebus
  jobq simulate pipeline.yaml --evictions 20 --task-time 30m --workers 4`,
		run: func(cmd *cobra.Command, args []string) error {
			if len(args) == 1 {
				return a.forecast(cmd, args[0], &s)
			}
			return a.simulate(cmd, &s)
		},
	})
	f := cmd.Flags()
	f.Uint64Var(&s.seed, "seed", 0, "play the one history of this seed, and print it if it breaks a promise")
	f.StringVar(&s.seeds, "seeds", "1-100", "play the histories of the seeds `A-B` on both kinds of queues")
	f.StringVar(&s.queue, "queue", "", "play on one kind of queues: storage or servicebus; empty for both")
	f.StringVar(&s.faults, "faults", "all", "draw from these faults, a `LIST` with commas, all or none")
	f.Float64Var(&s.minutes, "minutes", 0, "begin no further history after so many minutes; 0 for no limit")
	f.BoolVar(&s.print, "print", false, "print the history of --seed though it breaks no promise")
	f.BoolVar(&s.shrink, "shrink", true, "look for a shorter history that breaks the same promise")
	f.Float64Var(&s.evictions, "evictions", 0, "take each machine of FILE's workers away with this chance an hour, in percent")
	f.DurationVar(&s.lasts, "task-time", 10*time.Minute, "how long each task of FILE takes on average")
	f.IntVar(&s.workers, "workers", 2, "how many machines work on FILE")
	f.IntVar(&s.slots, "slots", 1, "how many tasks a machine runs at a time")
	f.IntVar(&s.histories, "histories", 100, "how many histories of FILE to play")
	return cmd
}

// personalities returns the kinds of queues to play on.
func (s *simulation) personalities() ([]sim.Personality, error) {
	var chosen []sim.Personality
	for _, p := range sim.Personalities() {
		if s.queue == "" || s.queue == p.String() {
			chosen = append(chosen, p)
		}
	}
	if len(chosen) == 0 {
		return nil, fault.Newf(fault.Invalid, "--queue %s is neither storage nor servicebus", s.queue)
	}
	return chosen, nil
}

// span returns the seeds to play.
func (s *simulation) span(cmd *cobra.Command) (first, last uint64, err error) {
	if cmd.Flags().Changed("seed") {
		return s.seed, s.seed, nil
	}
	from, to, ok := strings.Cut(s.seeds, "-")
	first, err1 := strconv.ParseUint(from, 10, 64)
	last, err2 := strconv.ParseUint(to, 10, 64)
	if !ok || err1 != nil || err2 != nil || last < first {
		return 0, 0, fault.Newf(fault.Invalid, "--seeds %s is no span such as 1-100", s.seeds)
	}
	return first, last, nil
}

// simulate plays the histories of seeds.
func (a *app) simulate(cmd *cobra.Command, s *simulation) error {
	set, known := sim.ParseFaults(s.faults)
	if !known {
		return fault.Newf(fault.Invalid, "--faults %s names an unknown fault; known are %s", s.faults, sim.AllFaults)
	}
	personalities, err := s.personalities()
	if err != nil {
		return err
	}
	first, last, err := s.span(cmd)
	if err != nil {
		return err
	}
	out := &answer{to: a.out}
	if s.print {
		if !cmd.Flags().Changed("seed") {
			return fault.New(fault.Invalid, "--print is for the history of one --seed")
		}
		for _, p := range personalities {
			sim.Tell(out, sim.Draw(s.seed, p, set))
		}
	}
	begun := time.Now()
	var sum sim.Summary
	for seed := first; seed <= last && len(sum.Failures) == 0 && cmd.Context().Err() == nil; seed++ {
		if s.minutes > 0 && time.Since(begun).Minutes() >= s.minutes {
			break
		}
		c := sim.Campaign{First: seed, Last: seed, Personalities: personalities, Faults: set}
		sum.Add(c.Run(time.Now))
		a.simulated(sum.Histories, int(last-first+1)*len(personalities))
	}
	sum.Print(out)
	if len(sum.Failures) == 0 {
		return out.unwritten()
	}
	broken := sum.Failures[0]
	if s.shrink {
		broken = sim.Shrink(broken, 200)
	}
	sim.Explain(out, broken)
	return cmp.Or(out.unwritten(), error(ended(exitFailed)))
}

// simulated shows how far the histories are, every fiftieth time.
func (a *app) simulated(done, of int) {
	if !a.quiet() && of > 50 && done%50 == 0 {
		const width = 30
		bar := strings.Repeat("#", width*done/of)
		fmt.Fprintf(a.err, "[%-*s] %d of %d histories\n", width, bar, done, of)
	}
}

// forecast plays the workflow of a file.
func (a *app) forecast(cmd *cobra.Command, name string, s *simulation) error {
	if s.evictions < 0 || s.evictions >= 100 {
		return usageError("simulate", "--evictions %v: a chance in percent is from 0 to below 100", s.evictions)
	}
	d, err := a.accept(cmd.Context(), name)
	if err != nil {
		return err
	}
	outlook, err := sim.Forecast{
		Definition: d, Lasts: s.lasts, Evictions: s.evictions / 100, Workers: s.workers, Slots: s.slots,
		Histories: s.histories, Seed: s.seed,
	}.Run(func(done int) { a.simulated(done, s.histories) })
	if err != nil {
		return err
	}
	out := &answer{to: a.out}
	outlook.Print(out)
	if err := out.unwritten(); err != nil {
		return err
	}
	if len(outlook.Failures) > 0 {
		return ended(exitFailed)
	}
	return nil
}
