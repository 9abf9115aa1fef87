package botserver

import "net/http"

// serveFile fetches a file of Telegram's.
func (s *Server) serveFile(w http.ResponseWriter, _ *http.Request, _ Identity, _ string) {
	fail(w, errorf(http.StatusBadRequest, "tgspool: file downloads are not built yet"))
}
