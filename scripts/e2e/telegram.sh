# Sourced: the simulator as the machine's Telegram, and clients of tgspool.

FIRST_TOKEN=123456:SIMULATOR-SIMULATOR-SIMULATOR-SIMUL
API=127.0.0.1:9090
CONTROL=127.0.0.1:9091

# telegram_on starts the simulator as a unit of its own. It is a copy of the
# program under another name, so that no step of the package touches it. Each
# start has a name of its own: systemd forgets an ended one only after a while.
TELEGRAMS=0
telegram_on() {
	TELEGRAMS=$((TELEGRAMS + 1))
	inside systemd-run --quiet --unit="telegram-$TELEGRAMS" --collect /usr/local/bin/telegram simulate \
		--listen "$API" --control "$CONTROL" --token "$TOKEN"
	eventually 10 "the simulator" sim GET status
}

telegram_off() { inside systemctl stop "telegram-$TELEGRAMS"; }

# sim VERB PATH [BODY] speaks to the simulator's control address.
sim() {
	network curl --silent --show-error --fail --max-time 10 --request "$1" \
		${3:+--data "$3"} "http://$CONTROL/sim/$2"
}

# says CHAT TEXT: a person writes to the bot.
says() { sim POST text "{\"chat_id\":$1,\"user_id\":$1,\"text\":\"$2\"}" >/dev/null; }

# arrived [FILTER] counts the messages that have arrived at Telegram.
arrived() { sim GET journal | jq "[.[] | select(.method == \"sendMessage\" and .effect) ${1:+| select($1)}] | length"; }

# has_arrived TEXT, once and only once.
has_arrived() { [ "$(arrived ".text == \"$1\"")" = 1 ]; }

# each_arrived PREFIX N: N texts that begin with PREFIX have arrived, each once.
each_arrived() {
	local texts
	texts=$(sim GET journal | jq -r ".[] | select(.method == \"sendMessage\" and .effect) | .text | select(startswith(\"$1\"))")
	equals "texts $1… that have arrived" "$2" "$(grep -c . <<<"$texts")"
	equals "texts $1… that have arrived twice" "" "$(sort <<<"$texts" | uniq -d)"
}

# all_arrived PREFIX N is its condition, to wait for.
all_arrived() { [ "$(arrived ".text | startswith(\"$1\")")" -ge "$2" ]; }

# send TEXT queues a message by the client under test.
send() { inside tgspool send --chat 42 "$@"; }

# knock_on PREFIX starts two clients that send one message after the other, and
# write down for each its number, exit code and milliseconds.
KNOCKS=0
knock_on() {
	KNOCKS=$((KNOCKS + 1))
	inside sh -c "rm -f /root/knock-off; : >/root/knocks; : >/root/knock-errors"
	for client in a b; do
		inside systemd-run --quiet --unit="knock-$KNOCKS-$client" --collect \
			/usr/local/bin/knock "$1-$client" /root/knocks /usr/local/bin/telegram
	done
}

# library_on PREFIX starts a client of the local Bot API endpoint, which writes
# down what it doesn't understand: anything but a result, or the word that the
# job stays queued while the daemon is restarted.
library_on() {
	: >"$WORK/library"
	library_calls "$1" &
	LIBRARY=$!
}

library_calls() {
	local n=0 answer
	while [ ! -e "$ROOT/root/knock-off" ]; do
		n=$((n + 1))
		answer=$(network curl --silent --show-error --max-time 60 --data "chat_id=$((3000 + n % 50))&text=$1-$n" \
			"http://127.0.0.1:8081/bot$TOKEN/sendMessage" 2>&1) || true
		jq --exit-status '.ok or (.error_code == 429 and (.description | contains("stays queued")))' <<<"$answer" >/dev/null 2>&1 ||
			echo "$n: $answer" >>"$WORK/library"
	done
	echo $n >"$WORK/library-calls"
}

# library_off waits for its end; each of its calls must have been understood and
# have arrived once.
library_off() {
	wait "$LIBRARY"
	equals "answers that a bot library doesn't understand" "" "$(cat "$WORK/library")"
	eventually 60 "an empty queue" queue_empty
	each_arrived "$1-" "$(cat "$WORK/library-calls")"
	note "$(cat "$WORK/library-calls") by a library"
}

# knocks_end: whoever knocks makes no call more.
knocks_end() { : >"$ROOT/root/knock-off"; }

# knock_off lets each client end its last call, and prints how many there were.
knock_off() {
	knocks_end
	eventually 90 "the clients' end" no_knocks
	grep -c . "$ROOT/root/knocks"
}

no_knocks() { [ -z "$(inside systemctl list-units --plain --no-legend --state=active,deactivating 'knock-*')" ]; }

# knocks_failed prints the calls that failed, knocks_refused also what was said;
# knocks_longest the longest wait in seconds.
knocks_failed() { awk '$2 != 0' "$ROOT/root/knocks"; }
knocks_refused() { knocks_failed && cat "$ROOT/root/knock-errors"; }
knocks_longest() { awk '$3 > most { most = $3 } END { printf "%.2f", most / 1000 }' "$ROOT/root/knocks"; }

# knock_program is the client: PREFIX LOG PROGRAM.
knock_program() {
	cat <<'SH'
#!/bin/sh
# The texts go to many chats, so that order and gaps don't slow it.
n=0
while [ ! -e /root/knock-off ]; do
	n=$((n + 1))
	start=$(date +%s%3N)
	"$3" send --socket /run/tgspool/tgspool.sock --chat $((1000 + n % 100)) --key "$1-$n" "$1-$n" >/dev/null 2>>/root/knock-errors
	echo "$1-$n $? $(($(date +%s%3N) - start))" >>"$2"
done
SH
}
