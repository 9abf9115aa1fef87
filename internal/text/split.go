package text

import (
	"fmt"
	"strings"
)

// Message is a text in its parse mode. Entities count only without one.
type Message struct {
	Text     string
	Mode     Mode
	Entities []Entity
}

// Split divides a message into parts of at most later UTF-16 units after
// parsing, the first of at most first (the two differ for a caption, whose rest
// goes out as texts), and at most MaxRaw bytes. What fits stays as it is, in one
// part; so does what shows nothing. The error is ErrMarkup for what isn't valid
// in its mode; or says that a part can't be made of it.
func (m Message) Split(first, later int) ([]Message, error) {
	if m.Mode != None {
		m.Entities = nil
	} else if err := checkEntities(m.Text, m.Entities); err != nil {
		return nil, err
	}
	d, err := parse(m.Mode, m.Text)
	if err != nil {
		return nil, err
	}
	if len(m.Text) <= MaxRaw && Units(d.plain) <= first {
		return []Message{m}, nil
	}
	parts, err := d.cut(first, later)
	if err != nil {
		return nil, err
	}
	if len(parts) == 0 {
		return []Message{m}, nil
	}
	texts, err := d.render(parts)
	if err != nil {
		return nil, err
	}
	if err := d.verify(parts, texts); err != nil {
		return nil, err
	}
	return m.messages(d, parts, texts)
}

// shownEntities is how many entities of a message Telegram looks at.
const shownEntities = 100

// messages gives each part its entities.
func (m Message) messages(d *document, parts []stretch, texts []string) ([]Message, error) {
	out := make([]Message, len(parts))
	pos, units := 0, 0
	most := len(m.Entities) + shownEntities*len(parts)
	for i, p := range parts {
		units += Units(d.plain[pos:p.from])
		length := Units(d.plain[p.from:p.to])
		out[i] = Message{Text: texts[i], Mode: m.Mode, Entities: within(m.Entities, units, units+length)}
		if most -= len(out[i].Entities); most < 0 {
			return nil, errRepeats
		}
		pos, units = p.to, units+length
	}
	return out, nil
}

// verify reads each part as Telegram will. A part that came out wrong is better
// refused whole than sent garbled.
func (d *document) verify(parts []stretch, texts []string) error {
	for i, p := range parts {
		part, err := parse(d.mode, texts[i])
		if err != nil {
			return fmt.Errorf("part %d: %w", i+1, err)
		}
		// The end of a quotation inside of other marks is a line break of ours.
		if want := d.plain[p.from:p.to]; part.plain != want && strings.TrimRight(part.plain, "\n") != strings.TrimRight(want, "\n") {
			return fmt.Errorf("part %d: %w: it can't be cut here", i+1, ErrMarkup)
		}
		if len(texts[i]) > MaxRaw {
			return fmt.Errorf("part %d: %w", i+1, errTooDense)
		}
	}
	return nil
}
