#!/bin/sh
# A worker that takes updates by leases, with curl and jq: it counts what each chat
# writes, and answers. Run as many of it as you like; the updates of one chat come
# one after the other. One that is killed loses nothing: its lease runs out, and
# the update goes to another.
#
# It gets what no handler takes, and what a handler with pull = true takes.
set -eu
socket=${TGSPOOL_SOCKET:-/run/tgspool/tgspool.sock}
base=http://tgspool/v1/bots/${TGSPOOL_BOT:-home}
answer=$(mktemp)
trap 'rm -f "$answer"' EXIT
trap 'exit 0' INT TERM

# ask METHOD PATH [BODY]: the answer goes to the file $answer, its status to stdout.
# While nobody listens (the daemon is being restarted) it asks again.
ask() {
	until code=$(curl --silent --unix-socket "$socket" --request "$1" --header 'Content-Type: application/json' \
		${3:+--data-binary "$3"} --output "$answer" --write-out '%{http_code}' "$base/$2"); do
		sleep 1
	done
	echo "$code"
}

# handle: what the update on stdin is to lead to. This is the part to write yourself.
handle() {
	jq --compact-output '
		((.session.count // 0) + 1) as $n
		| .update.message as $m
		| {lease, session_version}
		+ if $m.text == null then {}
		  else {
			session: {count: $n},
			jobs: [{method: "sendMessage", params: {chat_id: $m.chat.id, text: "\($n): \($m.text)"}}]
		  } end'
}

# work ITEM: handles one update to its end.
work() {
	item=$1
	seq=$(printf %s "$item" | jq .seq)
	while :; do
		if ! result=$(printf %s "$item" | handle); then
			ask POST "updates/$seq/fail" "$(printf %s "$item" | jq '{lease, error: "the worker has failed"}')" >/dev/null
			return
		fi
		case $(ask POST "updates/$seq/complete" "$result") in
		200) return ;;
		412) # the session has changed meanwhile: once more with the new one
			key=$(printf %s "$item" | jq -r .session_key)
			case $(ask GET "sessions/$key") in
			200) item=$(printf %s "$item" | jq --slurpfile s "$answer" '.session = $s[0].data | .session_version = $s[0].version') ;;
			*) item=$(printf %s "$item" | jq '.session = {} | .session_version = 0') ;;
			esac
			;;
		409) # it took too long: another has the update now
			echo "update $seq is no longer ours" >&2
			return
			;;
		*)
			cat "$answer" >&2
			ask POST "updates/$seq/fail" "$(printf %s "$item" | jq '{lease, error: "the answer was refused", permanent: true}')" >/dev/null
			return
			;;
		esac
	done
}

while :; do
	# It waits for an update without asking again and again.
	status=$(ask POST updates/claim '{"max": 1, "lease": "60s", "wait": "50s"}')
	if [ "$status" != 200 ]; then
		cat "$answer" >&2
		sleep 5
		continue
	fi
	item=$(jq --compact-output '.items[0] // empty' "$answer")
	[ -z "$item" ] || work "$item"
done
