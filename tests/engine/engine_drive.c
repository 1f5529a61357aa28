/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The local engine on a string: commands on stdin, facts on stdout as one JSON object per line. For
 * tests and measuring.
 *
 *	engine_drive FOLDER SHEPHERD
 *
 * A command is one line of words separated by tabs; "\n" in a word stands for a newline. Each is
 * answered by {"did":"COMMAND","ok":true} or with "error". Facts come in between, as the engine
 * reports them, with the wall clock in microseconds at which they were reported ("at_us").
 *
 *	adopt [ATTEMPT:COUNT]...
 *	start ATTEMPT KEY=VALUE... -- ARGV...	 keys: count nodes uid gid user job workdir checkpoint resume signal every memory
 *						 log_cap cpus gpus script env (repeats) sim array
 *	release|forget ATTEMPT
 *	warn|stop ATTEMPT GRACE_MS
 *	quit
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/check.h"
#include "engine/engine.h"
#include "engine/local/fact_file.h"

enum { WORDS_MAX = 512, ENV_MAX = 64 };

static int64_t wall_us(void)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	return now.tv_sec * INT64_C(1000000) + now.tv_nsec / 1000;
}

static void put_line(struct buf *line)
{
	/* One write: lines of several threads stay whole. */
	if (write(STDOUT_FILENO, line->data, line->size) != (ssize_t)line->size)
		_exit(3);
	buf_deinit(line);
}

static void report(void *context, const struct engine_fact *fact)
{
	struct buf line = BUF_INIT;

	(void)context;
	fact_format(&line, fact);
	line.size -= 2; /* "}\n" */
	buf_addf(&line, ",\"at_us\":%" PRId64 "}\n", wall_us());
	put_line(&line);
}

static void answer(const char *command, int result, const struct err *err)
{
	struct buf line = BUF_INIT;

	buf_addf(&line, "{\"did\":\"%s\",\"ok\":%s,\"at_us\":%" PRId64, command,
		 result < 0 ? "false" : "true", wall_us());
	if (result < 0) {
		buf_adds(&line, ",\"error\":");
		buf_add_json(&line, err->text, strlen(err->text));
	}
	buf_adds(&line, "}\n");
	put_line(&line);
}

static char *unescape(char *word)
{
	char *out = word;

	for (char *in = word; *in; in++) {
		if (in[0] == '\\' && in[1] == 'n') {
			*out++ = '\n';
			in++;
		} else {
			*out++ = *in;
		}
	}
	*out = '\0';
	return word;
}

static size_t split(char *line, char *words[WORDS_MAX])
{
	size_t count = 0;

	line[strcspn(line, "\n")] = '\0';
	for (char *at = line; at; at = strchr(at, '\t') ? strchr(at, '\t') + 1 : NULL) {
		CHECK(count < WORDS_MAX - 1);
		words[count++] = at;
	}
	for (size_t i = 1; i < count; i++)
		words[i][-1] = '\0';
	for (size_t i = 0; i < count; i++)
		unescape(words[i]);
	words[count] = NULL;
	return count;
}

static const char *option(char **words, const char *key, const char *otherwise)
{
	size_t length = strlen(key);

	for (; *words && strcmp(*words, "--") != 0; words++)
		if (strncmp(*words, key, length) == 0 && (*words)[length] == '=')
			return *words + length + 1;
	return otherwise;
}

static int64_t number(char **words, const char *key, int64_t otherwise)
{
	const char *text = option(words, key, NULL);

	return text ? strtoll(text, NULL, 10) : otherwise;
}

static struct engine_gpu_place *make_places(char **words, uint32_t count)
{
	struct engine_gpu_place *places = calloc(count ? count : 1, sizeof(*places));
	uint32_t nodes = (uint32_t)number(words, "nodes", 1),
		 per = nodes ? (count + nodes - 1) / nodes : count;

	CHECK(places);
	for (uint32_t i = 0; i < count; i++) {
		uint32_t node = i / per, first = node * per;

		places[i] = (struct engine_gpu_place){
			.rank = i,
			.gpu_mask = (uint64_t)number(words, "gpus", 0),
			.local_rank = i - first,
			.local_size = count - first < per ? count - first : per,
			.cpu_milli = number(words, "cpus", 0),
			.memory_mib = number(words, "memory", 0),
		};
		snprintf(places[i].node, sizeof(places[i].node), "node%u", node);
	}
	return places;
}

static int drive_start(struct engine *engine, char **words, struct err *err)
{
	const char *env[ENV_MAX + 1] = { NULL };
	char **argv = words;
	size_t env_count = 0;

	while (*argv && strcmp(*argv, "--") != 0)
		argv++;
	for (char **word = words; word < argv; word++)
		if (strncmp(*word, "env=", 4) == 0 && env_count < ENV_MAX)
			env[env_count++] = *word + 4;
	struct engine_start start = {
		.job = (uint64_t)number(words, "job", 1),
		.attempt = strtoull(words[1], NULL, 10),
		.uid = (uid_t)number(words, "uid", geteuid()),
		.gid = (gid_t)number(words, "gid", getegid()),
		.argv = *argv ? (const char *const *)(argv + 1) : NULL,
		.script = option(words, "script", NULL),
		.env = env,
		.workdir = option(words, "workdir", "/"),
		.checkpoint_dir = option(words, "checkpoint", NULL),
		.resume_path = option(words, "resume", NULL),
		.checkpoint_signal = (int)number(words, "signal", 0),
		.checkpoint_every_ms = number(words, "every", 0),
		.simulated_gpus = number(words, "sim", 0) != 0,
		.array_index = (uint32_t)number(words, "array", 0),
		.array_size = (uint32_t)number(words, "array", 0) ? 10 : 0,
		.place_count = (uint32_t)number(words, "count", 1),
		.log_cap_bytes = number(words, "log_cap", 0),
	};
	snprintf(start.job_name, sizeof(start.job_name), "a job");
	snprintf(start.user, sizeof(start.user), "%s", option(words, "user", "tester"));
	snprintf(start.queue, sizeof(start.queue), "default");
	snprintf(start.team, sizeof(start.team), "crew");
	struct engine_gpu_place *places = make_places(words, start.place_count);
	start.places = places;
	int result = engine_local.start(engine, &start, err);
	free(places);
	return result;
}

static int drive_adopt(struct engine *engine, char **words, struct err *err)
{
	uint64_t attempts[WORDS_MAX];
	uint32_t counts[WORDS_MAX];
	size_t count = 0;

	for (char **word = words + 1; *word; word++) {
		char *end;

		attempts[count] = strtoull(*word, &end, 10);
		counts[count++] = (uint32_t)strtoul(end + 1, NULL, 10);
	}
	return engine_local.adopt(engine, attempts, counts, NULL, count, err);
}

static int drive(struct engine *engine, char **words, size_t count, struct err *err)
{
	uint64_t attempt = count > 1 ? strtoull(words[1], NULL, 10) : 0;
	int64_t grace = count > 2 ? strtoll(words[2], NULL, 10) : 0;

	if (strcmp(words[0], "adopt") == 0)
		return drive_adopt(engine, words, err);
	if (strcmp(words[0], "start") == 0)
		return drive_start(engine, words, err);
	if (strcmp(words[0], "release") == 0)
		return engine_local.release(engine, attempt, err);
	if (strcmp(words[0], "warn") == 0)
		return engine_local.warn(engine, attempt, grace, err);
	if (strcmp(words[0], "stop") == 0)
		return engine_local.stop(engine, attempt, grace, err);
	if (strcmp(words[0], "forget") == 0) {
		engine_local.forget(engine, attempt);
		return 0;
	}
	return err_set(err, ERR_INVALID, "no such command: %s", words[0]);
}

int main(int argc, char **argv)
{
	struct engine *engine;
	struct err err = { 0 };
	char *line = NULL, *words[WORDS_MAX];
	size_t room = 0;

	if (argc != 3)
		return 2;
	struct engine_options options = { .folder = argv[1],
					  .shepherd_path = argv[2],
					  .report = report };
	int result = engine_local.open(&options, &engine, &err);
	answer("open", result, &err);
	if (result < 0)
		return 1;
	while (getline(&line, &room, stdin) > 0) {
		size_t count = split(line, words);

		if (strcmp(words[0], "quit") == 0)
			break;
		result = drive(engine, words, count, &err);
		answer(words[0], result, &err);
	}
	free(line);
	engine_local.close(engine);
	return 0;
}
