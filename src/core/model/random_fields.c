/* SPDX-License-Identifier: Apache-2.0 */
/* Events for the codec: every field filled at random, fitting or not. */
#include <string.h>

#include "base/arena.h"
#include "base/check.h"
#include "core/model/random_events.h"

static const char *random_text(struct random *r, struct arena *arena)
{
	static const char *const pieces[] = { "a",
					      "Z",
					      "\"",
					      "\\",
					      "/",
					      "\n",
					      "\t",
					      "\x01",
					      "\x7f",
					      "\xc3\xa4",
					      "\xe2\x82\xac",
					      "\xf0\x9f\x92\xa1",
					      " ",
					      "{",
					      "]",
					      ",",
					      "longer piece" };
	uint32_t count = random_below(r, 3) ? random_below(r, 6) : 0;
	char text[128] = "";
	size_t size = 0;

	for (uint32_t i = 0; i < count; i++) {
		const char *piece = pieces[random_below(r, ARRAY_SIZE(pieces))];

		memcpy(text + size, piece, strlen(piece));
		size += strlen(piece);
	}
	return arena_strndup(arena, text, size);
}

static int64_t random_number(struct random *r)
{
	uint32_t how = random_below(r, 3);

	return how == 0   ? random_wild(r)
	       : how == 1 ? (int64_t)random_next(r)
			  : random_below(r, 100);
}

struct event random_fields(struct random *r, enum event_kind kind, struct arena *arena)
{
	struct event e = event_make(kind, (int64_t)(random_next(r) >> 8), "");
	int64_t *list;

	e.actor = random_text(r, arena);
	e.seq = random_next(r);
	switch (kind) {
	case EVENT_NONE:
	case EVENT_KIND_LIMIT: break;
#define EVENT(number, NAME, name, text, must)                                                      \
	case EVENT_##NAME: {                                                                       \
		struct event_##name *self = &e.name;                                               \
		(void)self;
#define INT(f) self->f = random_number(r);
#define TEXT(f) self->f = random_text(r, arena);
#define INTS(f)                                                                                    \
	self->f##_count = random_below(r, 5);                                                      \
	list = arena_new_array(arena, int64_t, self->f##_count + 1u);                              \
	for (uint32_t i = 0; i < self->f##_count; i++)                                             \
		list[i] = random_number(r);                                                        \
	self->f = list;
#define END                                                                                        \
	break;                                                                                     \
	}
#include "core/model/events.def"
#undef EVENT
#undef INT
#undef TEXT
#undef INTS
#undef END
	}
	return e;
}
