# Sourced: steps from the package to the first message.

UNITS="tgspool.service tgspool.socket tgspool-submit.socket tgspool-botapi.socket tgspool-exec.socket tgspool-exec@.service"
SOCKETS="tgspool.socket tgspool-submit.socket tgspool-botapi.socket"

# apt ARGS... in the machine, which has no network and no lists.
apt() { inside apt-get -qq -y -o Dpkg::Use-Pty=0 -o APT::Sandbox::User=root "$@" 2>&1; }

install_package() { cp "$1" "$ROOT/root/tgspool.deb" && apt install --reinstall --allow-downgrades /root/tgspool.deb; }

# chroot_install: where images are built no systemd runs.
chroot_install() {
	cp "$PREVIOUS" "$ROOT/root/tgspool.deb"
	local out
	mv "$ROOT/usr/bin/systemd-sysusers" "$ROOT/root/"
	holds "what a system without systemd hears" "standalone-sysusers" "$(refuses chroot "$ROOT" dpkg -i /root/tgspool.deb)"
	mv "$ROOT/root/systemd-sysusers" "$ROOT/usr/bin/"
	out=$(chroot "$ROOT" env DEBIAN_FRONTEND=noninteractive dpkg -i /root/tgspool.deb 2>&1) || fail "$out"
	lacks "installing where systemd doesn't run" "rror" "$out"
	grep -q '^tgspool:' "$ROOT/etc/passwd" || fail "no user was made"
	equals "links of an installed unit" "" "$(find "$ROOT/etc/systemd" -name '*tgspool*')"
	out=$(chroot "$ROOT" dpkg --purge tgspool 2>&1) || fail "$out"
	lacks "purging where systemd doesn't run" "rror" "$out"
	[ ! -e "$ROOT/etc/tgspool" ] || fail "settings are left: $(ls "$ROOT/etc/tgspool")"
}

installed_asleep() {
	local out
	out=$(install_package "$PREVIOUS") || fail "$out"
	holds "what the install says" "tgspool setup" "$out"
	equals "enabled" disabled "$(inside systemctl is-enabled tgspool.service || true)"
	equals "active" inactive "$(inside systemctl is-active tgspool.service || true)"
	for unit in $SOCKETS; do
		equals "$unit" inactive "$(inside systemctl is-active "$unit" || true)"
	done
	equals "rights" "750 root tgspool /etc/tgspool
750 root tgspool /etc/tgspool/conf.d
700 root root /etc/tgspool/credentials
640 root tgspool /etc/tgspool/tgspool.toml" \
		"$(inside stat -c '%a %U %G %n' /etc/tgspool /etc/tgspool/conf.d /etc/tgspool/credentials /etc/tgspool/tgspool.toml)"
	for user in tgspool tgspool-exec; do
		inside id "$user" >/dev/null
	done
	inside getent group tgspool-send >/dev/null
}

# units_sound: what systemd thinks of the files.
units_sound() {
	local out unit
	for unit in $UNITS; do
		out=$(inside systemd-analyze verify --man=no "/usr/lib/systemd/system/$unit" 2>&1) || fail "$unit: $out"
		equals "systemd-analyze verify $unit" "" "$out"
	done
	for unit in tgspool.service tgspool-exec@.service; do
		out=$(inside systemd-analyze security --offline=true --no-pager --threshold=13 "/usr/lib/systemd/system/$unit") ||
			fail "$unit is over 1.3: $(tail -1 <<<"$out")"
		note "${unit%.service} $(grep -oE '[0-9.]+ [A-Z]+' <<<"$(tail -1 <<<"$out")")"
	done
	for file in sysusers.d/tgspool.conf tmpfiles.d/tgspool.conf; do
		case $file in
		sysusers*) out=$(inside systemd-sysusers --dry-run "/usr/lib/$file" 2>&1) ;;
		*) out=$(inside systemd-tmpfiles --create "/usr/lib/$file" 2>&1) ;;
		esac
		equals "$file" "" "$out"
	done
}

# nothing_configured: started too early it says what to do, and doesn't loop.
nothing_configured() {
	refuses inside systemctl start tgspool.service >/dev/null
	equals "exit code" 78 "$(show tgspool.service ExecMainStatus)"
	equals "restarts" 0 "$(show tgspool.service NRestarts)"
	holds "the journal" "setup" "$(journal)"
	inside systemctl reset-failed tgspool.service
}

# settings [LINES] writes settings for these steps: no gaps, so that a step waits
# for nothing but tgspool.
settings() {
	put 640 root:tgspool /etc/tgspool/conf.d/50-e2e.toml <<TOML
[bots.home.sender]
rate = 0
chat_gap = "0s"
group_per_minute = 0
[[bots.home.handlers]]
name = "look"
match = { command = "/look" }
exec = ["/usr/local/lib/tgspool/look"]
allow_from = ["me"]
[[bots.home.handlers]]
name = "load"
match = { command = "/load" }
exec = ["/usr/local/lib/tgspool/load.sh"]
allow_from = ["me"]
[[bots.home.handlers]]
name = "broken"
match = { command = "/break" }
exec = ["/bin/sh", "-c", "exit 65"]
allow_from = ["*"]
[[bots.home.handlers]]
name = "echo"
exec = ["/bin/sh", "-c", 'echo "heard \$TGSPOOL_TEXT"']
allow_from = ["*"]
${1:-}
TOML
}

# token TEXT writes the bot's token as it is given.
token() { printf '%s' "$1" | put "${2:-600}" root:root /etc/tgspool/credentials/home.token; }

# set_up: one command from an installed package to a running bot.
set_up() {
	local out
	put 600 root:root /root/token <<<"$TOKEN"
	out=$(inside tgspool setup --yes --bot home --token-file /root/token --owner 42 --api-base "http://$API" 2>&1) || fail "$out"
	holds "what setup says" "enabled and started" "$out"
	equals "rights" "600 root root /etc/tgspool/credentials/home.token
640 root tgspool /etc/tgspool/conf.d/50-setup.toml" \
		"$(inside stat -c '%a %U %G %n' /etc/tgspool/credentials/home.token /etc/tgspool/conf.d/50-setup.toml)"
	equals "active" active "$(inside systemctl is-active tgspool.service)"
	for unit in $SOCKETS; do
		equals "$unit" "enabled active" "$(inside systemctl is-enabled "$unit") $(inside systemctl is-active "$unit")"
	done
	equals "sockets" "660 tgspool tgspool /run/tgspool/tgspool.sock
660 tgspool tgspool-send /run/tgspool/submit.sock
600 tgspool tgspool /run/tgspool/exec.sock" \
		"$(inside stat -c '%a %U %G %n' /run/tgspool/tgspool.sock /run/tgspool/submit.sock /run/tgspool/exec.sock)"
	note "READY after $(start_ms) ms"
	send "by setup alone" >/dev/null
	eventually 20 "a message" has_arrived "by setup alone"
}

# set_up_again changes nothing, and replaces nothing unless it is told to.
set_up_again() {
	local before
	before=$(inside sh -c 'sha256sum /etc/tgspool/conf.d/* /etc/tgspool/credentials/*')
	inside tgspool setup --yes --bot home --token-file /root/token --owner 42 --api-base "http://$API" >/dev/null 2>&1 || fail "a second run fails"
	put 600 root:root /root/token <<<"654321:ANOTHER-ANOTHER-ANOTHER-ANOTHER-ANO"
	refuses inside tgspool setup --yes --bot home --token-file /root/token --owner 42 --api-base "http://$API" >/dev/null
	equals "settings and token" "$before" "$(inside sh -c 'sha256sum /etc/tgspool/conf.d/* /etc/tgspool/credentials/*')"
	holds "token check" 123456 "$(inside tgspool token check 2>&1)"
	inside rm /root/token
}

# own_settings adds what the steps need, as a person would.
own_settings() {
	inside install -d /usr/local/lib/tgspool
	inside install -m 755 /usr/share/doc/tgspool/examples/handlers/load.sh /usr/local/lib/tgspool/load.sh
	look_program | put 755 root:root /usr/local/lib/tgspool/look
	knock_program | put 755 root:root /usr/local/bin/knock
	settings
	local out
	out=$(inside tgspool config check 2>&1) || fail "config check: $out"
	lacks "what config check finds" "token" "$out"
	inside systemctl restart tgspool.service
}

# start_ms is the time of the last start, from exec to READY.
start_ms() {
	local from to
	from=$(show tgspool.service ExecMainStartTimestampMonotonic)
	to=$(show tgspool.service ActiveEnterTimestampMonotonic)
	echo $(((to - from) / 1000))
}

messages_flow() {
	local text=${1:-first}
	says 42 "$text"
	eventually 20 "the handler's answer" has_arrived "heard $text"
	send "sent $text" >/dev/null
	eventually 20 "the sent text" has_arrived "sent $text"
}

# look_program is a handler that tries to see what isn't its business.
look_program() {
	cat <<'SH'
#!/bin/sh
echo "user=$(id -un)"
for path in /etc/tgspool/credentials /etc/tgspool/tgspool.toml /etc/tgspool/conf.d/50-e2e.toml \
	/var/lib/tgspool /var/lib/tgspool/spool.db /run/credentials/tgspool.service /run/credentials/tgspool.service/bot_home.token; do
	if ls "$path" >/dev/null 2>&1 && [ -r "$path" ]; then echo "sees=$path"; fi
done
for dir in /proc/[0-9]*; do
	[ "$(stat -c %U "$dir")" = "$(id -un)" ] || echo "sees=$dir"
	tr '\0' '\n' <"$dir/environ" 2>/dev/null | grep -E 'CREDENTIALS|SIMULATOR' | sed 's/^/other env=/'
done
env | grep -E 'CREDENTIALS|NOTIFY|WATCHDOG|LISTEN|TOKEN|INVOCATION' | sed 's/^/env=/'
for socket in tgspool submit exec; do
	if tgspool status --socket /run/tgspool/$socket.sock >/dev/null 2>&1; then echo "speaks=$socket"; fi
	if [ -w /run/tgspool/$socket.sock ]; then echo "writes=$socket"; fi
done
touch "$HOME/mine" && echo "home=$HOME"
touch /etc/mine /usr/mine /var/lib/mine 2>/dev/null && echo "writes=system"
cat /proc/uptime >/dev/null && echo uptime=yes
SH
}

# handler_shut_in: a handler works, and sees none of it.
handler_shut_in() {
	local before text
	before=$(arrived)
	says 42 /look
	eventually 20 "the handler's answer" test_more "$before"
	text=$(sim GET journal | jq -r '[.[] | select(.text // "" | startswith("user="))][-1].text')
	equals "what a handler sees" "user=tgspool-exec
home=/var/lib/tgspool-exec
uptime=yes" "$text"
	holds "tgspool try" "user=tgspool-exec" "$(inside tgspool try look 2>&1)"
	says 42 /load
	eventually 20 "the example's answer" test_arrived_part "Load of tgspool-"
}

test_more() { [ "$(arrived)" -gt "$1" ]; }
test_arrived_part() { [ "$(arrived ".text | contains(\"$1\")")" -ge 1 ]; }

# journal_fields: what the documentation says can be asked for, on what went wrong.
journal_fields() {
	local job
	job=$(inside tgspool call --json sendMessage '{"chat_id":42,"text":"<b>not closed","parse_mode":"HTML"}' | jq -r .id)
	says 43 "/break"
	eventually 10 "JOB_ID=$job" field_found "JOB_ID=$job" STATE=dead ERROR_CLASS=rejected
	eventually 10 "HANDLER=broken" field_found HANDLER=broken BOT=home CHAT_ID=43 STATE=dead
	lacks "the journal" "$TOKEN" "$(journal --output=export --all)"
	lacks "the journal" "not closed" "$(journal --output=export --all)"
}

field_found() { [ -n "$(journal --output=json "$@" | head -1)" ]; }
