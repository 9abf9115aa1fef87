package telegramsim

import (
	"encoding/json"
	"fmt"
	"strconv"
)

// mediaKind is a sending method whose content is a file.
type mediaKind struct {
	method  string
	kind    string // name of the parameter and of the message's field
	caption bool
}

// mediaKinds lists them.
func mediaKinds() []mediaKind {
	return []mediaKind{
		{"sendPhoto", "photo", true},
		{"sendDocument", "document", true},
		{"sendVideo", "video", true},
		{"sendAudio", "audio", true},
		{"sendVoice", "voice", true},
		{"sendAnimation", "animation", true},
		{"sendVideoNote", "video_note", false},
		{"sendSticker", "sticker", false},
	}
}

// sendMedia is the method that sends one kind of file.
func sendMedia(kind mediaKind) methodFunc {
	return func(s *Sim, c *call) (any, *apiError) {
		m, err := s.draft(c)
		if err != nil {
			return nil, err
		}
		f, err := s.inputFile(c, kind.kind, kind.kind, c.params.get(kind.kind))
		if err != nil {
			return nil, err
		}
		m.setFile(kind.kind, f)
		if kind.caption {
			if m.text, m.entities, err = readCaption(c.params); err != nil {
				return nil, err
			}
		}
		return s.post(c, m), nil
	}
}

// setFile makes a file the content of the message.
func (m *message) setFile(kind string, f *file) {
	m.kind, m.file, m.content = kind, f, f.object(kind)
}

// inputMedia is one InputMedia object.
type inputMedia struct {
	Type            string          `json:"type"`
	Media           string          `json:"media"`
	Caption         string          `json:"caption"`
	ParseMode       string          `json:"parse_mode"`
	CaptionEntities json.RawMessage `json:"caption_entities"`
}

// content makes file and caption of an InputMedia object.
func (s *Sim) mediaContent(c *call, in inputMedia, m *message) *apiError {
	switch in.Type {
	case "photo", "video", "audio", "document", "animation":
	default:
		return badRequest("can't parse InputMedia: Unsupported media type")
	}
	if in.Media == "" {
		return badRequest("there is no %s in the request", in.Type)
	}
	f, err := s.inputFile(c, in.Type, in.Media, in.Media)
	if err != nil {
		return err
	}
	caption := &params{text: map[string]string{
		"caption": in.Caption, "parse_mode": in.ParseMode, "caption_entities": string(in.CaptionEntities),
	}}
	if m.text, m.entities, err = readCaption(caption); err != nil {
		return err
	}
	m.setFile(in.Type, f)
	return nil
}

// methodSendMediaGroup answers sendMediaGroup. All parts are checked before the
// first is posted; a part that fails is named by its number.
func methodSendMediaGroup(s *Sim, c *call) (any, *apiError) {
	first, err := s.draft(c)
	if err != nil {
		return nil, err
	}
	var media []inputMedia
	if json.Unmarshal([]byte(c.params.get("media")), &media) != nil {
		return nil, badRequest("can't parse media JSON object")
	}
	switch {
	case len(media) == 0:
		return nil, badRequest("there are no messages to send")
	case len(media) > 10:
		return nil, badRequest("too many messages to send as an album")
	}
	album := strconv.FormatInt(13_000_000_000_000_000+s.nextSerialLocked(), 10)
	parts := make([]*message, 0, len(media))
	for i, in := range media {
		if in.Type == "animation" || (in.Type != media[0].Type && (apart(in.Type) || apart(media[0].Type))) {
			return nil, badRequest("can't use the media of the specified type in the album")
		}
		part := *first
		part.album = album
		if err := s.mediaContent(c, in, &part); err != nil {
			return nil, albumError(i, len(media), err)
		}
		parts = append(parts, &part)
	}
	results := make([]any, 0, len(parts))
	for _, part := range parts {
		results = append(results, s.post(c, part))
	}
	return results, nil
}

// apart tells whether a kind of file makes albums only with its own kind.
func apart(kind string) bool { return kind == "audio" || kind == "document" }

// albumError names the part of an album that failed.
func albumError(i, n int, err *apiError) *apiError {
	if n == 1 {
		return err
	}
	detail := err.description
	if len(detail) > len("Bad Request: ") && err.code == 400 {
		detail = detail[len("Bad Request: "):]
	}
	return badRequest("%s", fmt.Sprintf("failed to send message #%d with the error message %q", i+1, detail))
}
