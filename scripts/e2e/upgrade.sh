# Sourced: steps from one version to another and back.

upgrades() {
	step "a full disk during the upgrade" upgrade_full_disk
	step "upgrade under load" upgrade_under_load
	step "a stopped daemon stays stopped" upgrade_stopped
	step "upgrade with bad settings" upgrade_bad
	step "an edited file that the package has changed" upgrade_edited
	step "back onto a newer spool" downgrade
	step "a full disk under a newer version's spool" upgrade_no_room
}

# newer_store builds a package whose spool has a version that today's doesn't know.
newer_store() {
	local overlay=$WORK/overlay
	mkdir -p "$overlay"
	sed 's/^const schemaVersion = .*/const schemaVersion = 99/; s/^\tschemaVersion *= .*/\tschemaVersion = 99/' \
		"$(grep -lE '^(const |	)schemaVersion' internal/spool/*.go)" >"$overlay/schema.go"
	grep -q 'schemaVersion = 99' "$overlay/schema.go" || fail "the version of the spool isn't where it was"
	sed 's/return \[\]migration{}/return newer()/' internal/spool/migrate.go >"$overlay/migrate.go"
	cat >>"$overlay/migrate.go" <<'GO'

func newer() (list []migration) {
	for range schemaVersion - 1 {
		list = append(list, func(*bolt.Tx) error { return nil })
	}
	return list
}
GO
	jq -n --arg dir "$PWD/internal/spool" --arg new "$overlay" --arg schema "$(grep -lE '^(const |	)schemaVersion' internal/spool/*.go)" \
		'{Replace: {("\($dir)/\($schema | split("/")[-1])"): "\($new)/schema.go", "\($dir)/migrate.go": "\($new)/migrate.go"}}' >"$overlay/overlay.json"
	GOFLAGS="-overlay=$overlay/overlay.json" DIST=$WORK/dist VERSION=0.9.0 scripts/deb.sh "$ARCH"
	NEWER=$WORK/dist/tgspool_0.9.0-1_$ARCH.deb
}

version() { inside tgspool status --json | jq -r .version; }

# upgrade_full_disk: dpkg can't unpack, takes back what it did, and the daemon
# never notices. The part of the disk that is full is one that the package writes.
upgrade_full_disk() {
	local pid doc=/usr/share/doc/tgspool
	pid=$(show tgspool.service MainPID)
	inside sh -c "mkdir /root/doc && cp -a $doc/. /root/doc/ && mount -t tmpfs -o size=128k tmpfs $doc && cp -a /root/doc/. $doc/ && ! cat /dev/zero 2>/dev/null >$doc/full"
	cp "$CURRENT" "$ROOT/root/tgspool.deb"
	holds "what apt says" "No space left" "$(refuses apt install /root/tgspool.deb)"
	equals "the process" "$pid" "$(show tgspool.service MainPID)"
	messages_flow "on a full disk"
	inside sh -c "umount $doc && rm -r /root/doc"
	equals "the package" "install ok installed 0.8.1-1" "$(inside dpkg-query -W -f '${Status} ${Version}' tgspool)"
}

# upgrade_under_load: clients of the socket wait for a moment, none fails, and a
# setting that was edited stays.
upgrade_under_load() {
	local out pid rss
	equals "the version before" 0.8.1 "$(version)"
	inside sh -c 'echo "# an edit" >>/etc/tgspool/tgspool.toml'
	pid=$(show tgspool.service MainPID)
	knock_on upgrade
	eventually 20 "load" some_knocks 200
	rss=$(anonymous "$pid")
	out=$(install_package "$CURRENT") || fail "$out"
	equals "the version after" 0.8.2 "$(version)"
	eventually 20 "more load" some_knocks 400
	knock_off >/dev/null
	[ "$pid" != "$(show tgspool.service MainPID)" ] || fail "the old process still runs"
	equals "the edit" "# an edit" "$(inside tail -1 /etc/tgspool/tgspool.toml)"
	equals "clients that were refused" "" "$(knocks_refused)"
	at_most "the longest wait in seconds" 4 "$(knocks_longest)"
	note "longest wait $(knocks_longest) s"
	at_most "anonymous memory under load in MiB" 48 "$rss"
	note "$rss MiB under load"
	accounted upgrade
}

# anonymous PID is the memory that is the process' own, in MiB.
anonymous() { inside awk '/^RssAnon/ { printf "%.1f", $2 / 1024 }' "/proc/$1/status"; }

upgrade_stopped() {
	local out
	all_off
	out=$(install_package "$PREVIOUS") || fail "$out"
	out=$(install_package "$CURRENT") || fail "$out"
	equals "active" inactive "$(inside systemctl is-active tgspool.service || true)"
	inside systemctl start tgspool.service
	equals "the version" 0.8.2 "$(version)"
}

# upgrade_bad: the package is installed all the same, whoever knocks hears what is
# wrong, and that mended, it works.
upgrade_bad() {
	local out
	extra 60-bad '[bots.home.sender]
wrokers = 3'
	out=$(install_package "$CURRENT") || fail "$out"
	equals "the package" "install ok installed 0.8.2-1" "$(inside dpkg-query -W -f '${Status} ${Version}' tgspool)"
	all_hear wrokers
	extra 60-bad
	usable "after an upgrade with bad settings"
}

# upgrade_edited: dpkg asks, and where nobody answers the old program runs on; what
# a person wrote stays in any case.
upgrade_edited() {
	local out before dir=$ROOT.edited
	dpkg-deb --raw-extract "$CURRENT" "$dir"
	echo "# a new key" >>"$dir/etc/tgspool/tgspool.toml"
	dpkg-deb --build --root-owner-group "$dir" "$ROOT/root/edited.deb" >/dev/null
	before=$(inside sh -c 'sha256sum /etc/tgspool/tgspool.toml /etc/tgspool/conf.d/*')
	holds "what dpkg says" "Modified (by you" "$(refuses inside sh -c 'dpkg -i /root/edited.deb </dev/null')"
	messages_flow "before dpkg has an answer"
	out=$(inside dpkg --force-confdef --force-confold --configure -a 2>&1) || fail "$out"
	equals "what a person wrote" "$before" "$(inside sh -c 'sha256sum /etc/tgspool/tgspool.toml /etc/tgspool/conf.d/*')"
	equals "the package's file" "# a new key" "$(inside tail -1 /etc/tgspool/tgspool.toml.dpkg-dist)"
	usable "with the edited file"
	out=$(inside dpkg --force-confold -i /root/tgspool.deb 2>&1) || fail "$out"
	inside rm -f /root/edited.deb /etc/tgspool/tgspool.toml.dpkg-dist
}

# downgrade: the older program leaves a newer spool as it is, and says what to do.
downgrade() {
	local out before
	out=$(install_package "$NEWER") || fail "$out"
	equals "the version" 0.9.0 "$(version)"
	telegram_off
	send "kept by the newer one" >/dev/null
	out=$(install_package "$CURRENT") || fail "$out"
	eventually 10 "the reason" journal_says "99"
	before=$(inside sha256sum /var/lib/tgspool/spool.db)
	holds "what a client hears" "newer version" "$(refuses inside timeout 20 tgspool status)"
	equals "the newer spool" "$before" "$(inside sha256sum /var/lib/tgspool/spool.db)"
	out=$(install_package "$NEWER") || fail "$out"
	telegram_on
	eventually 30 "what the newer one kept" has_arrived "kept by the newer one"
	go_back
}

# go_back takes the copy that the newer version made of the spool, as its message says.
go_back() {
	all_off
	inside sh -c 'cd /var/lib/tgspool && mv spool.db.v* spool.db'
	install_package "$CURRENT" >/dev/null
	inside systemctl start tgspool.service
	equals "the version" 0.8.2 "$(version)"
}

# upgrade_no_room: a newer version that has no room to bring the spool into its
# form leaves it as it is, and the older one goes on with it. The disk is a RAM
# disk, of which the status says so.
upgrade_no_room() {
	local state=/var/lib/tgspool out
	all_off
	inside sh -c "mkdir -p /root/state && cp -a $state/. /root/state/ && mount -t tmpfs -o size=64m,mode=700,uid=tgspool,gid=tgspool tmpfs $state && cp -a /root/state/. $state/"
	inside systemctl start tgspool.service
	eventually 30 "the word that it is a RAM disk" shows "KEPT ONLY UNTIL THE NEXT BOOT"
	messages_flow "from a RAM disk"
	! inside sh -c "cat /dev/zero >$state/full" 2>/dev/null || fail "the disk isn't full"
	out=$(install_package "$NEWER") || fail "$out"
	out=$(refuses inside timeout 20 tgspool status)
	holds "what a client hears" "no space left" "$out"
	out=$(install_package "$CURRENT") || fail "$out"
	inside rm "$state/full"
	usable "after a newer version without room"
	all_off
	inside sh -c "cp -a $state/. /root/state/ && umount $state && cp -a /root/state/. $state/ && rm -r /root/state"
	usable "from a disk again"
}
