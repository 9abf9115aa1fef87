package config

import (
	"slices"
	"strings"
)

// keyHint says what was probably meant by a key that isn't known in its table: a
// key spelled nearly so, or the table in which the key is known.
func keyHint(key string, known []string) string {
	switch strings.ToLower(strings.ReplaceAll(key, "_", "")) {
	case "token", "bottoken":
		return "a token doesn't belong in settings: run tgspool token set, or name its file with token_file"
	case "secret", "secrettoken":
		return "a secret doesn't belong in settings: name its file with secret_file"
	}
	if near := nearest(key, known); near != "" {
		return "did you mean " + show(near) + "?"
	}
	for _, k := range Keys() {
		if head, ok := strings.CutSuffix(k.Path, "."+key); ok {
			return "it belongs in [" + strings.ReplaceAll(head, "[]", "") + "]"
		}
	}
	if len(known) == 0 {
		return ""
	}
	return "known here: " + strings.Join(known, ", ")
}

// nearest returns the candidate with the smallest edit distance to s, or ""
// when none is near enough to be meant.
func nearest(s string, candidates []string) string {
	const longest = 64 // nobody meant a longer one, and the distance costs its square
	if len(s) > longest {
		return ""
	}
	best, bestAt := "", max(1, len(s)/3)+1
	for _, c := range candidates {
		d := distance(strings.ToLower(s), c)
		if short := min(len(s), len(c)); short >= 3 && strings.EqualFold(s[:short], c[:short]) {
			d = min(d, 2) // one begins with the other: warning, warn
		}
		if d < bestAt && d < len(c) {
			best, bestAt = c, d
		}
	}
	return best
}

// distance is the number of letters to insert, drop, change, or swap with their
// neighbour that make b out of a.
func distance(a, b string) int {
	before := make([]int, len(b)+1) // the row before the last one
	last := make([]int, len(b)+1)
	for j := range last {
		last[j] = j
	}
	for i := range len(a) {
		row := make([]int, len(b)+1)
		row[0] = i + 1
		for j := range len(b) {
			change := last[j]
			if a[i] != b[j] {
				change++
			}
			row[j+1] = slices.Min([]int{change, last[j+1] + 1, row[j] + 1})
			if i > 0 && j > 0 && a[i] == b[j-1] && a[i-1] == b[j] {
				row[j+1] = min(row[j+1], before[j-1]+1)
			}
		}
		before, last = last, row
	}
	return last[len(b)]
}
