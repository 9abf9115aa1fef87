# Sourced: steps in which somebody made a mistake.

troubles() {
	step "examples of drop-ins" drop_ins
	step "tokens with what comes with pasting" pasted_tokens
	step "tokens with odd rights" token_rights
	step "no token, a wrong token" unusable_tokens
	step "settings edited to nonsense" nonsense
	step "a spool that can only be read" read_only
	step "no certificates" no_certificates
	step "another program on port 8081" port_taken
	step "a message when a unit fails" notified
}

# drop_ins: each is valid, and gives what it says.
drop_ins() {
	local name place out examples=/usr/share/doc/tgspool/examples/drop-ins
	for name in $(inside ls $examples); do
		place=$(inside sed -n '1s|^# \(/etc/systemd/system/[^,]*\).*|\1|p' "$examples/$name")
		[ -n "$place" ] || fail "$name doesn't say where it goes"
		case $place in */NAME.service.d/*) continue ;; esac # for another unit; a step of its own
		inside install -D -m 644 "$examples/$name" "$place"
		out=$(inside systemd-analyze verify --man=no "/usr/lib/systemd/system/$(basename "$(dirname "$place")" .d)" 2>&1 | grep -v "Unknown key 'Restart" || true)
		equals "systemd-analyze verify with $name" "" "$out"
		inside rm -r "$(dirname "$place")"
	done
	inside useradd --create-home pi
	inside chmod 755 /home/pi
	wishes_program | put 755 pi:pi /home/pi/wishes
	extra 60-home '[[bots.home.handlers]]
name = "home"
match = { command = "/home" }
exec = ["/home/pi/wishes"]
allow_from = ["me"]'
	inside systemctl reload tgspool.service
	refuses inside tgspool try --text /home home >/dev/null
	gets "tgspool-exec no-nice no-jit no-send" home
	gets "pi no-nice no-jit no-send" as-user
	gets "tgspool-exec nice no-jit no-send" home nice
	gets "tgspool-exec no-nice jit no-send" home jit
	gets "tgspool-exec no-nice no-jit send" home send
	extra 60-home
	inside systemctl reload tgspool.service
}

# wishes_program is a handler that lies in /home and wants what is usually not given.
wishes_program() {
	cat <<'SH'
#!/bin/sh
id -un
if [ "$(nice -n 5 nice 2>/dev/null)" = 5 ]; then echo nice; else echo no-nice; fi
case $(uname -m) in x86_64) mmap=9 ;; *) mmap=222 ;; esac
perl -e 'print syscall($ARGV[0] + 0, 0, 4096, 7, 0x22, -1, 0) == -1 ? "no-jit\n" : "jit\n"' "$mmap"
if tgspool send --chat 42 "by a handler itself" >/dev/null 2>&1; then echo send; else echo no-send; fi
SH
}

# gets WHAT DROP-IN... is what the handler gets by drop-ins.
gets() {
	local what=$1 name dir='/etc/systemd/system/tgspool-exec@.service.d' out
	shift
	for name; do
		inside install -D -m 644 "/usr/share/doc/tgspool/examples/drop-ins/$name.conf" "$dir/$name.conf"
	done
	inside systemctl daemon-reload
	out=$(inside tgspool try --text /home home 2>&1) || fail "a handler in /home with $*: $out"
	holds "what a handler gets by $*" "$what" "$(sed 's/\\n/ /g' <<<"$out")"
	inside rm -r "$dir"
	inside systemctl daemon-reload
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

# nonsense: each time the client hears which file it is, and the sockets stay.
nonsense() {
	local file=/etc/tgspool/conf.d/60-nonsense.toml
	head -c 4096 /dev/urandom | put 640 root:tgspool $file
	not_usable 60-nonsense.toml
	put 640 root:tgspool $file <<<$'[bots.home.sender\nrate = 3'
	not_usable 60-nonsense.toml:1
	put 640 root:tgspool $file <<<$'[bots.home.sender]\nrate = "many"\n[bots.home.intake]\nmode = "post"'
	not_usable 60-nonsense.toml:2
	put 640 root:tgspool $file <<<$'[bots.home]\ntoken = "'"$TOKEN"'"'
	not_usable 60-nonsense.toml:2
	lacks "the journal" "$TOKEN" "$(journal --output=verbose)"
	put 600 root:root $file <<<"# only root's"
	not_usable 60-nonsense.toml
	inside rm $file
	usable "with sense"
}

# not_usable TEXT: after a restart a client hears that.
not_usable() {
	inside systemctl restart --no-block tgspool.service
	holds "what a client hears" "$1" "$(refuses inside timeout 60 tgspool status)"
	holds "what config check says" "$1" "$(refuses inside setpriv --reuid=tgspool --regid=tgspool --clear-groups tgspool config check)"
	# shellcheck disable=SC2086 # one unit a word
	equals "the sockets" "active active active" "$(inside systemctl is-active $SOCKETS | xargs)"
	inside systemctl stop tgspool.service 2>/dev/null # it warns of the sockets
}

# read_only: a card that has gone read-only, as worn ones do.
read_only() {
	local state=/var/lib/tgspool
	all_off
	inside sh -c "mount --bind $state $state && mount -o remount,ro,bind $state"
	inside systemctl start --no-block tgspool.socket
	holds "what a client hears" "read-only" "$(refuses inside timeout 60 tgspool status)"
	all_off
	inside umount $state
	usable "on a card that can be written"
}

# shows TEXT in what systemctl status shows.
shows() { [[ $(show tgspool.service StatusText) == *"$1"* ]]; }

# no_certificates: a minimal Debian has none, and the message says so.
no_certificates() {
	inside test ! -e /etc/ssl/certs/ca-certificates.crt || fail "this machine has certificates"
	openssl req -x509 -newkey rsa:2048 -nodes -days 1 -subj /CN=localhost -addext subjectAltName=IP:127.0.0.1 \
		-keyout "$WORK/key.pem" -out "$WORK/cert.pem" 2>/dev/null
	other_on 9443 -key "$WORK/key.pem" -cert "$WORK/cert.pem" -www
	sed -i 's|^api_base = .*|api_base = "https://127.0.0.1:9443"|' "$ROOT/etc/tgspool/conf.d/50-setup.toml"
	inside systemctl restart tgspool.service
	eventually 30 "a word about certificates" journal_tells ca-certificates
	holds "tgspool status" "apt install ca-certificates" "$(inside tgspool status)"
	equals "active" active "$(inside systemctl is-active tgspool.service)"
	other_off
	sed -i "s|^api_base = .*|api_base = \"http://$API\"|" "$ROOT/etc/tgspool/conf.d/50-setup.toml"
	usable "certificates aren't asked for"
}

# other_on PORT ARGS... starts another server in the machine's network.
other_on() {
	(exec nsenter -t "$LEADER" -n -- openssl s_server -quiet -accept "127.0.0.1:$1" "${@:2}" >/dev/null 2>&1) &
	OTHER=$!
	eventually 30 "the other program" network bash -c ": </dev/tcp/127.0.0.1/$1"
}

other_off() {
	kill "$OTHER"
	wait "$OTHER" 2>/dev/null || true
}

# port_taken: the port of Telegram's own server costs that address, nothing else.
port_taken() {
	all_off
	other_on 8081 -nocert -cipher aNULL
	inside systemctl start tgspool.service >/dev/null 2>&1 || true
	equals "the other sockets" "active active" "$(inside systemctl is-active tgspool.socket tgspool-submit.socket | xargs)"
	local out
	out=$(refuses inside tgspool status)
	holds "what a client hears" 8081 "$out"
	other_off
	all_off
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
