package spool

// Chats is how many chat records the store has, those of no chat included.
func (s *Store) Chats() (n int) {
	_ = s.view(func(t *txn) error {
		n = t.bucket(bChat).Stats().KeyN
		return nil
	})
	return n
}
