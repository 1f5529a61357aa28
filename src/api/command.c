/* SPDX-License-Identifier: Apache-2.0 */
/* Commands: an event and its body, copied whole into one arena, so that they can travel between threads. */
#include <stdlib.h>
#include <string.h>
#include "api/backend.h"
#include "base/arena.h"
#include "base/check.h"

enum { COMMAND_CAP = 64 << 20 };

static const char *copy_text(struct arena *arena, const char *text)
{
	return text && *text ? arena_strdup(arena, text) : "";
}

static const int64_t *copy_list(struct arena *arena, const int64_t *list, uint32_t count)
{
	int64_t *copy;

	if (!count)
		return NULL;
	copy = arena_new_array(arena, int64_t, count);
	memcpy(copy, list, count * sizeof *copy);
	return copy;
}

/* Every text and list of every kind, by the table of events. */
static void event_own(struct event *event, struct arena *arena)
{
	switch ((int)event->kind) {
#define EVENT(number, NAME, name, text, must)                                                      \
	case EVENT_##NAME: {                                                                       \
		struct event_##name *e = &event->name;                                             \
		(void)e;
#define INT(f)
#define TEXT(f) e->f = copy_text(arena, e->f);
#define INTS(f) e->f = copy_list(arena, e->f, e->f##_count);
#define END                                                                                        \
	break;                                                                                     \
	}
#include "core/model/events.def"
#undef EVENT
#undef INT
#undef TEXT
#undef INTS
#undef END
	default: UNREACHABLE();
	}
	event->actor = copy_text(arena, event->actor);
}

struct command *command_create(const struct event *event, const void *body, size_t body_size)
{
	struct arena arena;
	struct command *command;
	struct arena *home;

	arena_init(&arena, COMMAND_CAP);
	home = arena_new(&arena, struct arena);
	command = arena_new(&arena, struct command);
	*home = arena; /* from here on the arena lives in itself */
	command->arena = home;
	command->event = *event;
	event_own(&command->event, home);
	if (body) {
		char *copy = arena_alloc(home, body_size + 1);

		memcpy(copy, body, body_size);
		command->body = copy;
		command->body_size = body_size;
	}
	return command;
}

void command_destroy(struct command *command)
{
	struct arena arena;

	if (!command)
		return;
	/* A job's body may hold secrets: nothing of it stays behind in freed memory. */
	if (command->body)
		explicit_bzero((void *)(uintptr_t)command->body, command->body_size);
	arena = *command->arena;
	arena_deinit(&arena);
}
