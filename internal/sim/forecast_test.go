package sim

import (
	"strings"
	"testing"
	"time"

	"jobq/core/fault"
)

func TestEvictionsCostStartsAndTime(t *testing.T) {
	t.Parallel()
	diamond := edges(1<<1|1<<2|1<<(4+3)|1<<(8+3)).small(4, smallPolicies()[0], 0).Definition
	f := Forecast{Definition: diamond, Lasts: 20 * time.Minute, Workers: 2, Slots: 1, Histories: 20, Seed: 1}
	calm, err := f.Run(nil)
	if err != nil {
		t.Fatal(err)
	}
	f.Evictions = 0.6
	rough, err := f.Run(nil)
	if err != nil {
		t.Fatal(err)
	}
	for name, o := range map[string]Outlook{"calm": calm, "rough": rough} {
		if o.Completed != 20 || len(o.Failures) > 0 {
			t.Errorf("%s: completed in %d of 20 histories, %v", name, o.Completed, o.Failures)
		}
	}
	if calm.Starts != 80 || len(calm.Repeated) > 0 {
		t.Errorf("without evictions: %d starts, repeated %v; want 80 and none", calm.Starts, calm.Repeated)
	}
	if rough.Starts <= calm.Starts || rough.Mean <= calm.Mean || len(rough.Repeated) == 0 {
		t.Errorf("with evictions: %d starts in %v on average, without %d in %v", rough.Starts, rough.Mean, calm.Starts, calm.Mean)
	}
}

func TestAForecastSaysWhyItDoesNotComplete(t *testing.T) {
	t.Parallel()
	d := edges(0).small(1, smallPolicies()[0], 0).Definition
	d.DefaultTimeout = 5 * time.Minute
	out, err := Forecast{Definition: d, Lasts: 20 * time.Minute, Workers: 1, Slots: 1, Histories: 3}.Run(nil)
	if err != nil || out.Completed != 0 || len(out.Failed) != 1 || out.Failed[0].Times != 3 || !strings.Contains(out.Failed[0].Task, "5m") {
		t.Errorf("Run = %+v, %v, want three failures by the limit of 5m", out, err)
	}
}

func TestForecastRefusesWhatMakesNoSense(t *testing.T) {
	t.Parallel()
	d := edges(0).small(1, smallPolicies()[0], 0).Definition
	for name, f := range map[string]Forecast{
		"certain eviction": {Definition: d, Lasts: time.Minute, Evictions: 1, Workers: 1, Slots: 1, Histories: 1},
		"no worker":        {Definition: d, Lasts: time.Minute, Slots: 1, Histories: 1},
		"no duration":      {Definition: d, Workers: 1, Slots: 1, Histories: 1},
	} {
		if _, err := f.Run(nil); !fault.Is(err, fault.Invalid) {
			t.Errorf("%s: Run = %v, want invalid", name, err)
		}
	}
}
