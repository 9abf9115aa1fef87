package manage

import (
	"cmp"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/tgspool/tgspool/internal/spool"
)

// Metrics are the figures for Prometheus. It is a spool.Observer; what the other
// rooms see is told by its methods, which never wait. What can be read from the
// spool's own counters is read when somebody asks, and costs nothing before.
// Labels are names of the settings and words of ours, never chats.
type Metrics struct {
	registry *prometheus.Registry

	attempts, floods, results *prometheus.CounterVec
	written                   prometheus.Counter
	commits, handling         prometheus.Histogram
	replies, webhooks         *prometheus.HistogramVec
}

// The buckets, in seconds. A good card flushes in 5 ms, a bad one in seconds; a
// reply within the second is what people call at once.
var (
	commitBuckets = []float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 5, 30}
	callBuckets   = []float64{.005, .025, .1, .25, .5, 1, 2.5, 5, 10, 30, 60, 300}
	replyBuckets  = []float64{.05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60, 300, 1800}
)

// NewMetrics returns figures that are all zero.
func NewMetrics() *Metrics {
	m := &Metrics{registry: prometheus.NewRegistry()}
	counter := func(name, help string, labels ...string) *prometheus.CounterVec {
		c := prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, labels)
		m.registry.MustRegister(c)
		return c
	}
	histogram := func(name, help string, buckets []float64, labels ...string) *prometheus.HistogramVec {
		h := prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: name, Help: help, Buckets: buckets}, labels)
		m.registry.MustRegister(h)
		return h
	}
	m.attempts = counter("tgspool_attempts_total", "Calls of jobs by the class of their outcome.", "bot", "class")
	m.floods = counter("tgspool_floods_total", "Answers of Telegram that asked the bot to wait (429).", "bot")
	m.results = counter("tgspool_handler_results_total", "Runs of handlers by how they ended; retry: the update is tried again.", "bot", "handler", "result")
	m.written = counter("tgspool_written_bytes_total", "Bytes that commits have written to the store.").WithLabelValues()
	single := func(h *prometheus.HistogramVec) prometheus.Histogram {
		return h.WithLabelValues().(prometheus.Histogram)
	}
	m.commits = single(histogram("tgspool_commit_seconds", "How long commits of the store took.", commitBuckets))
	m.handling = single(histogram("tgspool_handler_seconds", "How long runs of handlers took.", callBuckets))
	m.replies = histogram("tgspool_update_to_reply_seconds", "From the commit of an update to the end of each call that its handler asked for.", replyBuckets, "bot")
	m.webhooks = histogram("tgspool_webhook_seconds", "How long Telegram's webhook requests took to be answered.", callBuckets, "bot")
	m.registry.MustRegister(collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return m
}

// Attempt counts a call of a job by the class of its outcome.
func (m *Metrics) Attempt(bot, class string) { m.attempts.WithLabelValues(bot, class).Inc() }

// Flood counts an answer that asked the bot to wait.
func (m *Metrics) Flood(bot string) { m.floods.WithLabelValues(bot).Inc() }

// Webhook measures one request of Telegram's.
func (m *Metrics) Webhook(bot string, took time.Duration) {
	m.webhooks.WithLabelValues(bot).Observe(took.Seconds())
}

// Committed implements spool.Observer.
func (m *Metrics) Committed(took time.Duration, bytes int64) {
	m.commits.Observe(took.Seconds())
	m.written.Add(float64(bytes))
}

// Handled implements spool.Observer.
func (m *Metrics) Handled(bot, handler string, result spool.UpdateState, took time.Duration) {
	word := string(result)
	if result == spool.UpdateOpen {
		word = "retry"
	}
	m.results.WithLabelValues(bot, cmp.Or(handler, "pull"), word).Inc()
	m.handling.Observe(took.Seconds())
}

// Replied implements spool.Observer.
func (m *Metrics) Replied(bot string, took time.Duration) {
	m.replies.WithLabelValues(bot).Observe(took.Seconds())
}

// serve answers with all figures, those of the store included.
func (m *Metrics) serve(a *api) http.Handler {
	m.registry.MustRegister(stateCollector{a})
	for _, bot := range a.bots.Names() {
		m.floods.WithLabelValues(bot) // there from the start: a rise from nothing shows nowhere
	}
	return promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{MaxRequestsInFlight: 4, Timeout: 10 * time.Second})
}

// The figures that are read when somebody asks.
var (
	jobsDesc     = prometheus.NewDesc("tgspool_jobs", "Jobs by state.", []string{"bot", "state"}, nil)
	updatesDesc  = prometheus.NewDesc("tgspool_updates", "Updates by state.", []string{"bot", "state"}, nil)
	oldestDesc   = prometheus.NewDesc("tgspool_oldest_pending_seconds", "How long the oldest pending job has been due.", []string{"bot"}, nil)
	cooldownDesc = prometheus.NewDesc("tgspool_cooldown_seconds", "How long the bot still has to wait, as Telegram asked.", []string{"bot"}, nil)
	sizeDesc     = prometheus.NewDesc("tgspool_store_bytes", "Size of the store's file.", nil, nil)
)

// stateCollector reads the spool's counters, never the queue.
type stateCollector struct{ a *api }

// Describe implements prometheus.Collector.
func (c stateCollector) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{jobsDesc, updatesDesc, oldestDesc, cooldownDesc, sizeDesc} {
		ch <- d
	}
}

// Collect implements prometheus.Collector.
func (c stateCollector) Collect(ch chan<- prometheus.Metric) {
	now := time.Now()
	gauge := func(d *prometheus.Desc, v float64, labels ...string) {
		ch <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, labels...)
	}
	status := c.a.currentStatus()
	gauge(sizeDesc, float64(status.Store.SizeBytes))
	for _, name := range status.Bots.Names {
		bot := status.Bots.ByName[name]
		for _, s := range spool.States() {
			gauge(jobsDesc, float64(bot.Jobs[s]), name, string(s))
		}
		for _, s := range spool.UpdateStates() {
			gauge(updatesDesc, float64(bot.Updates[s]), name, string(s))
		}
		gauge(oldestDesc, bot.OldestPendingAgeS, name)
		left := 0.0
		if until := bot.Sender.CooldownUntil; until != nil {
			left = max(0, until.Sub(now).Seconds())
		}
		gauge(cooldownDesc, left, name)
	}
}
