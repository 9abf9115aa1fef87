package telegramsim_test

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tgspool/tgspool/internal/telegramsim"
)

// uploaded makes a multipart call that has to succeed.
func uploaded(t *testing.T, s *telegramsim.Sim, method string, text, files map[string]string) json.RawMessage {
	t.Helper()
	got, err := send(s.Transport(), form(t.Context(), t, "https://b.invalid/bot"+token+"/"+method, text, files))
	if err != nil || !got.OK {
		t.Fatalf("%s: %d %s %v", method, got.Status, got.Description, err)
	}
	return got.Result
}

func TestUploadReuseAndDownload(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSim(t, telegramsim.Options{Bots: []telegramsim.Bot{{Token: token}, {Token: "8002:other"}}})
		var sent message
		result := uploaded(t, s, "sendDocument", map[string]string{"chat_id": "5", "caption": "a <b>log</b>", "parse_mode": "HTML"},
			map[string]string{"document": "contents"})
		if err := json.Unmarshal(result, &sent); err != nil {
			t.Fatal(err)
		}
		if sent.Document == nil || sent.Document.Name != "document.txt" || sent.Document.Size != 8 || sent.Caption != "a log" {
			t.Fatalf("sent %s", result)
		}
		sum := sha256.Sum256([]byte("contents"))
		record := s.Journal()[0]
		want := telegramsim.ArrivedFile{Field: "document", Name: "document.txt", Size: 8, SHA256: hex.EncodeToString(sum[:])}
		if len(record.Files) != 1 || record.Files[0] != want {
			t.Errorf("on record %+v, want %+v", record.Files, want)
		}
		again := must[message](t, s, "sendDocument", args{"chat_id": 6, "document": sent.Document.FileID})
		if again.Document.FileID != sent.Document.FileID {
			t.Errorf("the same file came back as %s", again.Document.FileID)
		}
		got := raw(t, s, "POST", "/bot8002:other/sendDocument", asForm, "chat_id=5&document="+sent.Document.FileID)
		if got.Status != 400 || got.Description != "Bad Request: wrong file identifier/HTTP URL specified" {
			t.Errorf("another bot's file id: %d %q", got.Status, got.Description)
		}
		file := must[struct {
			Path string `json:"file_path"`
		}](t, s, "getFile", args{"file_id": sent.Document.FileID})
		url := "/file/bot" + token + "/" + file.Path
		if got := raw(t, s, "GET", url, "", ""); got.Status != 200 || string(got.Result) != "contents" {
			t.Errorf("download: %d %s", got.Status, got.Result)
		}
		time.Sleep(time.Hour)
		if got := raw(t, s, "GET", url, "", ""); got.Status != 404 {
			t.Errorf("download after an hour: %d, want 404", got.Status)
		}
	})
}

func TestFileRefusals(t *testing.T) {
	s := newSim(t, telegramsim.Options{})
	refused(t, s, "sendPhoto", args{"chat_id": 5}, 400, "Bad Request: there is no photo in the request")
	refused(t, s, "sendPhoto", args{"chat_id": 5, "photo": "attach://nothing"}, 400, "Bad Request: there is no photo in the request")
	refused(t, s, "sendPhoto", args{"chat_id": 5, "photo": "AgACunknown"}, 400, "Bad Request: wrong file identifier/HTTP URL specified")
	refused(t, s, "getFile", args{"file_id": "AgACunknown"}, 400, "Bad Request: invalid file_id")
	must[message](t, s, "sendPhoto", args{"chat_id": 5, "photo": "https://pictures.invalid/a.jpg", "caption": strings.Repeat("c", 1024)})
	refused(t, s, "sendPhoto", args{"chat_id": 5, "photo": "https://pictures.invalid/a.jpg", "caption": strings.Repeat("c", 1025)}, 400,
		"Bad Request: message caption is too long")
	got, err := send(s.Transport(), form(t.Context(), t, "https://b.invalid/bot"+token+"/sendDocument",
		map[string]string{"chat_id": "5"}, map[string]string{"document": ""}))
	if err != nil || got.Description != "Bad Request: file must be non-empty" {
		t.Errorf("empty file: %+v, %v", got, err)
	}
}

func TestTooManyFiles(t *testing.T) {
	s := newSim(t, telegramsim.Options{})
	files := make(map[string]string)
	for i := range 51 {
		files[fmt.Sprint("f", i)] = "x"
	}
	got, err := send(s.Transport(), form(t.Context(), t, "https://b.invalid/bot"+token+"/sendDocument", nil, files))
	if err != nil || got.Status != 413 || len(got.Result) != 0 {
		t.Errorf("51 files: %d %s, %v; want 413 without a body", got.Status, got.Result, err)
	}
}

func TestAlbums(t *testing.T) {
	s := newSim(t, telegramsim.Options{})
	media := `[{"type":"photo","media":"attach://a","caption":"first"},{"type":"photo","media":"attach://b"}]`
	var parts []message
	result := uploaded(t, s, "sendMediaGroup", map[string]string{"chat_id": "5", "media": media}, map[string]string{"a": "1", "b": "2"})
	if err := json.Unmarshal(result, &parts); err != nil {
		t.Fatal(err)
	}
	if len(parts) != 2 || parts[0].Album == "" || parts[0].Album != parts[1].Album || parts[0].Caption != "first" || parts[1].ID != parts[0].ID+1 {
		t.Errorf("album %s", result)
	}
	if record := s.Journal()[0]; len(record.MessageIDs) != 2 || len(record.Files) != 2 {
		t.Errorf("on record %+v", record)
	}
	url := "https://p.invalid/x"
	refused(t, s, "sendMediaGroup", args{"chat_id": 5, "media": []args{{"type": "photo", "media": url}, {"type": "audio", "media": url}}}, 400,
		"Bad Request: can't use the media of the specified type in the album")
	refused(t, s, "sendMediaGroup", args{"chat_id": 5, "media": []args{{"type": "photo", "media": url}, {"type": "photo", "media": "bad"}}}, 400,
		`Bad Request: failed to send message #2 with the error message "wrong file identifier/HTTP URL specified"`)
	if n := len(s.Chat(5)); n != 2 {
		t.Errorf("%d messages in the chat, want the two of the album", n)
	}
	edited := must[message](t, s, "editMessageMedia", args{"chat_id": 5, "message_id": parts[0].ID, "media": args{"type": "photo", "media": url}})
	if len(edited.Photo) != 1 || edited.Photo[0].FileID == parts[0].Photo[0].FileID {
		t.Errorf("edited media: %+v", edited)
	}
}

func TestFilesOfFedUpdatesAreKnown(t *testing.T) {
	s := newSim(t, telegramsim.Options{})
	s.Feed(0, json.RawMessage(`{"message":{"message_id":1,"chat":{"id":5,"type":"private"},"date":1,"voice":{"duration":1,"file_id":"fedVoice","file_size":9}}}`))
	must[message](t, s, "sendVoice", args{"chat_id": 5, "voice": "fedVoice"})
	must[json.RawMessage](t, s, "getFile", args{"file_id": "fedVoice"})
}

// TestUpload_NamesAsLibrariesWriteThem: without quotes, with blanks and letters of
// all countries, empty: a file all the same.
func TestUpload_NamesAsLibrariesWriteThem(t *testing.T) {
	for _, c := range []struct{ filename, want string }{
		{"my photo.jpg", "my photo.jpg"}, {"фото (1).jpg", "фото (1).jpg"}, {`"a b.txt"`, "a b.txt"}, {`""`, ""},
	} {
		s := newSim(t, telegramsim.Options{})
		body := "--b\r\nContent-Disposition:form-data;name=\"chat_id\"\r\n\r\n5\r\n" +
			"--b\r\nContent-Disposition:form-data;name=\"document\";filename=" + c.filename + "\r\n\r\ncontents\r\n--b--\r\n"
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "https://b.invalid/bot"+token+"/sendDocument", strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Content-Type", "multipart/form-data; boundary=b")
		if got, err := send(s.Transport(), r); err != nil || !got.OK {
			t.Fatalf("%s: %d %s %v", c.filename, got.Status, got.Description, err)
		}
		if files := s.Journal()[0].Files; len(files) != 1 || files[0].Name != c.want || files[0].Size != 8 {
			t.Errorf("%s: %+v", c.filename, files)
		}
	}
}
