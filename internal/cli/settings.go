package cli

import (
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"time"

	"github.com/tgspool/tgspool/internal/config"
)

// settings lists every setting in use as "path = value", along the tags that
// the decoder reads.
func settings(cfg *config.Config) []string {
	var lines []string
	show := func(path string, v any) { lines = append(lines, path+" = "+safe(fmt.Sprint(v))) }
	v := reflect.ValueOf(cfg).Elem()
	for i := range v.NumField() {
		key := v.Type().Field(i).Tag.Get("toml")
		if key == "" || key == "bots" {
			continue
		}
		walk(key, v.Field(i), v.Type().Field(i).Tag, show)
	}
	for _, bot := range cfg.Bots {
		walk("bots."+bot.Name, reflect.ValueOf(bot), "", show)
	}
	return lines
}

// walk shows a value and all below it.
func walk(path string, v reflect.Value, tag reflect.StructTag, show func(string, any)) {
	if tag.Get("secret") == "true" && !v.IsZero() {
		show(path, "(secret)")
		return
	}
	if d, ok := v.Interface().(time.Duration); ok {
		show(path, strconv.Quote(d.String()))
		return
	}
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			field := v.Type().Field(i)
			if key := field.Tag.Get("toml"); key != "" && field.IsExported() {
				walk(path+"."+key, v.Field(i), field.Tag, show)
			}
		}
	case reflect.Map:
		keys := v.MapKeys()
		slices.SortFunc(keys, func(x, y reflect.Value) int { return cmpText(x, y) })
		for _, key := range keys {
			walk(fmt.Sprintf("%s.%v", path, key), v.MapIndex(key), "", show)
		}
	case reflect.Slice:
		if v.Type().Elem().Kind() == reflect.Struct {
			for i := range v.Len() {
				walk(path+"."+strconv.Itoa(i), v.Index(i), "", show)
			}
			return
		}
		list := make([]string, v.Len())
		for i := range list {
			list[i] = fmt.Sprintf("%q", fmt.Sprint(v.Index(i)))
		}
		show(path, list)
	case reflect.Pointer:
		if v.IsNil() {
			return
		}
		walk(path, v.Elem(), tag, show)
	case reflect.String:
		show(path, strconv.Quote(v.String()))
	default:
		show(path, v.Interface())
	}
}

func cmpText(x, y reflect.Value) int {
	a, b := fmt.Sprint(x), fmt.Sprint(y)
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	}
	return 0
}
