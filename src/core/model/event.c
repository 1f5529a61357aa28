/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The codec runs over tables made from events.def: for each kind the name, type and place of every field. A
 * field's place needs the name of its struct, which the field's macro is not given; so each kind gets a
 * function in which `self` means its struct.
 */
#include "core/model/event.h"

#include <stddef.h>
#include <string.h>

#include "base/arena.h"
#include "base/check.h"
#include "base/json.h"

struct event_field {
	const char *name, *key; /* key: as it stands in a record behind another one: ,"name": */
	uint8_t key_bytes;
	char type; /* 'i' int64_t, 't' text, 'l' list of int64_t */
	uint16_t offset; /* in the kind's struct */
	uint16_t count_offset; /* lists */
};

#define EVENT(number, NAME, name, text, must)                                                      \
	static const struct event_field *fields_##name(void)                                       \
	{                                                                                          \
		typedef struct event_##name self;                                                  \
		static const struct event_field fields[] = {
#define KEY(f) #f, ",\"" #f "\":", sizeof(",\"" #f "\":") - 1
#define INT(f) { KEY(f), 'i', offsetof(self, f), 0 },
#define TEXT(f) { KEY(f), 't', offsetof(self, f), 0 },
#define INTS(f) { KEY(f), 'l', offsetof(self, f), offsetof(self, f##_count) },
#define END                                                                                        \
			{ NULL, NULL, 0, 0, sizeof(self), 0 } \
		}                                                                                  \
	;                                                                                          \
	return fields;                                                                             \
	}
#include "core/model/events.def"
#undef EVENT
#undef KEY
#undef INT
#undef TEXT
#undef INTS
#undef END

struct event_kind_row {
	struct event_info info;
	const struct event_field *(*fields)(void);
};

static const struct event_kind_row event_kinds[EVENT_KIND_LIMIT] = {
#define EVENT(number, NAME, name, text, must)                                                      \
	[number] = { { EVENT_##NAME, text, must }, fields_##name },
#define INT(f)
#define TEXT(f)
#define INTS(f)
#define END
#include "core/model/events.def"
#undef EVENT
#undef INT
#undef TEXT
#undef INTS
#undef END
};

/* All kinds' structs lie at the same place, in the union. */
enum { EVENT_BODY = offsetof(struct event, daemon_started) };

static const struct event_kind_row *kind_row(uint32_t kind)
{
	if (kind >= EVENT_KIND_LIMIT || !event_kinds[kind].info.name)
		return NULL;
	return &event_kinds[kind];
}

const struct event_info *event_info(uint32_t kind)
{
	const struct event_kind_row *row = kind_row(kind);

	return row ? &row->info : NULL;
}

int64_t event_subject(const struct event *event)
{
	const struct event_kind_row *row = kind_row(event->kind);

	for (const struct event_field *field = row ? row->fields() : NULL; field && field->name;
	     field++)
		if (field->type == 'i')
			return *(const int64_t *)((const char *)event + EVENT_BODY + field->offset);
	return 0;
}

void event_fields(uint32_t kind, void *context,
		  void (*take)(void *context, const char *name, char type))
{
	const struct event_kind_row *row = kind_row(kind);

	if (!row)
		return;
	for (const struct event_field *field = row->fields(); field->name; field++)
		take(context, field->name, field->type);
}

void event_begin(struct event *event, enum event_kind kind, int64_t time_ms, const char *actor)
{
	const struct event_kind_row *row = kind_row(kind);

	CHECK(row != NULL);
	event->kind = kind;
	event->time_ms = time_ms;
	event->actor = actor ? actor : "";
	for (const struct event_field *field = row->fields(); field->name; field++)
		if (field->type == 't')
			*(const char **)((char *)event + EVENT_BODY + field->offset) = "";
}

struct event event_make(enum event_kind kind, int64_t time_ms, const char *actor)
{
	struct event event;

	memset(&event, 0, sizeof(event));
	event_begin(&event, kind, time_ms, actor);
	return event;
}

struct event event_policy_make(int64_t time_ms, const char *actor)
{
	struct event event = event_make(EVENT_POLICY_SET, time_ms, actor);

	for (const struct event_field *field = fields_policy_set(); field->name; field++)
		if (field->type == 'i')
			*(int64_t *)((char *)&event + EVENT_BODY + field->offset) = -1;
	return event;
}

struct event event_zone_make(const char *name, const struct zone_rules *rules, int64_t time_ms,
			     const char *actor)
{
	struct event event = event_make(EVENT_ZONE_SET, time_ms, actor);
	struct event_zone_set *e = &event.zone_set;

	e->name = name;
	e->ahead_ms = rules->before_ms;
	e->at_ms = rules->at_ms;
	e->then_ms = rules->ahead_ms;
	e->at_ms_count = e->then_ms_count = rules->count;
	return event;
}

static void add_key(struct buf *out, size_t first, const struct event_field *field)
{
	size_t comma = out->size == first; /* none in front of the first */

	buf_add(out, field->key + comma, field->key_bytes - comma);
}

static void encode_list(struct buf *out, const int64_t *list, uint32_t count)
{
	buf_addc(out, '[');
	for (uint32_t i = 0; i < count; i++) {
		if (i)
			buf_addc(out, ',');
		buf_addi(out, list[i]);
	}
	buf_addc(out, ']');
}

static void encode_field(struct buf *out, size_t first, const struct event_field *field,
			 const char *body)
{
	const char *at = body + field->offset;
	int64_t number;
	const char *text;
	const int64_t *list;
	uint32_t count;

	switch (field->type) {
	case 'i':
		memcpy(&number, at, sizeof(number));
		if (!number)
			return;
		add_key(out, first, field);
		buf_addi(out, number);
		return;
	case 't':
		memcpy(&text, at, sizeof(text));
		if (!text || !*text)
			return;
		add_key(out, first, field);
		buf_add_json(out, text, strlen(text));
		return;
	case 'l':
		memcpy(&list, at, sizeof(list));
		memcpy(&count, body + field->count_offset, sizeof(count));
		if (!count)
			return;
		add_key(out, first, field);
		encode_list(out, list, count);
		return;
	default: UNREACHABLE();
	}
}

void event_encode(const struct event *event, struct buf *out)
{
	const struct event_kind_row *row = kind_row(event->kind);
	size_t first;

	CHECK(row != NULL);
	buf_addc(out, '{');
	first = out->size;
	if (event->actor && *event->actor) {
		buf_adds(out, "\"actor\":");
		buf_add_json(out, event->actor, strlen(event->actor));
	}
	for (const struct event_field *field = row->fields(); field->name; field++)
		encode_field(out, first, field, (const char *)event + EVENT_BODY);
	buf_addc(out, '}');
}

static const char *decode_text(struct json_reader *r, struct arena *arena)
{
	struct json_slice slice;
	const char *text;

	pull_string(r, &slice);
	/* The longest escape of one byte has six. Checked before the arena is asked. */
	if (slice.size > (size_t)EVENT_TEXT_MAX * 6) {
		pull_fail(r, "this text is longer than its limit of 512 bytes");
		return "";
	}
	text = pull_text(r, &slice, arena);
	if (strlen(text) > EVENT_TEXT_MAX) {
		pull_fail(r, "this text is longer than its limit of 512 bytes");
		return "";
	}
	return text;
}

/* Counts on a copy of the reader first, so that the list is allocated once and within its limit. */
static const int64_t *decode_list(struct json_reader *r, struct arena *arena, uint32_t *ret_count)
{
	struct json_reader counter = *r;
	uint32_t count = 0, at = 0;
	int64_t *list;

	*ret_count = 0;
	pull_array(&counter);
	while (pull_element(&counter)) {
		if (++count > EVENT_LIST_MAX) {
			pull_fail(r, "this list is longer than its limit of 65536 numbers");
			return NULL;
		}
		pull_skip(&counter);
	}
	pull_array(r);
	if (!count || r->problem) {
		pull_element(r);
		return NULL;
	}
	list = arena_new_array(arena, int64_t, count);
	while (pull_element(r) && at < count)
		pull_int(r, &list[at++]);
	*ret_count = at;
	return list;
}

static void decode_field(struct json_reader *r, const struct event_field *field,
			 struct arena *arena, char *body)
{
	char *at = body + field->offset;
	int64_t number;
	const char *text;
	const int64_t *list;
	uint32_t count;

	switch (field->type) {
	case 'i':
		pull_int(r, &number);
		memcpy(at, &number, sizeof(number));
		return;
	case 't':
		text = decode_text(r, arena);
		memcpy(at, &text, sizeof(text));
		return;
	case 'l':
		list = decode_list(r, arena, &count);
		memcpy(at, &list, sizeof(list));
		memcpy(body + field->count_offset, &count, sizeof(count));
		return;
	default: UNREACHABLE();
	}
}

/* The field of that name. Fields come in the table's order from our own encoder, so the search starts behind the last one. */
static const struct event_field *field_find(const struct event_field *fields,
					    const struct event_field *next,
					    const struct json_slice *key)
{
	for (const struct event_field *field = next; field->name; field++)
		if (pull_key_is(key, field->name))
			return field;
	for (const struct event_field *field = fields; field < next; field++)
		if (pull_key_is(key, field->name))
			return field;
	return NULL;
}

int event_decode(uint32_t kind, uint64_t seq, int64_t time_ms, const char *text, size_t size,
		 struct arena *arena, struct event *ret, struct err *err)
{
	const struct event_kind_row *row = kind_row(kind);
	const struct event_field *fields, *next, *field;
	struct json_reader r;
	struct json_slice key;
	struct event event;

	if (!row)
		return err_set(
			err, ERR_UNSUPPORTED,
			"record %llu is of kind %u, which this release does not know: use the release that wrote it or a later one",
			(unsigned long long)seq, kind);
	event = event_make(row->info.kind, time_ms, "");
	event.seq = seq;
	fields = next = row->fields();
	pull_init(&r, text, size);
	pull_object(&r);
	while (pull_member(&r, &key)) {
		field = field_find(fields, next, &key);
		if (field) {
			decode_field(&r, field, arena, (char *)&event + EVENT_BODY);
			next = field + 1;
		} else if (pull_key_is(&key, "actor")) {
			event.actor = decode_text(&r, arena);
		} else {
			pull_skip(&r);
		}
	}
	if (pull_finish(&r, err) < 0)
		return err_prefix(err, "record %llu (%s)", (unsigned long long)seq, row->info.name);
	*ret = event;
	return 0;
}
