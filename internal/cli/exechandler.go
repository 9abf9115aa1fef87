package cli

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/user"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/tgspool/tgspool/internal/handler"
)

// execHandlerCommand is one instance of tgspool-exec@.service: its standard
// input is the connection of a daemon that wants a program run.
func (a *app) execHandlerCommand() *cobra.Command {
	var peer string
	c := &cobra.Command{
		Use: "exec-handler", Short: "Run one handler for the daemon on standard input", Args: cobra.NoArgs, Hidden: true,
		RunE: func(c *cobra.Command, _ []string) error { return a.execHandler(c.Context(), peer) },
	}
	c.Flags().StringVar(&peer, "peer", "tgspool", "the `user`, beside root, whose programs are run")
	return c
}

func (a *app) execHandler(ctx context.Context, peer string) error {
	file, ok := a.stdin.(*os.File)
	if !ok {
		return usagef("standard input is no socket")
	}
	conn, err := net.FileConn(file)
	if err != nil {
		return withHint(usagef("standard input is no socket"), "tgspool-exec.socket starts this; to try a handler: tgspool try")
	}
	uid, err := handler.UnitPeer(conn)
	if err == nil {
		err = mayAsk(uid, peer)
	}
	if err != nil {
		_ = conn.Close()
		return &exitError{code: exitUsage, msg: err.Error()}
	}
	return handler.ServeUnit(ctx, conn, handler.UnitOptions{Env: os.Environ()})
}

// mayAsk refuses everybody but root and the daemon's user: a request names the
// program that is run.
func mayAsk(uid uint32, name string) error {
	if uid == 0 {
		return nil
	}
	if strconv.FormatUint(uint64(uid), 10) == name {
		return nil
	}
	known, err := user.Lookup(name)
	if err != nil {
		return fmt.Errorf("looking up the daemon's user: %w", err)
	}
	if known.Uid != strconv.FormatUint(uint64(uid), 10) {
		return fmt.Errorf("user %d may not run handlers; %s and root may", uid, name)
	}
	return nil
}
