package spool

// line puts a job into its chat's queue by its order, and the heads into the
// ready index.
func (t *txn) line(b *Bot, r *jobRec) {
	p := queuePrefix(b.num, r.ChatNo, r.Lane)
	head, _ := t.first(bQueue, p)
	q := queued{id: r.ID, weight: r.Weight, retryAt: r.RetryAt}
	if head != nil && u64at(head, len(p)) < r.Order {
		t.put(bQueue, queueKey(b.num, r.ChatNo, r.Lane, r.Order), q.bytes())
		return // an older one stands before it: nothing changes for the chat
	}
	t.unready(b, r.ChatNo)
	t.put(bQueue, queueKey(b.num, r.ChatNo, r.Lane, r.Order), q.bytes())
	t.rearm(b, r.ChatNo)
}

// unline takes a job out of its chat's queue.
func (t *txn) unline(b *Bot, r *jobRec) {
	t.unready(b, r.ChatNo)
	t.del(bQueue, queueKey(b.num, r.ChatNo, r.Lane, r.Order))
	t.rearm(b, r.ChatNo)
}

// unready takes the heads of a chat out of the ready index.
func (t *txn) unready(b *Bot, chat uint32) {
	for lane := range Lanes() {
		p := queuePrefix(b.num, chat, byte(lane))
		if head, _ := t.first(bQueue, p); head != nil {
			k := readyKey(b.num, byte(lane), u64at(head, len(p)))
			if t.get(bReady, k) != nil {
				t.del(bReady, k)
			}
		}
	}
}

// rearm puts the heads of a chat whose gates are open into the ready index and
// sets a timer for the first of the others. A busy chat waits for its job.
func (t *txn) rearm(b *Bot, chat uint32) {
	if _, busy := b.busy[chat]; busy {
		return
	}
	c := t.queuedChat(b, chat)
	if c == nil {
		return
	}
	wake := int64(0)
	for lane := range Lanes() {
		p := queuePrefix(b.num, chat, byte(lane))
		head, v := t.first(bQueue, p)
		q, ok := readQueued(v)
		if head == nil || !ok {
			continue
		}
		at := c.opensAt(b.cfg.Limits, q.weight, q.retryAt)
		if at <= t.now {
			order := u64at(head, len(p))
			t.put(bReady, readyKey(b.num, byte(lane), order), newKey(12).u32(chat).u64(uint64(q.id)))
		} else if wake == 0 || at < wake {
			wake = at
		}
	}
	if wake != 0 && (c.WakeAt == 0 || wake < c.WakeAt || c.WakeAt <= t.now) {
		t.put(bTimer, timerKey(wake, timerChat, b.num, uint64(chat)), []byte{})
		c.WakeAt = wake
		t.touchChat(b, chat, c)
	}
}
