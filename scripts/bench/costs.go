package main

import "github.com/tgspool/tgspool/scripts/bench/kit"

// path counts flushes over the whole way of a message.
func (b *bench) path() error {
	c, err := b.start("ours")
	if err != nil {
		return err
	}
	defer func() { _ = c.end() }()
	if err := c.all(kit.Request{Op: "ended", N: kit.Ended}); err != nil {
		return err
	}
	serial, err := c.do(kit.Request{Op: "path", N: 500, Workers: 1})
	if err != nil {
		return err
	}
	parallel, err := c.do(kit.Request{Op: "path", N: 10_000, Workers: 16, Profile: b.profileOf("path")})
	if err != nil {
		return err
	}
	b.atMost("flushes a message, whole path, serial", flushes(serial), 6, "")
	b.atMost("flushes a message, 64 producers, 16 workers", flushes(parallel), 0.5, "")
	b.note("whole path, 64 producers, 16 workers", parallel)
	return nil
}

func flushes(r kit.Reply) float64 { return float64(r.Flushes) / float64(r.N) }

// bytes counts what reaches the file for one job, queued, claimed and completed
// before the next one comes.
func (b *bench) bytes() error {
	c, err := b.start("ours")
	if err != nil {
		return err
	}
	defer func() { _ = c.end() }()
	if err := c.all(kit.Request{Op: "ended", N: kit.Ended}); err != nil {
		return err
	}
	const n = 1000
	plain, err := c.do(kit.Request{Op: "cycle", N: n, Workers: 16})
	if err != nil {
		return err
	}
	b.atMost("KiB written a job, serial", plain.KiB(), 36, "")
	b.note("serial cycle", plain)
	keyed, err := c.do(kit.Request{Op: "cycle", N: n, Workers: 16, Key: true})
	if err != nil {
		return err
	}
	b.atMost("KiB written a job, serial, with a dedupe key", keyed.KiB(), 48, "")
	if err := c.all(kit.Request{Op: "fill", N: 100_000}); err != nil {
		return err
	}
	behind, err := c.do(kit.Request{Op: "cycle-behind", N: n})
	if err != nil {
		return err
	}
	b.atMost("KiB written a job, serial, 100,000 queued", behind.KiB(), 120, "")
	return nil
}
