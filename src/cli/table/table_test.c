/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/table/table.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "base/check.h"
#include "cli/table/args.h"
#include "cli/table/help.h"

static void every_command_says_what_it_does(void **state)
{
	(void)state;
	for (size_t i = 0; i < command_count; i++) {
		const struct command *command = commands[i];
		size_t length = strlen(command->summary);

		assert_non_null(command->run);
		assert_non_null(command->arguments);
		if (!length || command->summary[length - 1] == '.' || length > 100)
			fail_msg("%s: its summary is one line without a full stop", command->name);
		if (!command->hidden && command->flags && !command->examples)
			fail_msg("%s has flags and no example", command->name);
		if (command->least && !command->arguments[0])
			fail_msg("%s needs arguments and does not name them", command->name);
	}
}

static void no_two_commands_or_flags_have_one_name(void **state)
{
	const struct flag *flags[FLAGS_MAX];

	(void)state;
	for (size_t i = 0; i < command_count; i++) {
		size_t count = command_flags(commands[i], flags);

		assert_ptr_equal(command_find(commands[i]->name), commands[i]);
		for (size_t a = 0; a < count; a++)
			for (size_t b = 0; b < a; b++)
				if (strcmp(flags[a]->name, flags[b]->name) == 0 ||
				    (flags[a]->letter && flags[a]->letter == flags[b]->letter))
					fail_msg("%s: --%s and --%s", commands[i]->name,
						 flags[a]->name, flags[b]->name);
	}
}

/* Who learns a letter with one command may use it with another. */
static void a_letter_is_one_flag_in_all_commands(void **state)
{
	const struct flag *flags[FLAGS_MAX];
	const char *names[128] = { NULL };

	(void)state;
	for (size_t i = 0; i < command_count; i++) {
		size_t count = command_flags(commands[i], flags);

		for (size_t k = 0; k < count; k++) {
			const char **name = &names[(unsigned char)flags[k]->letter & 127];

			if (!flags[k]->letter)
				continue;
			if (*name && strcmp(*name, flags[k]->name) != 0)
				fail_msg("%s: -%c is --%s, and --%s elsewhere", commands[i]->name,
					 flags[k]->letter, flags[k]->name, *name);
			*name = flags[k]->name;
		}
	}
}

static void every_flag_is_documented(void **state)
{
	const struct flag *flags[FLAGS_MAX];

	(void)state;
	for (size_t i = 0; i < command_count; i++) {
		size_t count = command_flags(commands[i], flags);

		for (size_t k = 0; k < count; k++) {
			size_t length = strlen(flags[k]->doc);

			if (length < 8 || flags[k]->doc[length - 1] == '.')
				fail_msg("%s --%s: \"%s\"", commands[i]->name, flags[k]->name,
					 flags[k]->doc);
		}
	}
}

/* Splits a line at blanks, honouring double quotes; stops at a pipe. */
static int split(char *line, const char **words, int most)
{
	int count = 0;

	for (char *at = line; *at && count < most;) {
		at += strspn(at, " ");
		if (!*at || strchr("|)>", *at))
			break;
		if (*at == '"') {
			words[count++] = ++at;
			at = strchr(at, '"');
			assert_non_null(at);
		} else {
			words[count++] = at;
			at += strcspn(at, " )|");
		}
		if (*at)
			*at++ = '\0';
	}
	return count;
}

static void try_example(struct buf *out, const char *line, size_t length, const char *what,
			size_t what_length)
{
	const char *start = memmem(line, length, "fairlead ", 9), *words[64], *name;
	struct arena arena;
	struct invocation in = { .arena = &arena };
	struct err err = { 0 };
	char text[512];
	int count, used = 1;

	(void)out, (void)what, (void)what_length;
	assert_non_null(start);
	snprintf(text, sizeof(text), "%.*s", (int)(length - (size_t)(start - line)) - 9, start + 9);
	count = split(text, words, 64);
	assert_true(count > 0);
	arena_init(&arena, 16 << 20);
	name = count > 1 ? arena_printf(&arena, "%s %s", words[0], words[1]) : words[0];
	in.command = command_find(name);
	if (in.command && count > 1)
		used = 2;
	else
		in.command = command_find(words[0]);
	if (!in.command || args_parse(&in, words + used, count - used, &err) < 0)
		fail_msg("%.*s: %s", (int)length, line, in.command ? err.text : "no such command");
	arena_deinit(&arena);
}

static void every_example_parses(void **state)
{
	size_t examples = 0;

	(void)state;
	for (size_t i = 0; i < command_count; i++) {
		help_examples(commands[i], try_example, NULL);
		examples += commands[i]->examples != NULL;
	}
	assert_true(examples > 25);
}

static const char *const routes[] = {
#define ROUTE(id, method, path, summary, deed, least, flags, body, response) #method " " path,
#define QUERY(name, type, doc)
#define END
#include "api/routes.def"
#undef ROUTE
#undef QUERY
#undef END
};

static void every_route_named_exists(void **state)
{
	bool found;

	(void)state;
	for (size_t i = 0; i < command_count; i++) {
		found = !commands[i]->route;
		for (size_t k = 0; k < ARRAY_SIZE(routes) && !found; k++)
			found = strcmp(routes[k], commands[i]->route) == 0;
		if (!found)
			fail_msg("%s: the API has no %s", commands[i]->name, commands[i]->route);
	}
}

/* Those that other commands use, or programs. */
static const char *const without_command[] = {
	"POST /api/v1/snapshots", /* run and submit send them first */
	"PUT /api/v1/snapshots/files/{digest}",
	"GET /healthz",
	"GET /metrics",
	"GET /api/v1/version",
	"GET /api/v1/status",
	"GET /api/v1/openapi.json",
	"GET /api/v1/jobs/{id}/spec",
	"GET /api/v1/jobs/{id}/history",
	"POST /api/v1/job-actions", /* cancel, hold, release and priority of many */
	"POST /api/v1/plan",
	"GET /api/v1/defrag",
	"GET /api/v1/pods/{namespace}/{pod}", /* explain */
};

static void every_route_has_a_command(void **state)
{
	bool found;

	(void)state;
	for (size_t k = 0; k < ARRAY_SIZE(routes); k++) {
		found = false;
		for (size_t i = 0; i < command_count && !found; i++)
			found = commands[i]->route && strcmp(routes[k], commands[i]->route) == 0;
		for (size_t i = 0; i < ARRAY_SIZE(without_command) && !found; i++)
			found = strcmp(routes[k], without_command[i]) == 0;
		if (!found)
			fail_msg("no command calls %s", routes[k]);
	}
}

static void man_pages_hold_every_command_and_flag(void **state)
{
	AUTO_BUF man = BUF_INIT;

	(void)state;
	help_man(NULL, &man);
	assert_non_null(strstr(man.data, ".TH \"FAIRLEAD\" 1"));
	for (size_t i = 0; i < command_count; i++)
		if (!commands[i]->hidden && !strchr(commands[i]->name, ' '))
			assert_non_null(strstr(man.data, commands[i]->name));
	buf_clear(&man);
	help_man(command_find("run"), &man);
	assert_non_null(strstr(man.data, "\\-\\-checkpoint\\-grace DURATION"));
	for (const char *at = man.data; (at = strchr(at, '\n')); at++) /* no accidental requests */
		assert_true(at[1] != '\'');
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_command_says_what_it_does),
		cmocka_unit_test(no_two_commands_or_flags_have_one_name),
		cmocka_unit_test(a_letter_is_one_flag_in_all_commands),
		cmocka_unit_test(every_flag_is_documented),
		cmocka_unit_test(every_example_parses),
		cmocka_unit_test(every_route_named_exists),
		cmocka_unit_test(every_route_has_a_command),
		cmocka_unit_test(man_pages_hold_every_command_and_flag),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
