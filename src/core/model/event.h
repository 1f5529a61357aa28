/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Events: everything that happens, and every decision. A command from outside is an event that is not yet
 * admitted (seq 0): core_admit checks it against the facts, then apply makes it so.
 *
 * The kinds and fields are listed in events.def. An event's texts and lists belong to whoever made it (an
 * arena); apply copies what it keeps.
 *
 * JSON form, one object: {"actor":"alice","job":12,...}; fields that are 0, "" or empty lists are left out, so
 * that additions cost nothing. seq, time and kind stand beside it in the journal's record.
 */
#include <stdbool.h>
#include <stdint.h>
#include "base/buf.h"
#include "base/err.h"
#include "base/zone.h"

struct arena;

enum { EVENT_TEXT_MAX = 512, EVENT_LIST_MAX = 65536 };

enum event_kind {
	EVENT_NONE = 0,
#define EVENT(number, NAME, name, text, must) EVENT_##NAME = number,
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
	EVENT_KIND_LIMIT = 128 /* greater than every number */
};

#define EVENT(number, NAME, name, text, must)                                                      \
	struct event_##name {                                                                      \
		char unused_;
#define INT(f) int64_t f;
#define TEXT(f) const char *f;
#define INTS(f)                                                                                    \
	const int64_t *f;                                                                          \
	uint32_t f##_count;
#define END                                                                                        \
	}                                                                                          \
	;
#include "core/model/events.def"
#undef EVENT
#undef INT
#undef TEXT
#undef INTS
#undef END

struct event {
	uint64_t seq; /* 0 = not yet admitted */
	int64_t time_ms; /* event time; never runs backwards */
	enum event_kind kind;
	const char *actor; /* who caused it: user name, "fairlead" for decisions, "engine" */
	union {
#define EVENT(number, NAME, name, text, must) struct event_##name name;
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
};

/* What the table says of a kind; NULL for an unknown number. */
struct event_info {
	enum event_kind kind;
	const char *name;
	bool must_understand;
};
const struct event_info *event_info(uint32_t kind);
/* An event of that kind with every field 0, "" or empty. */
struct event event_make(enum event_kind kind, int64_t time_ms, const char *actor);
/* The same in place: `event` is all zeroes. */
void event_begin(struct event *event, enum event_kind kind, int64_t time_ms, const char *actor);
/* A policy-set that changes nothing: every number is -1, "as before", every text "" and every list empty. Whoever sets
 * policy begins here and fills in what it means to change, so that a field added later stays as it is. */
struct event event_policy_make(int64_t time_ms, const char *actor);
/* The clocks of a zone as a zone-set; its lists are those of `rules`. */
struct event event_zone_make(const char *name, const struct zone_rules *rules, int64_t time_ms,
			     const char *actor);
/* Appends the JSON text. */
void event_encode(const struct event *event, struct buf *out);
/* Reads it; texts and lists go into the arena. Unknown fields are passed over (a later release's), unknown kinds are
 * an error that names the number. Wrong types, sizes beyond the limits and bad JSON are errors. */
int event_decode(uint32_t kind, uint64_t seq, int64_t time_ms, const char *text, size_t size,
		 struct arena *arena, struct event *ret, struct err *err) MUST_CHECK;
/* What it is of: the first number of its kind, mostly a job, an attempt or a node; 0 = it has none. */
int64_t event_subject(const struct event *event);

/* For tests and documentation: walks the fields of a kind. type: 'i', 't' or 'l'. */
void event_fields(uint32_t kind, void *context,
		  void (*take)(void *context, const char *name, char type));
