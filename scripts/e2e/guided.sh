# Sourced: what a person at a terminal does: the first set-up, another token.

# guided: somebody types the token, which isn't shown, and opens the link.
guided() {
	local pid screen=$WORK/screen nonce
	mkfifo "$WORK/keys"
	terminal "tgspool setup --api-base http://$API" <"$WORK/keys" >"$screen" 2>&1 &
	pid=$!
	exec 8>"$WORK/keys"
	eventually 30 "a terminal that shows nothing of what is typed" shows_no_keys
	echo "$TOKEN" >&8
	eventually 30 "the link" grep -q 't.me/.*start=' "$screen"
	nonce=$(sed -n 's/.*t\.me\/.*?start=\([A-Za-z0-9_-]*\).*/\1/p' "$screen")
	says 666 "/start"
	says 667 "/start ${nonce%?}"
	says 42 "/start $nonce"
	wait "$pid" || fail "setup at a terminal: $(cat "$screen")"
	exec 8>&-
	rm "$WORK/keys"
	lacks "the screen" "${TOKEN#*:}" "$(cat "$screen")"
	holds "the screen" "▀" "$(cat "$screen")" # of the QR code
	holds "the screen" "(42), named me" "$(cat "$screen")"
	holds "the screen" "enabled and started" "$(cat "$screen")"
	inside tgspool send "to its owner" >/dev/null
	eventually 30 "a message to the owner" chat_heard 42 "to its owner"
}

# terminal COMMAND runs it at a terminal of the machine, whose keys are standard input.
terminal() {
	timeout 120 nsenter -t "$LEADER" -m -u -i -n -p -C -r -w -- /usr/bin/env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin \
		LANG=C.UTF-8 script --quiet --return --flush --command "$1" /dev/null
}

shows_no_keys() { inside sh -c 'for pts in /dev/pts/[0-9]*; do stty -F "$pts" -a; done' | grep -q -- '-echo '; }

# chat_heard CHAT TEXT
chat_heard() { [ "$(arrived ".chat_id == $1 and .text == \"$2\"")" = 1 ]; }

# fresh_again: nothing of the first set-up is left.
fresh_again() {
	local out
	out=$(apt purge tgspool) || fail "$out"
	out=$(install_package "$PREVIOUS") || fail "$out"
	equals "tokens and settings" "" "$(inside sh -c 'ls /etc/tgspool/credentials /etc/tgspool/conf.d | grep -v :' || true)"
}

# another_token: the old one is revoked; what waits goes out with the new one,
# without a restart. From here on it is the bot's.
another_token() {
	local pid old=$TOKEN
	pid=$(show tgspool.service MainPID)
	telegram_off
	TOKEN=123456:SECOND-SECOND-SECOND-SECOND-SECOND-SECON
	telegram_on
	eventually 60 "a token that Telegram refuses" journal_says "Telegram refuses the token"
	send "held back" >/dev/null
	printf '%s' "654321:ALIEN-ALIEN-ALIEN-ALIEN-ALIEN-ALIEN" | put 600 root:root /root/token
	holds "another account's token" "another account" "$(refuses inside tgspool token set home --token-file /root/token)"
	printf '\xef\xbb\xbf"%s" \r\n' "$TOKEN" | put 600 root:root /root/token
	holds "token set" "in use now" "$(inside tgspool token set home --token-file /root/token)"
	eventually 60 "what was held back" has_arrived "held back"
	equals "the process" "$pid" "$(show tgspool.service MainPID)"
	holds "token check" 123456 "$(inside tgspool token check)"
	equals "the stored token" "600 root $TOKEN" "$(inside stat -c '%a %U' /etc/tgspool/credentials/home.token) $(inside cat /etc/tgspool/credentials/home.token)"
	inside rm /root/token
	lacks "the journal" "${old#*:}" "$(journal --output=verbose)"
	messages_flow "with another token"
}
