package demo

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// ErrTryAgain says that the handler has had a bad moment: the program is to end
// with EX_TEMPFAIL.
var ErrTryAgain = errors.New("not now")

// Handle is the bot's own code: it reads an update and prints the calls that it
// wants made, one a line. One update in forty makes it fail at its first
// attempt, after it has printed: what a failed run printed must not go out.
func Handle(stdin io.Reader, stdout io.Writer, attempt string) error {
	var update struct {
		ID      int64 `json:"update_id"`
		Message struct {
			Chat struct {
				ID int64 `json:"id"`
			} `json:"chat"`
		} `json:"message"`
	}
	if err := json.NewDecoder(stdin).Decode(&update); err != nil {
		return fmt.Errorf("reading the update: %w", err)
	}
	lines := json.NewEncoder(stdout)
	for _, m := range Replies(update.ID, update.Message.Chat.ID) {
		err := lines.Encode(struct {
			Method string `json:"method"`
			ChatID int64  `json:"chat_id"`
			Text   string `json:"text"`
		}{"sendMessage", m.ChatID, m.Text})
		if err != nil {
			return fmt.Errorf("printing a call: %w", err)
		}
	}
	if update.ID%shakyEvery == 0 && attempt == "1" {
		return ErrTryAgain
	}
	return nil
}
