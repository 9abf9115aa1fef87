package botapi

import (
	"strings"
	"testing"
)

// FuzzDisposition reads any header of a part: a name in quotes always comes
// through, and no file name leads to another folder.
func FuzzDisposition(f *testing.F) {
	for _, s := range []string{"p.jpg", "my photo.jpg", "ф;name=x.jpg", `a"b`, "../../etc/passwd", ""} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, name string) {
		d := ParseDisposition(`form-data;name="field";filename=` + name)
		if !d.IsFile || strings.Contains(d.File, "/") {
			t.Errorf("%q: %+v", name, d)
		}
		if d.Name != "field" {
			t.Errorf("%q: the field is %q", name, d.Name)
		}
	})
}
