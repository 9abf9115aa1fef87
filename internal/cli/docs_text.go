package cli

// What the man page says beside the help of the commands.

const descriptionText = `One daemon, started by "tgspool run" and usually by the unit tgspool.service, keeps the spool.
All other commands speak to it through its socket, or stand alone.

An update comes in, a job is one outgoing call. A job is pending, running, and then done; or it is
dead (Telegram refused it), uncertain (nobody can know whether it arrived), held, cancelled or
expired. An update is open, leased, and then handled; or ignored, dead or expired.
"tgspool queue why" and "tgspool inbox show" say what one waits for.`

var exitRows = []row{
	{"0", "done; with --wait: delivered"},
	{"64", "wrong use"},
	{"65", "wrong data, or rejected; with --wait: dead, cancelled or expired"},
	{"69", "no daemon answers, or it lets this user do nothing"},
	{"74", "the store or the disk"},
	{"75", "try later: another daemon has the store; with --wait: still open, uncertain or held"},
	{"78", "the settings are wrong, or there are none"},
}

var environmentRows = []row{
	{"TGSPOOL_CONFIG", "The settings file, where --config isn't given."},
	{"TGSPOOL_SOCKET", "The daemon's socket, where --socket isn't given."},
	{"TELEGRAM_BOT_TOKEN", "The token of the bot default, when no settings name a bot."},
	{"TGSPOOL_API_BASE", "The Bot API server of that bot."},
	{"TGSPOOL_EXEC_SOCKET", "Where the daemon has handlers' programs run; the unit sets it. Empty: they run beside the daemon, as its user."},
	{"CREDENTIALS_DIRECTORY", "Set by systemd. The file bot_NAME.token in it is the token of the bot NAME."},
	{"GOMEMLIMIT", "A soft limit of the daemon's memory; the unit sets 72MiB."},
}

var fileRows = []row{
	{"/etc/tgspool/tgspool.toml", "The settings, all commented out. It never needs an edit."},
	{"/etc/tgspool/conf.d/*.toml", "Your settings, read after it in the order of their names."},
	{"/etc/tgspool/credentials/NAME.token", "The token of the bot NAME, owned by root, mode 0600. The daemon gets a copy at its start."},
	{"/etc/default/tgspool", "Environment of the service, one NAME=value a line. Not there unless you make it."},
	{"/var/lib/tgspool/spool.db", "The spool. Uploaded files and snapshots are beside it."},
	{"/var/lib/tgspool-exec", "The home of handlers' programs."},
	{"/run/tgspool/tgspool.sock", "For the commands; for root and the group tgspool."},
	{"/run/tgspool/submit.sock", "For posting jobs only; for the group tgspool-send."},
	{"/usr/share/doc/tgspool/examples", "Handlers and drop-ins for the units."},
}

var serviceText = []string{
	`The package starts nothing by itself: a daemon without a token has nothing to do. After a token
and settings are there, "systemctl enable --now tgspool" starts it, and "journalctl -u tgspool" shows
what it does; JOB_ID=123, BOT=home, CHAT_ID=… and HANDLER=… behind that pick lines.`,
	`Clients of the sockets wait while the daemon is restarted or upgraded. For the same reason a
stopped service is started by the next one that calls; to stop it for good, stop its sockets
before it: systemctl stop 'tgspool*.socket', then systemctl stop tgspool.`,
	`Programs of handlers run as the user tgspool-exec in units of their own, tgspool-exec@.service,
which can't read tokens or the spool and see no /home, no devices and no memory that is both
writable and executable. Drop-ins that give more are among the examples:
copy one to /etc/systemd/system/tgspool-exec@.service.d/ and run systemctl daemon-reload. What one
sets with Environment= reaches the programs.`,
}
