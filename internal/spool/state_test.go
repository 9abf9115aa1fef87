package spool

import "testing"

// TestTransitions_AllPairs holds the whole table: a pair that isn't named here
// must be refused.
func TestTransitions_AllPairs(t *testing.T) {
	allowed := map[[2]State]string{
		{Pending, Running}: "claim", {Pending, Dead}: "its chat is gone", {Pending, Held}: "hold",
		{Pending, Cancelled}: "cancel", {Pending, Expired}: "expiry",
		{Running, Pending}: "retry or given back", {Running, Done}: "ok", {Running, Dead}: "rejected",
		{Running, Uncertain}: "unknown outcome", {Running, Held}: "undated flood",
		{Running, Cancelled}: "on_uncertain = drop", {Running, Expired}: "too late",
		{Uncertain, Pending}: "resolve --resend", {Uncertain, Done}: "resolve --sent", {Uncertain, Cancelled}: "resolve --drop, cancel, nobody decided",
		{Held, Pending}: "release", {Held, Cancelled}: "cancel", {Held, Dead}: "its chat is gone",
		{Dead, Pending}: "retry", {Cancelled, Pending}: "retry", {Expired, Pending}: "retry",
	}
	for _, from := range States() {
		for _, to := range States() {
			if _, want := allowed[[2]State{from, to}]; canMove(from, to) != want {
				t.Errorf("%s to %s: allowed is %v, want %v", from, to, !want, want)
			}
		}
	}
}

func TestTransitions_EveryStateHasAnExitOrIsAnEnd(t *testing.T) {
	for _, s := range States() {
		if len(transitions[s]) == 0 && !s.Ended() {
			t.Errorf("%s has no exit", s)
		}
	}
	for _, s := range UpdateStates() {
		if len(updateTransitions[s]) == 0 {
			t.Errorf("%s has no exit", s)
		}
	}
}

func TestUpdateTransitions_AllPairs(t *testing.T) {
	allowed := map[[2]UpdateState]bool{
		{UpdateOpen, UpdateLeased}: true, {UpdateOpen, UpdateHandled}: true, {UpdateOpen, UpdateIgnored}: true, {UpdateOpen, UpdateDead}: true, {UpdateOpen, UpdateExpired}: true,
		{UpdateLeased, UpdateOpen}: true, {UpdateLeased, UpdateHandled}: true, {UpdateLeased, UpdateIgnored}: true,
		{UpdateLeased, UpdateDead}: true, {UpdateLeased, UpdateExpired}: true,
		{UpdateHandled, UpdateOpen}: true, {UpdateIgnored, UpdateOpen}: true, {UpdateDead, UpdateOpen}: true,
		{UpdateDead, UpdateIgnored}: true, {UpdateExpired, UpdateOpen}: true,
	}
	for _, from := range UpdateStates() {
		for _, to := range UpdateStates() {
			if canMoveUpdate(from, to) != allowed[[2]UpdateState{from, to}] {
				t.Errorf("%s to %s is %v", from, to, canMoveUpdate(from, to))
			}
		}
	}
}
