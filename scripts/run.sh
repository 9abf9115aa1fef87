#!/usr/bin/env bash
# What `make run` does. With TELEGRAM_BOT_TOKEN set it is the daemon itself.
# Without, it is the daemon against the built-in simulator, with a handler that
# echoes: that takes two processes, settings and a clean end, hence a script.
set -euo pipefail
cd "$(dirname "$0")/.."
tgspool=$PWD/bin/tgspool

if [ -n "${TELEGRAM_BOT_TOKEN:-}" ]; then
	exec "$tgspool" run
fi

umask 077
dir=$(mktemp -d "${TMPDIR:-/tmp}/tgspool-run.XXXXXX")
simulator='' daemon=''

# The daemon goes first: it still has answers to fetch while it drains.
cleanup() {
	trap '' INT TERM
	for pid in $daemon $simulator; do
		kill -TERM "$pid" 2>/dev/null && wait "$pid" || true
	done
	rm -rf "$dir"
}
trap cleanup EXIT
trap 'exit 0' INT TERM

answers() { (exec 3<>"/dev/tcp/127.0.0.1/$1") 2>/dev/null; }

port=${PORT:-$((20000 + RANDOM % 10000))}
while answers "$port"; do port=$((port + 1)); done
token=123456:SIMULATOR-SIMULATOR-SIMULATOR-SIMUL
printf '%s\n' "$token" >"$dir/token"
cat >"$dir/tgspool.toml" <<SETTINGS
[store]
path = "$dir/spool.db"
[api]
listen = ["unix:$dir/tgspool.sock"]
[bots.echo]
token_file = "$dir/token"
api_base = "http://127.0.0.1:$port"
[[bots.echo.handlers]]
name = "echo"
exec = ["/bin/sh", "-c", 'printf "you said: %s\n" "\$TGSPOOL_TEXT"']
reply = "text"
allow_from = ["*"]
SETTINGS

echo "TELEGRAM_BOT_TOKEN is not set: running against the built-in simulator with an echo handler."
echo "Nothing reaches Telegram. A made-up chat writes every 2 s; Ctrl-C ends it. From another shell:"
echo "  bin/tgspool status --socket $dir/tgspool.sock"
"$tgspool" simulate --listen "127.0.0.1:$port" --token "$token" --feed 2s &
simulator=$!
until answers "$port"; do
	kill -0 "$simulator" 2>/dev/null || { echo "the simulator did not start" >&2; exit 1; }
	sleep 0.1
done
"$tgspool" run --config "$dir/tgspool.toml" &
daemon=$!
wait "$daemon"
