package spool

// CollapsedReason is why an update is ignored whose like has just been there.
const CollapsedReason = "collapsed"

// ignores reports whether an update that comes in is for nobody, and queues what
// its sender is to be told then.
func (t *txn) ignores(b *Bot, u *NewUpdate, r *updateRec) bool {
	reason := u.Route.Ignore
	if reason == "" && t.collapses(b, u) {
		reason = CollapsedReason
	}
	if reason == "" {
		return false
	}
	r.Error = reason
	if also := u.Route.Also; also != nil {
		t.tellUser(b, r, also.Tell)
	}
	return true
}

// collapses reports whether the like of an update has counted within its window.
// The first that counts opens the window; those in it don't make it longer. It is
// kept among the keys, with the moment of the event in the place of an id, and
// forgotten when neither the event's time nor that of its arrival needs it.
func (t *txn) collapses(b *Bot, u *NewUpdate) bool {
	also := u.Route.Also
	if also == nil || also.Collapse == "" || also.Window <= 0 {
		return false
	}
	at, window := t.now, int64(also.Window)
	if !also.At.IsZero() {
		at = also.At.UnixNano()
	}
	k := dedupeKey(b.num, "collapse\x00"+also.Collapse)
	if v := t.get(bKey, k); len(v) == 16 {
		if apart := at - int64(u64at(v, 0)); apart < window && apart > -window {
			return true
		}
	}
	t.outlive(b, bKey, k, at, t.now+window)
	return false
}
