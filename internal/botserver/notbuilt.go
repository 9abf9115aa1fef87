package botserver

import "net/http"

func (s *Server) getUpdates(c *call)     { notBuilt(c) }
func (s *Server) setWebhook(c *call)     { notBuilt(c) }
func (s *Server) deleteWebhook(c *call)  { notBuilt(c) }
func (s *Server) getWebhookInfo(c *call) { notBuilt(c) }

// notBuilt refuses what this version can't do yet.
func notBuilt(c *call) {
	fail(c.w, errorf(http.StatusBadRequest, "tgspool: %s is not built yet", c.method.Name))
}
