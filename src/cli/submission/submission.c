/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/submission/submission.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "api/jobfile/jobfile.h"
#include "base/check.h"
#include "base/parse.h"
#include "cli/submission/folder.h"
#include "cli/submission/git_state.h"
#include "cli/output/problem.h"

/* Files */

/* Reads a whole file; one byte more than limit is too large. */
static int read_all(int fd, const char *what, size_t limit, struct buf *out, struct err *err)
{
	char part[65536];
	ssize_t got;

	while ((got = read(fd, part, sizeof(part))) != 0) {
		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			return err_errno(err, ERR_IO, errno, "%s can't be read", what);
		if (out->size + (size_t)got > limit)
			return err_set(err, ERR_TOO_LARGE,
				       "%s is larger than its limit of %zu bytes", what, limit);
		buf_add(out, part, (size_t)got);
	}
	return 0;
}

int file_read_whole(const char *path, const char *what, size_t limit, struct buf *out,
		    struct err *err)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC), rc;

	if (fd < 0)
		return err_errno(err, errno == ENOENT ? ERR_NOT_FOUND : ERR_IO, errno,
				 "%s can't be opened", what);
	rc = read_all(fd, what, limit, out, err);
	close(fd);
	return rc;
}

int submission_read(const struct invocation *in, const char *path, struct submission *ret,
		    struct err *err)
{
	bool standard = strcmp(path, "-") == 0;
	const char *file = standard ? "standard input" : path;
	AUTO_BUF text = BUF_INIT;
	char *kept;
	int rc;

	if (standard)
		rc = read_all(STDIN_FILENO, file, CONF_BYTES_MAX, &text, err);
	else
		rc = file_read_whole(path, arena_printf(in->arena, "job file \"%.200s\"", path),
				     CONF_BYTES_MAX, &text, err);
	if (rc < 0)
		return rc;
	kept = arena_strndup(in->arena, buf_text(&text), text.size);
	problem_source(file, kept, text.size);
	*ret = (struct submission){ .file = file, .text = kept };
	return jobfile_read_text(file, kept, text.size, in->arena, &ret->document, err);
}

/* Trees */

static struct conf *make(struct arena *arena, enum conf_type type, const char *key, int line)
{
	struct conf *conf = arena_new(arena, struct conf);

	conf->type = type;
	conf->key = key;
	conf->line = conf->key_line = line;
	return conf;
}

static struct conf *make_text(struct arena *arena, const char *key, const char *text, bool quoted,
			      int line)
{
	struct conf *conf = make(arena, CONF_SCALAR, key, line);

	conf->text = text;
	conf->quoted = quoted;
	return conf;
}

static void append(struct arena *arena, struct conf *parent, struct conf *child)
{
	struct conf **items = arena_new_array(arena, struct conf *, parent->count + 1);

	if (parent->count)
		memcpy(items, parent->items, parent->count * sizeof(*items));
	items[parent->count++] = child;
	parent->items = items;
}

static struct conf *find(const struct conf *map, const char *key)
{
	for (size_t i = 0; map->type == CONF_MAP && i < map->count; i++)
		if (strcmp(map->items[i]->key, key) == 0)
			return map->items[i];
	return NULL;
}

/* From flags */

/* Flags that are fields of the job file: what the flag is called and where its value goes. */
static const struct {
	const char *flag, *parent, *field;
} targets[] = {
	{ "name", NULL, "name" },
	{ "queue", NULL, "queue" },
	{ "team", NULL, "team" },
	{ "project", NULL, "project" },
	{ "kind", NULL, "kind" },
	{ "tier", NULL, "tier" },
	{ "priority", NULL, "priority" },
	{ "tasks", NULL, "tasks" },
	{ "cpus", NULL, "cpus" },
	{ "memory", NULL, "memory" },
	{ "workdir", NULL, "workdir" },
	{ "snapshot", NULL, "snapshot" },
	{ "image", NULL, "image" },
	{ "checkpoint", "checkpoint", "how" },
	{ "checkpoint-signal", "checkpoint", "signal" },
	{ "checkpoint-every", "checkpoint", "every" },
	{ "checkpoint-cost", "checkpoint", "cost" },
	{ "checkpoint-grace", "checkpoint", "grace" },
	{ "checkpoint-path", "checkpoint", "path" },
	{ "restart-cost", "checkpoint", "restart_cost" },
	{ "limit", NULL, "limit" },
	{ "estimate", NULL, "estimate" },
	{ "deadline", NULL, "deadline" },
	{ "capacity", NULL, "capacity" },
	{ "efficiency", NULL, "efficiency" },
	{ "retries", NULL, "retries" },
	{ "array", NULL, "array" },
	{ "require", "topology", "require" },
	{ "prefer", "topology", "prefer" },
	{ "max-slowdown", "topology", "max_slowdown" },
	{ "apart-level", NULL, "apart_level" },
	{ "window", NULL, "window" },
	{ "window-end", NULL, "window_end" },
	{ "spread", NULL, "spread" },
	{ "align", NULL, "align" },
};

const struct flag submission_flags[] = {
	{ "name", 'n', "NAME", "what you call the job; default: the program's name", false },
	{ "gpus", 'g', "N",
	  "GPUs for each task: 2; a part of one: 0.5, 1/7 or, by its memory, 2000MiB; 0 is work for the CPU alone; default 1",
	  false },
	{ "tasks", 't', "N",
	  "how many processes start together, or none does: 4, or 2..4; default 1", false },
	{ "queue", 'q', "NAME",
	  "the queue it waits in; default: the team's, if it has exactly one, otherwise yours",
	  false },
	{ "tier", 0, "critical|standard|best-effort",
	  "what may happen to it for others; default standard", false },
	{ "priority", 'p', "N", "order inside queue and tier, -1000 to 1000; the higher one first",
	  false },
	{ "model", 'm', "NAME",
	  "an accepted GPU model: H100-80GB, or H100 while only one model is called so", true },
	{ "gpu-memory", 0, "SIZE", "the least memory a GPU must have: 40GiB", false },
	{ "cpus", 'c', "N", "CPUs for each task, also 0.5", false },
	{ "memory", 0, "SIZE", "memory of the machine for each task: 512MiB, 64G", false },
	{ "env", 'e', "NAME=VALUE",
	  "a variable for the tasks; NAME alone takes the value from here", true },
	{ "secret", 0, "NAME=FILE", "a variable whose value is read from a file and never shown",
	  true },
	{ "workdir", 'C', "DIR", "the folder the tasks start in; default: the current one", false },
	{ "snapshot", 0, "DIR",
	  "run in a copy of DIR (. is this folder) as it is now, without what .gitignore and .fairleadignore name",
	  false },
	{ "image", 0, "NAME", "the container image of its pods, on a cluster", false },
	{ "limit", 'l', "DURATION",
	  "the longest it may run: 90s, 1h30m, 7d, 01:30:00; then it is stopped", false },
	{ "estimate", 0, "DURATION", "how long you expect it to run", false },
	{ "deadline", 0, "DURATION|TIME",
	  "when it should have ended: 36h from now, or 2030-01-31T08:00Z", false },
	{ "capacity", 0, "on-demand|spot|any",
	  "nodes that it may use; with any and a deadline Fairlead chooses, and the deadline comes first",
	  false },
	{ "efficiency", 0, "PERCENT", "how much of its GPUs' time is of use, as you know it",
	  false },
	{ "checkpoint", 0, "signal|report|none", "how it hears that its work is to be saved",
	  false },
	{ "checkpoint-signal", 0, "USR1|USR2|HUP|INT|QUIT|TERM|ALRM", "that signal; default USR1",
	  false },
	{ "checkpoint-every", 0, "DURATION|auto", "how often it is asked to save its work", false },
	{ "checkpoint-cost", 0, "DURATION", "what saving takes, for --checkpoint-every auto",
	  false },
	{ "checkpoint-path", 0, "DIR", "the folder of its checkpoints", false },
	{ "checkpoint-grace", 0, "DURATION", "how long saving may take when it has to make room",
	  false },
	{ "restart-cost", 0, "DURATION", "what a restart costs besides the work lost", false },
	{ "retries", 0, "N",
	  "how often it is started again after a failure of its own, 0 to 100; default 0", false },
	{ "after", 0, "ID", "a job, or all jobs of an array, that must have succeeded before",
	  true },
	{ "array", 0, "N[%LIMIT]",
	  "so many equal jobs, 10000 at most, numbered from 0 in FAIRLEAD_ARRAY_INDEX; LIMIT at once",
	  false },
	{ "hold", 0, NULL, "keep it waiting until `fairlead release`", false },
	{ "kind", 0, "training|batch", "keep tasks close together, or fill gaps; default training",
	  false },
	{ "team", 0, "NAME", "the team it counts for", false },
	{ "project", 0, "NAME", "a label by which use can be told apart", false },
	{ "require", 0, "LEVEL", "all tasks inside one place of this level: nvlink, node, rack",
	  false },
	{ "prefer", 0, "LEVEL", "the same as a wish", false },
	{ "max-slowdown", 0, "PERCENT",
	  "wait rather than start where a step is predicted to take so much longer than on the best place: 20%",
	  false },
	{ "label", 0, "KEY=VALUE", "a label of the job, by which others may keep away from it",
	  true },
	{ "apart-from", 0, "KEY=VALUE", "on no node where another job with this label runs", true },
	{ "apart-level", 0, "LEVEL", "the same by a wider level than node: rack", false },
	{ "apart-prefer", 0, NULL, "starts beside them before it waits", false },
	{ "window", 0, "CALENDAR",
	  "runs only in these hours, is stopped when they end and goes on when they begin: \"mon-fri 20:00-08:00, sat-sun\"",
	  false },
	{ "window-end", 0, "stop|finish", "finish: what runs when the hours end goes on", false },
	{ "spread", 0, "LEVEL", "no two tasks in one place of this level: node, rack", false },
	{ "align", 0, "numa|nic",
	  "GPUs and processors of each task on one NUMA node, nic: with a network card", false },
	{ "dataset", 0, "NAME", "a data set it reads: it would rather be where that is kept",
	  true },
	{ "mix-models", 0, NULL, "its tasks may have GPUs of several models", false },
	{ "no-preempt", 0, NULL, "never stop others for it", false },
	{ 0 },
};

const struct flag shell_env_flags[] = {
	{ "env-all", 0, NULL,
	  "pass all variables of this shell to the tasks; default: PATH, VIRTUAL_ENV, CONDA_*, LD_LIBRARY_PATH and PYTHONPATH",
	  false },
	{ "env-none", 0, NULL, "pass no variable of this shell that isn't named", false },
	{ 0 },
};

struct builder {
	const struct invocation *in;
	struct conf *document;
	const char **flags; /* by line */
	size_t lines;
	bool changes; /* of a job that is there */
};

/* A new line of the document, remembered with the flag it comes from. */
static int next_line(struct builder *b, const char *flag)
{
	b->flags[b->lines++] = flag;
	return (int)b->lines;
}

/* The map or list a field belongs to, made on first use. */
static struct conf *container(struct builder *b, const char *key, enum conf_type type, int line)
{
	struct conf *conf = find(b->document, key);

	if (!conf) {
		conf = make(b->in->arena, type, key, line);
		append(b->in->arena, b->document, conf);
	}
	return conf;
}

static void add_fields(struct builder *b)
{
	for (size_t i = 0; i < ARRAY_SIZE(targets); i++) {
		const char *text = arg_flag(b->in, targets[i].flag);
		struct conf *parent = b->document;
		int line;

		if (!text)
			continue;
		line = next_line(b, targets[i].flag);
		if (targets[i].parent)
			parent = container(b, targets[i].parent, CONF_MAP, line);
		append(b->in->arena, parent,
		       make_text(b->in->arena, targets[i].field, text, false, line));
	}
}

/* "2000MiB" where others write a number. */
static bool is_size(const char *text)
{
	size_t digits = strspn(text, "0123456789.");

	return digits && text[digits] && strchr("KMGTkmgt", text[digits]) &&
	       text[digits + 1] != '.';
}

static void add_gpu_field(struct builder *b, const char *flag, const char *field, const char *text)
{
	int line = next_line(b, flag);

	append(b->in->arena, container(b, "gpus", CONF_MAP, line),
	       make_text(b->in->arena, field, text, false, line));
}

/* An amount of memory alone would be a part of a GPU: --gpu-memory is of whole ones. A job that is changed has its number of GPUs. */
static int add_gpus(struct builder *b, struct err *err)
{
	const char *gpus = arg_flag(b->in, "gpus"), *memory = arg_flag(b->in, "gpu-memory");

	if (b->changes && gpus && is_size(gpus))
		return err_set(
			err, ERR_INVALID,
			"--gpus %.40s: a number of GPUs, or a part of one such as 0.5; of a job that takes a part by its memory, --gpu-memory %.40s is that part",
			gpus, gpus);

	if (gpus && is_size(gpus) && memory)
		return err_set(
			err, ERR_INVALID,
			"--gpus %.40s is a part of a GPU by its memory; leave out --gpu-memory, or give a number of GPUs",
			gpus);
	if (gpus)
		add_gpu_field(b, "gpus", is_size(gpus) ? "memory" : "count", gpus);
	else if (memory && !b->changes)
		add_gpu_field(b, "gpu-memory", "count", "1");
	if (memory)
		add_gpu_field(b, "gpu-memory", "memory", memory);
	return 0;
}

static void add_models(struct builder *b)
{
	struct conf *list = NULL;
	const char *text;

	for (size_t i = 0; (text = arg_flag_at(b->in, "model", i)); i++) {
		int line = next_line(b, "model");

		if (!list) {
			list = make(b->in->arena, CONF_LIST, "model", line);
			append(b->in->arena, container(b, "gpus", CONF_MAP, line), list);
		}
		append(b->in->arena, list, make_text(b->in->arena, NULL, text, true, line));
	}
}

static void add_data(struct builder *b)
{
	const char *text;

	for (size_t i = 0; (text = arg_flag_at(b->in, "dataset", i)); i++) {
		int line = next_line(b, "data");

		append(b->in->arena, container(b, "data", CONF_LIST, line),
		       make_text(b->in->arena, NULL, text, true, line));
	}
}

/* KEY=VALUE of each flag, into a map. */
static int add_labels(struct builder *b, const char *flag, const char *key, struct err *err)
{
	const char *text;

	for (size_t i = 0; (text = arg_flag_at(b->in, flag, i)); i++) {
		int line = next_line(b, flag);
		const char *equals = strchr(text, '=');

		if (!equals || equals == text)
			return err_set(err, ERR_INVALID, "--%s %s: expected KEY=VALUE", flag, text);
		append(b->in->arena, container(b, key, CONF_MAP, line),
		       make_text(b->in->arena,
				 arena_strndup(b->in->arena, text, (size_t)(equals - text)),
				 equals + 1, true, line));
	}
	return 0;
}

static void add_after(struct builder *b)
{
	const char *text;

	for (size_t i = 0; (text = arg_flag_at(b->in, "after", i)); i++) {
		int line = next_line(b, "after");

		append(b->in->arena, container(b, "depends_on", CONF_LIST, line),
		       make_text(b->in->arena, NULL, text, false, line));
	}
}

static int add_env(struct builder *b, struct err *err)
{
	const char *text;

	for (size_t i = 0; (text = arg_flag_at(b->in, "env", i)); i++) {
		const char *equals = strchr(text, '='), *value = equals ? equals + 1 : getenv(text);
		const char *name =
			equals ? arena_strndup(b->in->arena, text, (size_t)(equals - text)) : text;
		int line = next_line(b, "env");

		if (!value)
			return err_set(
				err, ERR_INVALID,
				"--env %.60s: there is no such variable here; write NAME=VALUE",
				text);
		if (conf_find(find(b->document, "env"), name))
			return err_set(err, ERR_INVALID, "--env: %.60s is given twice", name);
		append(b->in->arena, container(b, "env", CONF_MAP, line),
		       make_text(b->in->arena, name, value, true, line));
	}
	return 0;
}

static int add_secrets(struct builder *b, struct err *err)
{
	const char *text;

	for (size_t i = 0; (text = arg_flag_at(b->in, "secret", i)); i++) {
		const char *equals = strchr(text, '=');
		int line = next_line(b, "secret");
		struct conf *secret;

		if (!equals || !equals[1])
			return err_set(
				err, ERR_INVALID,
				"--secret needs NAME=FILE; the value itself is read from the file");
		secret = make(b->in->arena, CONF_MAP,
			      arena_strndup(b->in->arena, text, (size_t)(equals - text)), line);
		append(b->in->arena, secret,
		       make_text(b->in->arena, "file", equals + 1, true, line));
		append(b->in->arena, container(b, "secrets", CONF_MAP, line), secret);
	}
	return 0;
}

static void add_command(struct builder *b)
{
	int line = next_line(b, NULL);
	struct conf *list = container(b, "command", CONF_LIST, line);

	for (int i = 0; i < b->in->arg_count; i++)
		append(b->in->arena, list,
		       make_text(b->in->arena, NULL, b->in->args[i], true, line));
}

/* `run 'a; b'`: one word that only a shell would take apart, and no program of that name. */
static void hint_shell(const struct invocation *in)
{
	const char *word = in->args[0];

	if (in->arg_count != 1 || !strpbrk(word, " \t\n;|&<>$`()*"))
		return;
	if (access(word, F_OK) == 0)
		return;
	notice("\"%.200s\" is taken as the name of one program; for a shell's command line write: fairlead run -- sh -c '...'",
	       word);
}

/* All but the command. */
static int add_flags(struct builder *b, struct err *err)
{
	static const struct {
		const char *flag, *key, *value;
	} switches[] = { { "hold", "hold", "true" },
			 { "mix-models", "mix_models", "true" },
			 { "apart-prefer", "apart_prefer", "true" },
			 { "no-preempt", "preempts", "false" } };
	int rc;

	add_fields(b);
	rc = add_gpus(b, err);
	if (rc < 0)
		return rc;
	add_models(b);
	add_after(b);
	add_data(b);
	rc = add_labels(b, "label", "labels", err);
	if (rc == 0)
		rc = add_labels(b, "apart-from", "apart_from", err);
	if (rc == 0)
		rc = add_env(b, err);
	if (rc >= 0)
		rc = add_secrets(b, err);
	for (size_t i = 0; rc >= 0 && i < ARRAY_SIZE(switches); i++)
		if (arg_has(b->in, switches[i].flag))
			append(b->in->arena, b->document,
			       make_text(b->in->arena, switches[i].key, switches[i].value, false,
					 next_line(b, switches[i].flag)));
	return rc;
}

static struct builder builder_make(const struct invocation *in)
{
	return (struct builder){ .in = in,
				 .document = make(in->arena, CONF_MAP, NULL, 0),
				 .flags = arena_new_array(in->arena, const char *,
							  in->value_count + 5) };
}

int submission_from_flags(const struct invocation *in, struct submission *ret, struct err *err)
{
	struct builder b = builder_make(in);

	if (add_flags(&b, err) < 0)
		return -(int)err->code;
	add_command(&b);
	hint_shell(in);
	*ret = (struct submission){
		.document = b.document, .file = "", .flags = b.flags, .flag_count = b.lines
	};
	return 0;
}

/* Messages about a document made of flags name the flag. */
static int name_flag(const struct submission *submission, struct err *err)
{
	const char *flag = NULL;
	size_t length;

	if (!submission->flags)
		return -(int)err->code;
	if (err->line > 0 && (size_t)err->line <= submission->flag_count)
		flag = submission->flags[err->line - 1];
	err->line = err->column = 0;
	err->file[0] = '\0';
	if (!flag)
		return -(int)err->code;
	length = strlen(flag);
	if (strncmp(err->text, flag, length) == 0 && strncmp(err->text + length, ": ", 2) == 0)
		memmove(err->text, err->text + length + 2,
			strlen(err->text + length + 2) + 1); /* "--limit: limit: ..." */
	return err_prefix(err, "--%s", flag);
}

/* --- changes of a job ----------------------------------------------------------------------------------------- */

/* Flags of a submission that a job can't be changed by: the daemon says of each key why. */
static const char *const fixed_flags[] = { "env",
					   "secret",
					   "workdir",
					   "snapshot",
					   "image",
					   "checkpoint-signal",
					   "checkpoint-cost",
					   "checkpoint-path",
					   "after",
					   "array",
					   "hold",
					   "team" };

struct flag job_change_flags[ARRAY_SIZE(submission_flags)];

__attribute__((constructor)) static void job_change_flags_fill(void)
{
	size_t count = 0;

	for (const struct flag *flag = submission_flags; flag->name; flag++) {
		bool fixed = false;

		for (size_t i = 0; i < ARRAY_SIZE(fixed_flags); i++)
			fixed = fixed || strcmp(fixed_flags[i], flag->name) == 0;
		if (!fixed)
			job_change_flags[count++] = *flag;
	}
}

/* "gpus.model" of --unset: null in the map gpus. */
static int add_unset(struct builder *b, struct err *err)
{
	const char *key;

	for (size_t i = 0; (key = arg_flag_at(b->in, "unset", i)); i++) {
		const char *dot = strchr(key, '.');
		const int line = next_line(b, "unset");
		struct conf *map = b->document;

		if (!*key || (dot && !dot[1]))
			return err_set(
				err, ERR_INVALID,
				"--unset \"%.60s\": expected a field of the job file, such as deadline",
				key);
		if (dot)
			map = container(b, arena_strndup(b->in->arena, key, (size_t)(dot - key)),
					CONF_MAP, line);
		append(b->in->arena, map, make(b->in->arena, CONF_NULL, dot ? dot + 1 : key, line));
	}
	return 0;
}

int submission_changes(const struct invocation *in, struct submission *ret, struct err *err)
{
	const char *limit = arg_flag(in, "array-limit");
	struct job_change_request request;
	struct builder b = builder_make(in);
	int line;

	b.changes = true;
	if (add_flags(&b, err) < 0 || add_unset(&b, err) < 0)
		return -(int)err->code;
	if (limit) {
		line = next_line(&b, "array-limit");
		append(in->arena, container(&b, "array", CONF_MAP, line),
		       make_text(in->arena, "limit", limit, false, line));
	}
	*ret = (struct submission){
		.document = b.document, .file = "", .flags = b.flags, .flag_count = b.lines
	};
	if (!b.document->count)
		return err_set(
			err, ERR_INVALID,
			"change needs what is to be different: --limit 2h, --gpus 4 and others; see `fairlead help change`");
	if (jobfile_read_change("", b.document, in->arena, &request, err) < 0)
		return name_flag(ret, err);
	return 0;
}

/* Filling in and checking */

static int read_secret(const struct invocation *in, const struct submission *submission,
		       struct conf *secret, struct err *err)
{
	const struct conf *file = conf_find(secret, "file");
	const char *what, *text = "";
	AUTO_BUF content = BUF_INIT;
	int rc;

	if (!file || conf_find(secret, "value"))
		return 0; /* said by jobfile_read */
	if (file->type != CONF_SCALAR || !file->text[0])
		return conf_error(err, submission->file, file,
				  "secrets: the file of %.60s must be a path", secret->key);
	what = arena_printf(in->arena, "the file of secret %.60s, \"%.200s\",", secret->key,
			    file->text);
	rc = file_read_whole(file->text, what, JOBFILE_COMMAND_MAX, &content, err);
	if (rc < 0)
		return rc;
	if (content.size && content.data[content.size - 1] == '\n')
		content.data[--content.size] = '\0';
	if (content.size &&
	    (memchr(content.data, '\0', content.size) || !text_is_utf8(content.data, content.size)))
		return err_set(err, ERR_INVALID, "%s is no text", what);
	if (content.size)
		text = arena_strndup(in->arena, content.data, content.size);
	explicit_bzero(content.data, content.size);
	secret->count = 0;
	append(in->arena, secret, make_text(in->arena, "value", text, true, file->line));
	return 0;
}

static int fill_secrets(const struct invocation *in, struct submission *submission, struct err *err)
{
	struct conf *secrets = find(submission->document, "secrets");
	int rc = 0;

	for (size_t i = 0; secrets && secrets->type == CONF_MAP && i < secrets->count && rc >= 0;
	     i++)
		if (secrets->items[i]->type == CONF_MAP)
			rc = read_secret(in, submission, secrets->items[i], err);
	return rc;
}

/* The current folder, unless one is said. A relative --workdir is below the current one. */
static int fill_workdir(const struct invocation *in, struct submission *submission, struct err *err)
{
	struct conf *said = find(submission->document, "workdir");
	char folder[4096];

	if (said && !(submission->flags && said->text[0] != '/'))
		return 0;
	if (!getcwd(folder, sizeof(folder)))
		return err_errno(err, ERR_IO, errno,
				 "the current folder can't be found; say --workdir");
	if (said)
		said->text = arena_printf(in->arena, "%s/%s", folder, said->text);
	else
		append(in->arena, submission->document,
		       make_text(in->arena, "workdir", arena_strdup(in->arena, folder), true, 0));
	return 0;
}

/* true: the working folder. What is there already is an id. */
static int fill_snapshot(const struct invocation *in, struct submission *submission,
			 struct err *err)
{
	struct conf *said = find(submission->document, "snapshot");
	const struct conf *workdir = find(submission->document, "workdir");
	char folder[PATH_MAX];

	if (!said || said->type != CONF_SCALAR || tree_is_id(said->text))
		return 0;
	if (!said->quoted && strcmp(said->text, "true") == 0 && workdir &&
	    workdir->type == CONF_SCALAR)
		said->text = workdir->text;
	if (!realpath(said->text, folder))
		return err_errno(err, errno == ENOENT ? ERR_NOT_FOUND : ERR_FORBIDDEN, errno,
				 "snapshot: the folder \"%.300s\" can't be found", said->text);
	submission->folder = arena_new(in->arena, struct folder);
	if (folder_read(arena_strdup(in->arena, folder), in->arena, submission->folder, err) < 0)
		return -(int)err->code;
	said->text = submission->folder->id;
	said->quoted = true;
	return 0;
}

static void add_git(struct arena *arena, struct conf *document, const struct job_git *git)
{
	struct conf *map = make(arena, CONF_MAP, "git", 0);

	append(arena, document, map);
	if (git->commit)
		append(arena, map, make_text(arena, "commit", git->commit, true, 0));
	if (git->branch)
		append(arena, map, make_text(arena, "branch", git->branch, true, 0));
	if (git->changed >= 0)
		append(arena, map,
		       make_text(arena, "changed", arena_printf(arena, "%" PRId64, git->changed),
				 false, 0));
	if (git->untracked >= 0)
		append(arena, map,
		       make_text(arena, "untracked",
				 arena_printf(arena, "%" PRId64, git->untracked), false, 0));
	if (git->remote)
		append(arena, map, make_text(arena, "remote", git->remote, true, 0));
}

/* Of what is sent, or of where it runs; else of where the command is typed. Whatever comes of it, the job is submitted. */
static void fill_git(const struct invocation *in, struct submission *submission)
{
	const struct conf *workdir = find(submission->document, "workdir");
	const char *wish = getenv("FAIRLEAD_GIT"), *first;
	char here[PATH_MAX], why[GIT_WHY_MAX];
	struct job_git git;
	int rc;

	if (find(submission->document, "git") || (wish && strcmp(wish, "no") == 0) ||
	    arg_has(in, "dry-run") || !getcwd(here, sizeof(here)))
		return;
	first = submission->folder                        ? submission->folder->path
		: workdir && workdir->type == CONF_SCALAR ? workdir->text
							  : here;
	rc = git_state_read(first, in->arena, &git, why);
	if (rc && !why[0] && strcmp(first, here) != 0)
		rc = git_state_read(here, in->arena, &git, why);
	if (rc && why[0])
		notice("the state of git is not noted: %s", why);
	if (!rc && job_git_is_known(&git))
		add_git(in->arena, submission->document, &git);
}

int submission_check_folder(const struct submission *submission, struct err *err)
{
	const struct conf *folder = conf_find(submission->document, "workdir");

	if (!folder || access(folder->text, R_OK | X_OK) == 0)
		return 0;
	return err_errno(err, errno == ENOENT ? ERR_NOT_FOUND : ERR_FORBIDDEN, errno,
			 "the working folder \"%.300s\" can't be used", folder->text);
}

int submission_check(const struct invocation *in, struct submission *submission, struct err *err)
{
	struct job_request request;
	int rc;

	if (arg_has(in, "env-all") && arg_has(in, "env-none"))
		return err_set(
			err, ERR_INVALID,
			"--env-all and --env-none contradict each other; leave one of them out");
	if (submission->document->type == CONF_MAP) {
		rc = fill_secrets(in, submission, err);
		if (rc >= 0)
			rc = fill_workdir(in, submission, err);
		if (rc >= 0)
			rc = fill_snapshot(in, submission, err);
		if (rc >= 0)
			fill_git(in, submission);
		if (rc < 0)
			return rc;
	}
	rc = jobfile_read(submission->file, submission->document, in->arena, &request, err);
	return rc < 0 ? name_flag(submission, err) : 0;
}

/* Sending */

static const char *new_key(struct arena *arena)
{
	uint8_t bytes[16] = { 0 };
	char text[33];

	if (getrandom(bytes, sizeof(bytes), 0) != sizeof(bytes))
		return NULL; /* without a key the submission is not tried again */
	for (size_t i = 0; i < sizeof(bytes); i++)
		snprintf(text + 2 * i, 3, "%02x", bytes[i]);
	return arena_strdup(arena, text);
}

/* What only the daemon can know is wrong: the value that it names is looked for in the file. */
static void find_place(const struct submission *submission, struct err *err)
{
	static const char *const keys[] = { "queue", "team" };

	for (size_t i = 0; i < ARRAY_SIZE(keys); i++) {
		const struct conf *said = conf_find(submission->document, keys[i]);
		char quoted[300];

		if (!said || said->type != CONF_SCALAR)
			continue;
		snprintf(quoted, sizeof(quoted), "%s \"%.280s\"", keys[i], said->text);
		if (!strstr(err->text, quoted))
			continue;
		err->line = said->line;
		err->column = said->column;
		return;
	}
}

static void add_shell_env(const struct invocation *in, struct conf *map)
{
	const bool all = arg_has(in, "env-all");

	for (char **word = environ; *word; word++) {
		const size_t size = strcspn(*word, "=");
		const char *name = arena_strndup(in->arena, *word, size), *value;

		if (!(*word)[size] || !jobfile_shell_env_passes(name, all) || conf_find(map, name))
			continue;
		value = *word + size + 1;
		if (text_is_utf8(value, strlen(value)))
			append(in->arena, map, make_text(in->arena, name, value, true, 0));
		else
			notice("%s is not passed to the job: its value is not UTF-8 text", name);
	}
}

/*
 * The variables of this shell that tasks get. Over TCP the tasks run on another machine, where the paths of this one mean nothing. What the
 * job file says counts, but flags come before it.
 */
static void fill_shell_env(const struct invocation *in, const struct client *client,
			   struct conf *document)
{
	const bool all = arg_has(in, "env-all"), none = arg_has(in, "env-none");
	struct conf *map = find(document, "shell_env");

	if (map ? !all && !none : none || (!all && !client_is_here(client)))
		return;
	if (!map) {
		map = make(in->arena, CONF_MAP, "shell_env", 0);
		append(in->arena, document, map);
	}
	map->count = 0;
	if (!none)
		add_shell_env(in, map);
}

/* In pods it is a folder of the container. */
static int check_folder(const struct submission *submission, struct client *client, struct err *err)
{
	struct err other = { 0 };
	json_t *status = NULL;
	int rc = submission_check_folder(submission, err);

	if (rc < 0 && client_get(client, "/api/v1/status", &status, &other) >= 0 &&
	    json_object_get(status, "cluster"))
		rc = 0;
	json_decref(status);
	return rc;
}

int submission_send(const struct invocation *in, struct client *client,
		    const struct submission *submission, bool dry_run, json_t **ret,
		    struct err *err)
{
	const char *key = arg_flag(in, "key"), *headers[2] = { NULL, NULL };
	AUTO_BUF body = BUF_INIT;
	struct call call = { .method = "POST",
			     .path = dry_run ? "/api/v1/jobs?dry_run=1&prospect=1"
					     : "/api/v1/jobs?prospect=1",
			     .content_type = "application/yaml",
			     .headers = headers };
	int rc = check_folder(submission, client, err);

	if (rc >= 0 && submission->folder && !dry_run)
		rc = folder_send(submission->folder, client, in->arena, err);
	if (rc < 0)
		return rc;
	fill_shell_env(in, client, submission->document);
	if (!key && !dry_run)
		key = new_key(in->arena);
	if (key)
		headers[0] = arena_printf(in->arena, "Idempotency-Key: %s", key);
	jobfile_write(submission->document, &body);
	call.body = body.data;
	call.body_size = body.size;
	rc = client_call(client, &call, ret, err);
	if (rc == -(int)ERR_UNREACHABLE && key && strstr(err->text, "broke the connection"))
		rc = client_call(client, &call, ret, err);
	if (rc < 0) { /* places in what was sent mean nothing to the reader */
		err->line = err->column = 0;
		if (!submission->flags) {
			snprintf(err->file, sizeof(err->file), "%s", submission->file);
			find_place(submission, err);
		}
	}
	explicit_bzero(body.data, body.size);
	return rc;
}
