package cli

import (
	"errors"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tgspool/tgspool/internal/config"
)

func (a *app) configCommand() *cobra.Command {
	c := &cobra.Command{Use: "config", Short: "Check and show the settings"}
	c.AddCommand(a.configCheck(), a.configShow())
	return c
}

func (a *app) configCheck() *cobra.Command {
	return &cobra.Command{
		Use: "check", Short: "Check the settings; print all that is wrong", Args: cobra.NoArgs,
		Long: "Check the settings and print all that is wrong, each with file, line and column. Warnings are\n" +
			"about what is allowed but hardly meant, about keys that nothing acts on yet, and about tokens\n" +
			"that this user can't read or that others can.",
		Example: "  tgspool config check\n  tgspool config check --config ./tgspool.toml",
		RunE: func(*cobra.Command, []string) error {
			cfg, err := a.load()
			if err != nil {
				return err
			}
			for _, p := range append(config.Check(cfg), a.checkTokens(cfg)...) {
				a.complain("warning", p.String())
			}
			names := make([]string, len(cfg.Bots))
			for i, bot := range cfg.Bots {
				names[i] = bot.Name
			}
			a.out.printf("the settings are right: %s (%s)\n", plural(len(names), "bot"), safe(strings.Join(names, ", ")))
			return nil
		},
	}
}

// load reads the settings that the flags and the environment name. Every error
// is one of the settings, whatever its kind.
func (a *app) load() (*config.Config, error) {
	path, _ := config.Resolve(a.configPath, a.env)
	cfg, err := config.Load(path, a.env)
	if err == nil {
		return cfg, nil
	}
	if errors.Is(err, config.ErrNothingConfigured) {
		return nil, err
	}
	return nil, &exitError{code: exitConfig, msg: err.Error()}
}

func (a *app) configShow() *cobra.Command {
	return &cobra.Command{
		Use: "show", Short: "Show the settings in use, defaults included", Args: cobra.NoArgs,
		Long: "Show the settings in use, defaults included, as a settings file. What may hold a secret is\n" +
			"left out.",
		Example: "  tgspool config show | grep chat_gap",
		RunE: func(*cobra.Command, []string) error {
			cfg, err := a.load()
			if err != nil {
				return err
			}
			for _, file := range cfg.Files {
				a.out.printf("# %s\n", safe(file))
			}
			a.out.printf("%s", cfg.TOML())
			return nil
		},
	}
}
