package manage

import (
	"net/http"
	"strconv"
)

const (
	// chunkSize is how many records are read at a time, so that a page of big
	// ones is cut before it has filled the memory.
	chunkSize = 50
	// pageBytes is the size from which a page ends early.
	pageBytes = 8 << 20
)

// page is the body of every list.
type page[T any] struct {
	Items []T     `json:"items"`
	Next  *string `json:"next"`
}

// list reads one page. fetch returns records above after and the mark for more,
// 0 at the end; weigh returns a record's own mark and its size in bytes.
func list[T any](limit int, after int64, fetch func(after int64, limit int) ([]T, int64, error),
	weigh func(T) (mark int64, size int),
) (int, any, error) {
	out := page[T]{Items: []T{}}
	size := 0
	for {
		asked := min(chunkSize, limit-len(out.Items))
		got, next, err := fetch(after, asked)
		if err != nil {
			return 0, nil, err
		}
		for i, item := range got {
			mark, weight := weigh(item)
			out.Items = append(out.Items, item)
			if size += weight; size >= pageBytes && mark > 0 && (next != 0 || i < len(got)-1) {
				out.Next = mark64(mark)
				return http.StatusOK, out, nil
			}
		}
		if next == 0 {
			return http.StatusOK, out, nil
		}
		// A short chunk means that the look through unindexed records ended for
		// this call; so does the page.
		if len(out.Items) == limit || len(got) < asked {
			out.Next = mark64(next)
			return http.StatusOK, out, nil
		}
		after = next
	}
}

func mark64(n int64) *string {
	s := strconv.FormatInt(n, 10)
	return &s
}
