package config_test

// broken are settings with something wrong, and exactly what is said about them.
var broken = []struct{ name, text, want string }{
	{
		"unknown table",
		"[stor]\npath = \"/x\"\n",
		`main.toml:1:2: stor: unknown key (did you mean "store"?)`,
	},
	{
		"unknown key",
		"[store]\npth = \"/x\"\n",
		`main.toml:2:1: store.pth: unknown key (did you mean "path"?)`,
	},
	{
		"unknown key, nothing near",
		"[log]\ncolour = true\n",
		`main.toml:2:1: log.colour: unknown key (known here: level, format)`,
	},
	{
		"key of another table",
		"[bots.home]\nworkers = 4\n",
		`main.toml:2:1: bots.home.workers: unknown key (it belongs in [bots.NAME.sender])`,
	},
	{
		"unknown key in a bot's table",
		"[bots.home.sender]\nchat_gpa = \"1s\"\n",
		`main.toml:2:1: bots.home.sender.chat_gpa: unknown key (did you mean "chat_gap"?)`,
	},
	{
		"unknown key in an inline table",
		"[store]\nkeep = { done = \"1h\", alive = \"1h\" }\n",
		`main.toml:2:23: store.keep.alive: unknown key (known here: done, handled, dead)`,
	},
	{
		"token in settings",
		"[bots.home]\ntoken = \"123456789:AAExampleExampleExampleExampleExampl\"\n",
		`main.toml:2:1: bots.home.token: unknown key (a token doesn't belong in settings: run tgspool token set, or name its file with token_file)`,
	},
	{
		"secret in settings",
		"[bots.home.intake]\nsecret = \"s3cr3t\"\n",
		`main.toml:2:1: bots.home.intake.secret: unknown key (a secret doesn't belong in settings: name its file with secret_file)`,
	},
	{
		"token as a file",
		"[bots.home]\ntoken_file = \"123456789:AAExampleExampleExampleExampleExampl\"\n",
		`main.toml:2:14: bots.home.token_file: looks like a token, not like a file (put the token into a file and name that file here)`,
	},
	{
		"token as a hash",
		"[[bots.home.clients]]\nname = \"a\"\ntoken_sha256 = \"123456789:AAExampleExampleExampleExampleExampl\"\n",
		`main.toml:3:16: bots.home.clients.token_sha256: not a SHA-256 in hex (64 hex digits, made by tgspool client add; never the token itself)`,
	},
	{
		"token as a bot's name",
		"[bots.\"123456789:AAExampleExampleExampleExampleExampl\"]\n",
		`main.toml:1:7: bots."<token>": not a bot's name (1 to 32 of a-z, 0-9, - and _)`,
	},
	{
		"string for an integer",
		"[bots.home.sender]\nworkers = \"many\"\n",
		`main.toml:2:11: bots.home.sender.workers: want an integer, have a string (without quotes)`,
	},
	{
		"integer for a string",
		"[log]\nlevel = 3\n",
		`main.toml:2:9: log.level: want a string, have an integer (one of debug, info, warn, error, in quotes)`,
	},
	{
		"string for a boolean",
		"[api]\ndashboard = \"yes\"\n",
		`main.toml:2:13: api.dashboard: want true or false, have a string (without quotes)`,
	},
	{
		"table for a scalar",
		"[store.path]\nx = 1\n",
		`main.toml:1:8: store.path: want a string, have a table`,
	},
	{
		"scalar for a table",
		"store = 3\n",
		`main.toml:1:1: store: want a table, have an integer`,
	},
	{
		"scalar for the bots",
		"bots = true\n",
		`main.toml:1:1: bots: want a table, have true or false (begin with [bots.NAME])`,
	},
	{
		"table for a list of tables",
		"[bots.home.handlers]\nname = \"a\"\n",
		`main.toml:1:12: bots.home.handlers: want a list of tables, have a table (begin with [[bots.home.handlers]])`,
	},
	{
		"scalar for a list of tables",
		"[bots.home]\nhandlers = 1\n",
		`main.toml:2:1: bots.home.handlers: want a list of tables, have an integer (begin with [[bots.home.handlers]])`,
	},
	{
		"date for a string",
		"[backup]\nat = 03:40:00\n",
		`main.toml:2:6: backup.at: want a string, have a date (in quotes)`,
	},
	{
		"duration without a unit",
		"[daemon]\ndrain = 20\n",
		`main.toml:2:9: daemon.drain: a duration needs a unit (write it with a unit, in quotes: "30s", "10m", "72h")`,
	},
	{
		"duration without a unit, in quotes",
		"[daemon]\ndrain = \"20\"\n",
		`main.toml:2:9: daemon.drain: a duration needs a unit (write it with a unit, in quotes: "30s", "10m", "72h")`,
	},
	{
		"duration in days",
		"[bots.home.sender]\nuncertain_for = \"3d\"\n",
		`main.toml:2:17: bots.home.sender.uncertain_for: "3d" is not a duration (in hours: "72h")`,
	},
	{
		"not a duration",
		"[daemon]\ndrain = \"soon\"\n",
		`main.toml:2:9: daemon.drain: "soon" is not a duration (write it with a unit, in quotes: "30s", "10m", "72h")`,
	},
	{
		"boolean for a duration",
		"[daemon]\ndrain = true\n",
		`main.toml:2:9: daemon.drain: want a duration, have true or false (write it with a unit, in quotes: "30s", "10m", "72h")`,
	},
	{
		"negative duration",
		"[daemon]\ndrain = \"-20s\"\n",
		`main.toml:2:9: daemon.drain: must not be negative`,
	},
	{
		"duration too short",
		"[api]\nmax_wait = \"1ms\"\n",
		`main.toml:2:12: api.max_wait: must be at least 1s`,
	},
	{
		"duration too long",
		"[bots.home.intake]\npoll_timeout = \"2m\"\n",
		`main.toml:2:16: bots.home.intake.poll_timeout: must be at most 50s`,
	},
	{
		"not a size",
		"[store]\nmax_size = \"1GX\"\n",
		`main.toml:2:12: store.max_size: "1GX" is not a size (units: kB, MB, GB, TB, KiB, MiB, GiB, TiB)`,
	},
	{
		"size with a fraction",
		"[store]\nmax_size = \"1.5GiB\"\n",
		`main.toml:2:12: store.max_size: "1.5GiB" is not a size (for example "256MiB", "50MB", or a number of bytes)`,
	},
	{
		"size out of range",
		"[store]\nmax_size = \"99999999TiB\"\n",
		`main.toml:2:12: store.max_size: out of range`,
	},
	{
		"size too small",
		"[store]\nmax_size = 1000\n",
		`main.toml:2:12: store.max_size: must be at least 1MiB`,
	},
	{
		"negative size",
		"[store]\nkeep_size = -5\n",
		`main.toml:2:13: store.keep_size: must not be negative`,
	},
	{
		"boolean for a size",
		"[store]\nkeep_size = true\n",
		`main.toml:2:13: store.keep_size: want a size, have true or false (for example "256MiB", "50MB", or a number of bytes)`,
	},
	{
		"negative integer",
		"[bots.home.sender]\nworkers = -1\n",
		`main.toml:2:11: bots.home.sender.workers: must not be negative`,
	},
	{
		"zero integer",
		"[bots.home.sender]\nworkers = 0\n",
		`main.toml:2:11: bots.home.sender.workers: must be more than 0`,
	},
	{
		"integer too large",
		"[bots.home.sender]\nworkers = 1000\n",
		`main.toml:2:11: bots.home.sender.workers: must be at most 256`,
	},
	{
		"integer out of range",
		"[backup]\nkeep = 9000000000\n",
		`main.toml:2:8: backup.keep: out of range`,
	},
	{
		"float for an integer",
		"[backup]\nkeep = 1.5\n",
		`main.toml:2:8: backup.keep: want an integer, have a number`,
	},
	{
		"negative rate",
		"[bots.home.sender]\nrate = -1.0\n",
		`main.toml:2:8: bots.home.sender.rate: must not be negative`,
	},
	{
		"infinite rate",
		"[bots.home.sender]\nrate = inf\n",
		`main.toml:2:8: bots.home.sender.rate: not a usable number`,
	},
	{
		"string for a number",
		"[bots.home.sender]\nrate = \"25\"\n",
		`main.toml:2:8: bots.home.sender.rate: want a number, have a string (without quotes)`,
	},
	{
		"unknown value",
		"[log]\nlevel = \"warning\"\n",
		`main.toml:2:9: log.level: "warning" is not known (did you mean "warn"? one of debug, info, warn, error)`,
	},
	{
		"unknown value, nothing near",
		"[bots.home.sender]\non_uncertain = \"think\"\n",
		`main.toml:2:16: bots.home.sender.on_uncertain: "think" is not known (one of hold, resend, resend_marked, drop)`,
	},
	{
		"empty value",
		"[log]\nlevel = \"\"\n",
		`main.toml:2:9: log.level: must not be empty`,
	},
	{
		"empty path",
		"[store]\npath = \"\"\n",
		`main.toml:2:8: store.path: must not be empty`,
	},
	{
		"home not expanded",
		"[store]\npath = \"~/spool.db\"\n",
		`main.toml:2:8: store.path: ~ is not expanded (write the whole path)`,
	},
	{
		"not a time of day",
		"[backup]\nat = \"25:00\"\n",
		`main.toml:2:6: backup.at: "25:00" is not a time of day (for example "03:40")`,
	},
	{
		"bad proxy",
		"[bots.home]\nproxy = \"user:hunter2@proxy\"\n",
		`main.toml:2:9: bots.home.proxy: not a URL (it begins with http:// or https:// or socks5:// or socks5h:// and a host)`,
	},
	{
		"bad proxy scheme",
		"[bots.home]\nproxy = \"ftp://user:hunter2@proxy\"\n",
		`main.toml:2:9: bots.home.proxy: not a URL that can be used here (it begins with http:// or https:// or socks5:// or socks5h://)`,
	},
	{
		"bad api_base",
		"[bots.home]\napi_base = \"api.telegram.org\"\n",
		`main.toml:2:12: bots.home.api_base: not a URL (it begins with http:// or https:// and a host)`,
	},
	{
		"token in api_base",
		"[bots.home]\napi_base = \"https://api.telegram.org/bot123456789:AAExampleExampleExampleExampleExampl\"\n",
		`main.toml:2:12: bots.home.api_base: must not hold the token or the method (for example https://api.telegram.org)`,
	},
	{
		"query in api_base",
		"[bots.home]\napi_base = \"https://api.telegram.org/?x=1\"\n",
		`main.toml:2:12: bots.home.api_base: must be scheme, host and path alone (for example https://api.telegram.org)`,
	},
	{
		"bad port in a URL",
		"[monitor]\nheartbeat_url = \"https://hc.example:99999/uuid\"\n",
		`main.toml:2:17: monitor.heartbeat_url: not a URL: the port is out of range (1 to 65535)`,
	},
	{
		"webhook without TLS",
		"[bots.home.intake]\nurl = \"http://bot.example/telegram\"\n",
		`main.toml:2:7: bots.home.intake.url: not a URL that can be used here (it begins with https://)`,
	},
	{
		"listen without a scheme",
		"[api]\nlisten = [\"127.0.0.1:8081\"]\n",
		`main.toml:2:11: api.listen: "127.0.0.1:8081" is not an address (write "tcp:127.0.0.1:8081")`,
	},
	{
		"listen on a path without a scheme",
		"[api]\nlisten = [\"/run/x.sock\"]\n",
		`main.toml:2:11: api.listen: "/run/x.sock" is not an address (write "unix:/run/x.sock")`,
	},
	{
		"listen on nonsense",
		"[api]\nlisten = [\"somewhere\"]\n",
		`main.toml:2:11: api.listen: "somewhere" is not an address ("unix:/run/tgspool/tgspool.sock" or "tcp:127.0.0.1:8081")`,
	},
	{
		"listen on a relative socket",
		"[api]\nlisten = [\"unix:x.sock\"]\n",
		`main.toml:2:11: api.listen: "unix:x.sock" is not the path of a socket (unix: and an absolute path of at most 107 bytes)`,
	},
	{
		"listen on a bad port",
		"[api]\nlisten = [\"tcp:127.0.0.1:http\"]\n",
		`main.toml:2:11: api.listen: "127.0.0.1:http" has no usable port (0 to 65535)`,
	},
	{
		"listen on a bad host",
		"[api]\nlisten = [\"tcp:a b:80\"]\n",
		`main.toml:2:11: api.listen: "a b:80" has no usable host (host:port, for example 127.0.0.1:8443 or [::1]:8443)`,
	},
	{
		"listen as a string",
		"[api]\nlisten = \"tcp:127.0.0.1:8081\"\n",
		`main.toml:2:10: api.listen: want a list, have a string (for example ["tcp:127.0.0.1:8081"])`,
	},
	{
		"listen on a number",
		"[api]\nlisten = [8081]\n",
		`main.toml:2:11: api.listen: want an address, have an integer ("unix:/path" or "tcp:host:port", or a table with addr)`,
	},
	{
		"listen without an address",
		"[api]\nlisten = [{ serve = [\"bot\"] }]\n",
		`main.toml:2:11: api.listen.addr: missing`,
	},
	{
		"listen twice",
		"[api]\nlisten = [\"unix:/a.sock\", \"unix:/b/../a.sock\"]\n",
		`main.toml:2:27: api.listen: "unix:/a.sock" is there twice (remove one of the two)`,
	},
	{
		"unknown role",
		"[api]\nlisten = [{ addr = \"unix:/x.sock\", serve = [\"bots\"] }]\n",
		`main.toml:2:45: api.listen.serve: "bots" is not known (did you mean "bot"? one of bot, manage, metrics, submit)`,
	},
	{
		"no role",
		"[api]\nlisten = [{ addr = \"unix:/x.sock\", serve = [] }]\n",
		`main.toml:2:44: api.listen: serves nothing (bot, manage, metrics, submit)`,
	},
	{
		"manage off loopback without TLS",
		"[api]\nlisten = [\n  \"unix:/x.sock\",\n  { addr = \"tcp:0.0.0.0:8081\", serve = [\"bot\", \"manage\"] },\n]\n",
		`main.toml:4:40: api.listen: off this machine without TLS nothing but bot can be served (give tls_cert and tls_key, or listen on 127.0.0.1)`,
	},
	{
		"half a certificate",
		"[api]\nlisten = [{ addr = \"tcp:0.0.0.0:8081\", tls_cert = \"/c.pem\" }]\n",
		`main.toml:2:51: api.listen: tls_cert and tls_key belong together (give both or none)`,
	},
	{
		"TLS on a unix socket",
		"[api]\nlisten = [{ addr = \"unix:/x.sock\", tls_cert = \"/c\", tls_key = \"/k\" }]\n",
		`main.toml:2:47: api.listen: a unix socket has no TLS`,
	},
	{
		"host with a port",
		"[api]\nhosts = [\"pi.local:8081\"]\n",
		`main.toml:2:10: api.hosts: "pi.local:8081" is not a host (a name or address alone, without scheme, port or path)`,
	},
	{
		"bot name",
		"[bots.Home]\n",
		`main.toml:1:7: bots.Home: not a bot's name (1 to 32 of a-z, 0-9, - and _)`,
	},
	{
		"bot as a scalar",
		"[bots]\nhome = 1\n",
		`main.toml:2:1: bots.home: want a table, have an integer`,
	},
	{
		"bot as a list",
		"[[bots.home]]\n",
		`main.toml:1:8: bots.home: want a table, have a list of tables`,
	},
	{
		"chat name that is an id",
		"[bots.home.chats]\n12345 = 12345\n",
		`main.toml:2:1: bots.home.chats.12345: not a name for a chat (a name is no id, no @name and no *)`,
	},
	{
		"chat that is none",
		"[bots.home.chats]\nme = \"someone\"\n",
		`main.toml:2:6: bots.home.chats.me: not a chat (an id such as 12345 or -1001234567890, or "@username")`,
	},
	{
		"chat 0",
		"[bots.home.chats]\nme = 0\n",
		`main.toml:2:6: bots.home.chats.me: not a chat (an id such as 12345 or -1001234567890, or "@username")`,
	},
	{
		"unknown default chat",
		"[bots.home]\ndefault_chat = \"mee\"\n[bots.home.chats]\nme = 1\n",
		`main.toml:2:16: bots.home.default_chat: "mee" is no chat (did you mean "me"?)`,
	},
	{
		"unknown chat without any names",
		"[bots.home]\ndefault_chat = \"me\"\n",
		`main.toml:2:16: bots.home.default_chat: "me" is no chat (names stand in [bots.NAME.chats])`,
	},
	{
		"admin group without users",
		"[bots.home.chats]\nme = -5\n",
		`main.toml:2:6: bots.home.admin.users: missing: the admin chat is a group (list the users who may decide)`,
	},
	{
		"admin group spelled out without users",
		"[bots.home.chats]\nteam = -5\n[bots.home.admin]\nchat = \"team\"\nusers = []\n",
		`main.toml:4:8: bots.home.admin.users: missing: the admin chat is a group (list the users who may decide)`,
	},
	{
		"admin user that is a group",
		"[bots.home.chats]\nteam = -5\n[bots.home.admin]\nchat = \"team\"\nusers = [\"team\"]\n",
		`main.toml:5:10: bots.home.admin.users: "team" is a group or channel, not a user`,
	},
	{
		"webhook intake without its needs",
		"[bots.home.intake]\nmode = \"webhook\"\n",
		"main.toml:2:8: bots.home.intake.listen: missing (mode = \"webhook\" needs an address to listen on)\nmain.toml:2:8: bots.home.intake.secret_file: missing (mode = \"webhook\" needs a secret, so that nobody else can post updates)",
	},
	{
		"half a certificate of the intake",
		"[bots.home.intake]\ntls_key = \"/k\"\n",
		`main.toml:1:12: bots.home.intake.tls_cert: tls_cert and tls_key belong together (give both or none)`,
	},
	{
		"update kind",
		"[bots.home.intake]\nallowed_updates = [\"Message\"]\n",
		`main.toml:2:20: bots.home.intake.allowed_updates: "Message" is not a kind of update (for example message, callback_query)`,
	},
	{
		"handler without a name",
		"[[bots.home.handlers]]\npull = true\n",
		`main.toml:1:13: bots.home.handlers.name: missing`,
	},
	{
		"handler with a bad name",
		"[[bots.home.handlers]]\nname = \"a b\"\npull = true\n",
		`main.toml:2:8: bots.home.handlers.name: "a b" is not a usable name (1 to 64 letters, digits, -, _ and .)`,
	},
	{
		"handlers of one name",
		"[[bots.home.handlers]]\nname = \"a\"\npull = true\n\n[[bots.home.handlers]]\nname = \"a\"\npull = true\n",
		`main.toml:6:8: bots.home.handlers.name: "a" is there twice, first at main.toml:2:8`,
	},
	{
		"handler that does nothing",
		"[[bots.home.handlers]]\nname = \"a\"\npull = false\n",
		`main.toml:1:13: bots.home.handlers: does nothing (give exec, webhook or pull = true)`,
	},
	{
		"handler that does two things",
		"[[bots.home.handlers]]\nname = \"a\"\npull = true\nwebhook = \"http://127.0.0.1:1/\"\n",
		`main.toml:3:8: bots.home.handlers: has both webhook and pull (make two handlers of it)`,
	},
	{
		"exec as a string",
		"[[bots.home.handlers]]\nname = \"a\"\nexec = \"/bin/true\"\nallow_from = [\"*\"]\n",
		`main.toml:3:8: bots.home.handlers.exec: want a list of strings, have a string (program and arguments one by one: ["/usr/bin/uptime", "-p"])`,
	},
	{
		"exec without a program",
		"[[bots.home.handlers]]\nname = \"a\"\nexec = []\nallow_from = [\"*\"]\n",
		`main.toml:3:8: bots.home.handlers.exec: names no program (for example ["/usr/bin/uptime"])`,
	},
	{
		"exec with an empty program",
		"[[bots.home.handlers]]\nname = \"a\"\nexec = [\"\", \"-x\"]\nallow_from = [\"*\"]\n",
		`main.toml:3:9: bots.home.handlers.exec: names no program (for example ["/usr/bin/uptime"])`,
	},
	{
		"exec without anyone allowed",
		"[[bots.home.handlers]]\nname = \"a\"\nexec = [\"/bin/true\"]\n",
		`main.toml:3:8: bots.home.handlers.allow_from: missing: a program must say who may run it (allow_from = ["me"] or allow_chats = ["me"]; ["*"] is everyone)`,
	},
	{
		"allow_from as a string",
		"[[bots.home.handlers]]\nname = \"a\"\nexec = [\"/bin/true\"]\nallow_from = \"*\"\n",
		`main.toml:4:14: bots.home.handlers.allow_from: want a list, have a string (for example ["me"], or ["*"] for all)`,
	},
	{
		"star beside others",
		"[[bots.home.handlers]]\nname = \"a\"\nexec = [\"/bin/true\"]\nallow_from = [1, \"*\"]\n",
		`main.toml:4:18: bots.home.handlers.allow_from: "*" stands alone`,
	},
	{
		"unknown name in allow_from",
		"[bots.home.chats]\nfamily = 7\n[[bots.home.handlers]]\nname = \"a\"\nexec = [\"/bin/true\"]\nallow_from = [\"familiy\"]\n",
		`main.toml:6:15: bots.home.handlers.allow_from: "familiy" is no chat (did you mean "family"?)`,
	},
	{
		"@name in allow_from",
		"[[bots.home.handlers]]\nname = \"a\"\nexec = [\"/bin/true\"]\nallow_from = [\"@someone\"]\n",
		`main.toml:4:15: bots.home.handlers.allow_from: "@someone" is an @name, which can change hands (write the id)`,
	},
	{
		"group in allow_from",
		"[[bots.home.handlers]]\nname = \"a\"\nexec = [\"/bin/true\"]\nallow_from = [-100]\n",
		`main.toml:4:15: bots.home.handlers.allow_from: "-100" is a group or channel, not a user`,
	},
	{
		"allow_from of a webhook",
		"[[bots.home.handlers]]\nname = \"a\"\nwebhook = \"http://127.0.0.1:1/\"\nallow_from = [1]\n",
		`main.toml:4:14: bots.home.handlers.allow_from: only for handlers with exec (a webhook handler decides by itself; match = { from = … } narrows what it gets)`,
	},
	{
		"reply of a pull handler",
		"[[bots.home.handlers]]\nname = \"a\"\npull = true\nreply = \"calls\"\n",
		`main.toml:4:9: bots.home.handlers.reply: only for handlers with exec`,
	},
	{
		"bad regular expression",
		"[[bots.home.handlers]]\nname = \"a\"\npull = true\nmatch = { text = \"a(b\" }\n",
		"main.toml:4:18: bots.home.handlers.match.text: missing closing ): `a(b` (the syntax is RE2)",
	},
	{
		"command without a slash",
		"[[bots.home.handlers]]\nname = \"a\"\npull = true\nmatch = { command = \"uptime\" }\n",
		`main.toml:4:21: bots.home.handlers.match.command: "uptime" is not a command (a command begins with a slash: "/uptime")`,
	},
	{
		"command with the bot's name",
		"[[bots.home.handlers]]\nname = \"a\"\npull = true\nmatch = { command = \"/uptime@mybot\" }\n",
		`main.toml:4:21: bots.home.handlers.match.command: "/uptime@mybot" is not a command (without the bot's name; /x@ourname is matched too)`,
	},
	{
		"client without a hash",
		"[[bots.home.clients]]\nname = \"a\"\n",
		`main.toml:1:13: bots.home.clients.token_sha256: missing`,
	},
	{
		"clients with one token",
		"[[bots.home.clients]]\nname = \"a\"\ntoken_sha256 = \"" + hash + "\"\n[[bots.home.clients]]\nname = \"b\"\ntoken_sha256 = \"" + hash + "\"\n",
		`main.toml:6:16: bots.home.clients.token_sha256: the same token as client "a" (one token, one client)`,
	},
	{
		"client's method",
		"[[bots.home.clients]]\nname = \"a\"\ntoken_sha256 = \"" + hash + "\"\nmethods = [\"send message\"]\n",
		`main.toml:4:12: bots.home.clients.methods: "send message" is not a method (for example sendMessage)`,
	},
	{
		"key twice in a file",
		"[store]\npath = \"/a\"\nmax_size = \"1GiB\"\npath = \"/b\"\n",
		`main.toml:4:1: store.path: already set at main.toml:2:1 (remove one of the two)`,
	},
	{
		"table twice in a file",
		"[log]\nlevel = \"info\"\n[log]\nformat = \"json\"\n",
		`main.toml:3:2: log: already begun at main.toml:1:2 (put both parts under one header)`,
	},
	{
		"table over a scalar",
		"[store]\npath = \"/a\"\n[store.path.x]\n",
		`main.toml:3:8: store.path: already set at main.toml:2:1 as a string`,
	},
	{
		"syntax",
		"[store]\npath = /a\n",
		`main.toml:2:8: unexpected character U+002F '/' at start of value`,
	},
	{
		"string without an end",
		"[store]\npath = \"/a\n",
		`main.toml:2:11: basic strings cannot have new lines`,
	},
	{
		"not UTF-8",
		"[store]\npath = \"\xff\"\n",
		`main.toml:2:9: not UTF-8 text (save the file as UTF-8)`,
	},
	{
		"UTF-16",
		"\xff\xfe[\x00s\x00",
		`main.toml:1:1: not UTF-8 text (save the file as UTF-8)`,
	},
	{
		"columns count characters",
		"[bots.home]\nchats = { \"ß\" = 1, x = 0 }\n",
		`main.toml:2:24: bots.home.chats.x: not a chat (an id such as 12345 or -1001234567890, or "@username")`,
	},
	{
		"several at once, in order",
		"[log]\nlevel = \"loud\"\nformat = 1\n[daemon]\ndrain = 1\n[store]\npth = 1\n",
		"main.toml:2:9: log.level: \"loud\" is not known (one of debug, info, warn, error)\nmain.toml:3:10: log.format: want a string, have an integer (one of auto, json, in quotes)\nmain.toml:5:9: daemon.drain: a duration needs a unit (write it with a unit, in quotes: \"30s\", \"10m\", \"72h\")\nmain.toml:7:1: store.pth: unknown key (did you mean \"path\"?)",
	},
	{
		"CRLF",
		"[log]\r\nlevel = \"info\"\r\nformat = 1\r\n",
		`main.toml:3:10: log.format: want a string, have an integer (one of auto, json, in quotes)`,
	},
	{
		"byte order mark",
		"\xef\xbb\xbf[log]\nformat = 1\n",
		`main.toml:2:10: log.format: want a string, have an integer (one of auto, json, in quotes)`,
	},
}
