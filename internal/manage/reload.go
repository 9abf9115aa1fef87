package manage

import (
	"context"
	"net/http"
)

// Reload is what a reading of the settings has changed.
type Reload struct {
	Applied []string `json:"applied"` // keys that are in use now
	Restart []string `json:"restart"` // keys that count after a restart
}

// reload makes the daemon read its settings again. Bad settings are refused as
// a whole, with what is wrong where; the running ones stay.
func (a *api) reload(r *http.Request) (int, any, error) {
	if a.reloader == nil {
		return 0, nil, problemf(http.StatusNotFound, "this daemon can't reload its settings")
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(r.Context()), changeTimeout)
	defer cancel()
	done, err := a.reloader(ctx)
	if err != nil {
		return 0, nil, problemf(http.StatusUnprocessableEntity, "%s", err)
	}
	return http.StatusOK, done, nil
}
