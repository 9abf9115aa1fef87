# Sourced: steps in which somebody made a mistake.

troubles() {
	step "tokens with what comes with pasting" pasted_tokens
	step "tokens with odd rights" token_rights
	step "no token, a wrong token" unusable_tokens
	step "no certificates" no_certificates
	step "another program on port 8081" port_taken
	step "a message when a unit fails" notified
}

# usable: after a restart the bot works.
usable() {
	inside systemctl restart tgspool.service
	messages_flow "$1"
}

pasted_tokens() {
	local n=0 text
	for text in "$TOKEN" "$TOKEN"$'\r\n' $'\xef\xbb\xbf'"$TOKEN"$'\n' "\"$TOKEN\"" "  $TOKEN  "$'\n\n'; do
		n=$((n + 1))
		token "$text"
		usable "pasted $n"
	done
}

token_rights() {
	local mode
	for mode in 000 400 644; do
		token "$TOKEN" "$mode"
		usable "rights $mode"
	done
	token "$TOKEN"
	inside chown tgspool:tgspool /etc/tgspool/credentials/home.token
	inside chmod 755 /etc/tgspool/credentials
	usable "another's file"
	inside chmod 700 /etc/tgspool/credentials
	token "$TOKEN"
}

# unusable_tokens: the daemon runs and says what is missing; no line has the token.
unusable_tokens() {
	local text
	inside mv /etc/tgspool/credentials/home.token /root/
	inside systemctl restart tgspool.service
	eventually 10 "the state" shows "no usable token"
	holds "the journal" "token set" "$(journal --output=verbose)"
	for text in "not a token" ""; do
		token "$text"
		inside systemctl restart tgspool.service
		eventually 10 "the state of '$text'" shows "no usable token"
	done
	token 123456:of-another-bot
	inside systemctl restart tgspool.service
	eventually 20 "a token that Telegram refuses" journal_says "Telegram refuses the token"
	for text in "not a token" of-another-bot; do
		lacks "the journal" "$text" "$(journal --output=verbose)"
	done
	token "$TOKEN"
	usable "a token again"
}

# shows TEXT in what systemctl status shows.
shows() { [[ $(show tgspool.service StatusText) == *"$1"* ]]; }

# no_certificates: a minimal Debian has none, and the message says so.
no_certificates() {
	inside test ! -e /etc/ssl/certs/ca-certificates.crt || fail "this machine has certificates"
	openssl req -x509 -newkey rsa:2048 -nodes -days 1 -subj /CN=localhost -addext subjectAltName=IP:127.0.0.1 \
		-keyout "$WORK/key.pem" -out "$WORK/cert.pem" 2>/dev/null
	other_on -accept 127.0.0.1:9443 -key "$WORK/key.pem" -cert "$WORK/cert.pem" -www
	sed -i 's|^api_base = .*|api_base = "https://127.0.0.1:9443"|' "$ROOT/etc/tgspool/conf.d/50-setup.toml"
	inside systemctl restart tgspool.service
	eventually 20 "a word about certificates" journal_tells ca-certificates
	equals "active" active "$(inside systemctl is-active tgspool.service)"
	other_off
	sed -i "s|^api_base = .*|api_base = \"http://$API\"|" "$ROOT/etc/tgspool/conf.d/50-setup.toml"
	usable "certificates aren't asked for"
}

# other_on ARGS... starts another server in the machine's network.
other_on() {
	(exec nsenter -t "$LEADER" -n -- openssl s_server -quiet "$@" >/dev/null 2>&1) &
	OTHER=$!
}

other_off() {
	kill "$OTHER"
	wait "$OTHER" 2>/dev/null || true
}

# port_taken: the port of Telegram's own server costs that address, nothing else.
port_taken() {
	inside systemctl stop 'tgspool*'
	other_on -accept 127.0.0.1:8081 -nocert -cipher aNULL
	eventually 10 "the other program" network bash -c ': </dev/tcp/127.0.0.1/8081'
	inside systemctl start tgspool.service || true
	equals "the other sockets" "active active" "$(inside systemctl is-active tgspool.socket tgspool-submit.socket | xargs)"
	local out
	out=$(refuses inside tgspool status)
	holds "what a client hears" 8081 "$out"
	other_off
	inside systemctl stop 'tgspool*'
	inside systemctl start tgspool.service
	messages_flow "on a port of its own"
}

# notified: the example for OnFailure tells about another unit.
notified() {
	local examples=/usr/share/doc/tgspool/examples
	inside cp "$examples/notify/notify@.service" /etc/systemd/system/
	put 644 root:root /etc/systemd/system/broken.service <<<$'[Service]\nType=oneshot\nExecStart=/bin/false'
	inside mkdir -p /etc/systemd/system/broken.service.d
	inside cp "$examples/drop-ins/on-failure.conf" /etc/systemd/system/broken.service.d/
	inside systemctl daemon-reload
	refuses inside systemctl start broken.service >/dev/null
	eventually 20 "the message" test_arrived_part "broken.service has failed"
	inside rm -r /etc/systemd/system/notify@.service /etc/systemd/system/broken.service /etc/systemd/system/broken.service.d
	inside systemctl daemon-reload
}
