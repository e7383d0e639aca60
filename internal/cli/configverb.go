package cli

import (
	"errors"
	"strings"

	"github.com/spf13/cobra"

	"jobq/internal/config"
)

// settingView is one setting as config show prints it.
type settingView struct {
	Name    string   `json:"name"`
	Value   string   `json:"value"`
	Source  string   `json:"source"`
	Default string   `json:"default"`
	Env     []string `json:"env"`
	Verbs   []string `json:"verbs"`
	Doc     string   `json:"doc"`
}

func newConfig(a *app) *cobra.Command {
	cmd := &cobra.Command{Use: "config", Short: "Look at settings", GroupID: groupFile, Args: cobra.ArbitraryArgs, RunE: needsSubverb}
	var asJSON bool
	show := a.command(verb{
		use: "show", short: "Print every setting, its value and where that came from",
		run: func(cmd *cobra.Command, _ []string) error {
			values, wrong := config.Resolve(config.Everywhere, a.lookup, settingFlags(cmd))
			return errors.Join(a.printSettings(values, asJSON), wrong)
		},
	})
	show.Flags().BoolVar(&asJSON, "json", false, "print one JSON object")
	cmd.AddCommand(show)
	return cmd
}

func (a *app) printSettings(values *config.Values, asJSON bool) error {
	if asJSON {
		views := []settingView{}
		for _, v := range values.All() {
			s := v.Setting
			views = append(views, settingView{s.Name, v.Text, v.Source, s.Default, s.Env, append([]string{}, s.Verbs...), s.Doc})
		}
		return printJSON(a.out, struct {
			Settings []settingView `json:"settings"`
		}{views})
	}
	t := tableOf("setting", "value", "from", "variable")
	for _, v := range values.All() {
		t.add(v.Setting.Name, orDash(line(v.Text)), v.Source, strings.Join(v.Setting.Env, ", "))
	}
	return printTable(a.out, t)
}
