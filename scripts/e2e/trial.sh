#!/bin/bash
# Runs inside of the emulated machine: installs the package, starts the daemon, and
# passes a message both ways with the simulator as Telegram.
set -euo pipefail
trap 'echo "trial: failed in line $LINENO"; journalctl --no-pager -u tgspool | tail -30' ERR
token=123456:SIMULATOR-SIMULATOR-SIMULATOR-SIMUL

# ask METHOD PATH [BODY] speaks to the simulator's control address without a client.
ask() {
	exec 3<>/dev/tcp/127.0.0.1/9091
	printf '%s /sim/%s HTTP/1.0\r\nContent-Length: %d\r\n\r\n%s' "$1" "$2" "${#3}" "$3" >&3
	cat <&3
	exec 3<&-
}

# until_true COMMAND... for a minute.
until_true() {
	for _ in {1..300}; do
		if "$@" >/dev/null 2>&1; then return; fi
		sleep 0.2
	done
	echo "trial: not within a minute: $*"
	false
}

heard() { grep -q 'heard hello' <<<"$(ask GET journal '')"; }

apt-get install -y -qq /root/tgspool.deb
[ "$(systemctl is-active tgspool || true) $(systemctl is-enabled tgspool || true)" = "inactive disabled" ]
systemd-run --quiet --unit=telegram /usr/bin/tgspool simulate --listen 127.0.0.1:9090 --control 127.0.0.1:9091 --token $token
until_true ask GET status ''
cat >/etc/tgspool/conf.d/50-trial.toml <<'TOML'
[bots.home]
api_base = "http://127.0.0.1:9090"
[bots.home.chats]
me = 42
[[bots.home.handlers]]
name = "echo"
exec = ["/bin/sh", "-c", 'echo "heard $TGSPOOL_TEXT"; echo "by $(id -un) on $(uname -m)"']
allow_from = ["me"]
TOML
echo $token >/etc/tgspool/credentials/home.token
systemctl enable --quiet --now tgspool
ask POST text '{"chat_id":42,"user_id":42,"text":"hello"}' >/dev/null
until_true heard
ask GET journal '' | grep -o 'by tgspool-exec on aarch64'
tgspool send --chat me --wait=60s "hello from $(uname -m)"
before=$(systemctl show --property=ExecMainStartTimestampMonotonic --value tgspool)
after=$(systemctl show --property=ActiveEnterTimestampMonotonic --value tgspool)
echo "trial: READY after $(((after - before) / 1000)) ms, $(awk '/RssAnon/ { print $2 }' "/proc/$(systemctl show -p MainPID --value tgspool)/status") kB anonymous"
systemctl restart tgspool
tgspool send --chat me --wait=60s "after a restart"
apt-get purge -y -qq tgspool
[ ! -e /var/lib/tgspool ] && [ ! -e /etc/tgspool ]
echo "trial: passed after $(cut -d' ' -f1 /proc/uptime) s of uptime"
