# Sourced: steps of a daemon that runs: reloads, stops, hangs, kills, reboots.

living() {
	step "reload with good settings" reload_good
	step "reload with bad settings" reload_bad
	step "restart with bad settings while clients knock" restart_bad
	step "restarts under load" restarts_under_load
	step "stop under load" stop_under_load
	step "stop while a call hangs" stop_hanging
	step "kill -9 under load" kill_under_load
	step "a daemon that hangs" watchdog
	step "reboot" reboot
}

# extra NAME TEXT writes one more settings file; extra NAME takes it away.
extra() {
	if [ $# = 1 ]; then
		inside rm "/etc/tgspool/conf.d/$1.toml"
	else
		put 640 root:tgspool "/etc/tgspool/conf.d/$1.toml" <<<"$2"
	fi
}

reload_good() {
	local pid
	pid=$(show tgspool.service MainPID)
	settings '[[bots.home.handlers]]
name = "late"
match = { text = "never" }
exec = ["/bin/false"]
allow_from = ["me"]'
	sed -i 's/heard /understood /' "$ROOT/etc/tgspool/conf.d/50-e2e.toml"
	inside systemctl reload tgspool.service
	says 42 "after the reload"
	eventually 20 "an answer by the new handler" has_arrived "understood after the reload"
	equals "the process" "$pid" "$(show tgspool.service MainPID)"
	settings
	inside systemctl reload tgspool.service
}

reload_bad() {
	extra 60-bad '[bots.home.sender]
wrokers = 3'
	refuses inside systemctl reload tgspool.service >/dev/null
	holds "the journal" "60-bad.toml:2" "$(journal)"
	holds "the journal" "workers" "$(journal)"
	equals "active" active "$(inside systemctl is-active tgspool.service)"
	messages_flow "with the old settings"
	extra 60-bad
	inside systemctl reload tgspool.service
}

# restart_bad: a daemon that can't work tells each client why. When nobody asks
# any more it ends as failed, and the sockets stay for the next client.
restart_bad() {
	extra 60-bad '[bots.home.sender]
wrokers = 3'
	inside systemctl restart --no-block tgspool.service
	for _ in 1 2 3; do
		all_hear wrokers
		holds "what a bot library hears" "its log says why" "$(network curl -s --max-time 20 "http://127.0.0.1:8081/bot$TOKEN/getMe")"
	done
	eventually 30 "the end of a daemon that nobody asks" is_failed
	equals "exit code" 78 "$(show tgspool.service ExecMainStatus)"
	for unit in $SOCKETS; do
		equals "$unit" active "$(inside systemctl is-active "$unit")"
	done
	holds "what the next client hears" wrokers "$(refuses inside tgspool status)"
	eventually 30 "its end again" is_failed
	extra 60-bad
	inside tgspool status >/dev/null || fail "a client doesn't start a daemon with good settings"
	messages_flow "with good settings again"
}

# all_hear TEXT: each of some clients that call at the same time.
all_hear() {
	local n pids=()
	for n in 1 2 3 4; do
		inside tgspool status >"$WORK/heard-$n" 2>&1 &
		pids+=($!)
	done
	for n in 1 2 3 4; do
		! wait "${pids[n - 1]}" || fail "a client succeeds"
		holds "what client $n hears" "$1" "$(cat "$WORK/heard-$n")"
	done
}

is_failed() { [ "$(inside systemctl is-active tgspool.service)" = failed ]; }

# accounted PREFIX: of each message that a client was told is queued there is one
# at Telegram, or one uncertain job; none is there twice.
accounted() {
	local told arrived open
	eventually 60 "an empty queue" queue_empty
	told=$(awk '$2 == 0 { print $1 }' "$ROOT/root/knocks" | sort)
	arrived=$(sim GET journal | jq -r ".[] | select(.method == \"sendMessage\" and .effect) | .text | select(startswith(\"$1-\"))" | sort)
	open=$(inside tgspool queue list --json --state uncertain | jq -r .dedupe_key | sort)
	equals "messages that arrived twice" "" "$(uniq -d <<<"$arrived")"
	equals "messages that are lost" "" "$(comm -23 <(printf '%s\n' "$told") <(printf '%s\n%s\n' "$arrived" "$open" | sort -u))"
	note "$(grep -c . <<<"$told") messages, $(grep -c . <<<"$open" || true) uncertain"
	for job in $(inside tgspool queue list --json --state uncertain | jq -r .id); do
		inside tgspool queue resolve "$job" --sent >/dev/null
	done
}

queue_empty() { [ "$(inside tgspool status --json | jq '[.bots[].queue_depth] | add')" = 0 ]; }

# some_knocks N: the clients have had that many answers.
knocks() { wc -l <"$ROOT/root/knocks"; }
some_knocks() { [ "$(knocks)" -ge "$1" ]; }

# restarts_under_load: whoever calls in between waits for a moment, and that is all.
restarts_under_load() {
	knock_on restart
	library_on library
	eventually 20 "load" some_knocks 50
	for _ in $(seq 20); do
		inside systemctl restart tgspool.service
		eventually 60 "calls that find it running" some_knocks $(($(knocks) + 10))
	done
	knocks_end
	library_off library
	knock_off >/dev/null
	equals "clients that were refused" "" "$(knocks_refused)"
	at_most "the longest stop in seconds" 2 "$(stops_longest)"
	at_most "the longest wait in seconds" 4 "$(knocks_longest)"
	note "longest stop $(stops_longest) s, wait $(knocks_longest) s"
	accounted restart
}

# stops_longest [N] is what the daemon has needed at most, in seconds, for one of
# its last N stops, or for any.
stops_longest() {
	inside journalctl --no-pager --boot --output=short-unix --identifier=tgspool |
		awk '/: stopping$/ { from = $1 } /: stopped$/ && from { print $1 - from; from = 0 }' | tail -n "${1:-9999}" |
		awk '$1 > most { most = $1 } END { printf "%.2f", most }'
}

stop_under_load() {
	local start
	knock_on stop
	eventually 20 "load" some_knocks 50
	start=$EPOCHREALTIME
	all_off
	note "stopped in $(since "$start") s, the daemon itself in $(stops_longest 1) s"
	at_most "the daemon's stop in seconds" 2 "$(stops_longest 1)"
	equals "result" success "$(show tgspool.service Result)"
	knock_off >/dev/null
	inside systemctl start tgspool.service
	accounted stop
}

# stop_hanging: what is in flight gets the drain time and no more; whether it has
# arrived nobody knows, and it isn't sent again by itself.
stop_hanging() {
	local start job
	extra 60-drain '[daemon]
drain = "2s"'
	inside systemctl restart tgspool.service
	sim POST faults '{"kind":"hang","method":"sendMessage","times":1,"effect":true}' >/dev/null
	send "on its way" >/dev/null
	eventually 30 "a call that hangs" has_arrived "on its way"
	start=$EPOCHREALTIME
	all_off
	note "stopped in $(since "$start") s"
	at_most "the daemon's stop in seconds, 2 of them for the call" 4 "$(stops_longest 1)"
	equals "result" success "$(show tgspool.service Result)"
	extra 60-drain
	inside systemctl start tgspool.service
	job=$(inside tgspool queue list --json --state uncertain | jq -r .id)
	inside tgspool queue resolve "$job" --sent >/dev/null
	messages_flow "after a call that hung"
	equals "times that it arrived" 1 "$(arrived '.text == "on its way"')"
}

kill_under_load() {
	local pid
	pid=$(show tgspool.service MainPID)
	knock_on kill
	eventually 20 "load" some_knocks 50
	inside sh -c "kill -KILL $pid" # there is no /bin/kill
	eventually 20 "a new process" restarted "$pid"
	eventually 20 "more load" some_knocks 100
	knock_off >/dev/null
	equals "clients that were refused" "" "$(knocks_cut)"
	accounted kill
}

restarted() {
	local pid
	pid=$(show tgspool.service MainPID)
	[ "$pid" != 0 ] && [ "$pid" != "$1" ] && [ "$(inside systemctl is-active tgspool.service)" = active ]
}

# knocks_cut prints the calls that failed, but for the two that were under way
# when the process was killed: nobody can answer them.
knocks_cut() { knocks_failed | sed 1,2d; }

watchdog() {
	local pid
	inside mkdir -p /run/systemd/system/tgspool.service.d
	put 644 root:root /run/systemd/system/tgspool.service.d/e2e.conf <<<$'[Service]\nWatchdogSec=6'
	inside systemctl daemon-reload
	inside systemctl restart tgspool.service
	pid=$(show tgspool.service MainPID)
	eventually 60 "word from a daemon that is well" still_told "$(uptime_us)" 8
	equals "the process of a daemon that is well" "$pid" "$(show tgspool.service MainPID)"
	inside sh -c "kill -STOP $pid"
	eventually 20 "a new process" restarted "$pid"
	holds "the journal" "atchdog" "$(inside journalctl --no-pager --boot --output=cat --unit=tgspool.service)"
	inside rm -r /run/systemd/system/tgspool.service.d
	inside systemctl daemon-reload
	inside systemctl restart tgspool.service
	messages_flow "after a hang"
}

# still_told SINCE SECONDS: a heartbeat came later than that after a time.
still_told() { [ "$(show tgspool.service WatchdogTimestampMonotonic)" -gt $(($1 + $2 * 1000000)) ]; }

# uptime_us is the time that systemd counts by.
uptime_us() { awk '{ printf "%d", $1 * 1000000 }' /proc/uptime; }

reboot() {
	telegram_off
	for n in 1 2 3; do
		send "through a reboot $n" >/dev/null
	done
	machine_reboot
	equals "active" active "$(inside systemctl is-active tgspool.service)"
	telegram_on
	eventually 30 "what was queued" all_arrived "through a reboot" 3
	each_arrived "through a reboot" 3
	messages_flow "after a reboot"
}
