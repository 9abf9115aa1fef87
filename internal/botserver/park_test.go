package botserver

import "testing"

// TestPark_TheNewestWins: a poll that another has ended may wake for an update
// in the same moment and find nothing. It must not end the newer one for it.
func TestPark_TheNewestWins(t *testing.T) {
	tk := &taker{}
	older, newer := &parked{abort: make(chan conflict, 1)}, &parked{abort: make(chan conflict, 1)}
	tk.park(older)
	tk.park(newer)
	tk.park(older)
	if tk.parked != newer || len(newer.abort) != 0 || len(older.abort) != 1 {
		t.Errorf("the newer is parked: %v, ends of the newer %d, of the older %d", tk.parked == newer, len(newer.abort), len(older.abort))
	}
	tk.park(newer)
	if len(newer.abort) != 0 {
		t.Error("a poll that parks again ends itself")
	}
}
