/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From the tree of a job file (base/conf.h) to a proposed JOB_SUBMITTED and the body that the
 * engine needs.
 *
 * Each field of jobfile.def has a reader in jobfile_values.c, read_ID. Here a map is walked in the
 * order written, each key found in the table, and its reader called; so the first complaint is
 * about the first wrong line, and a field without a reader does not compile. What needs two fields
 * (command or script, estimate against limit) is checked behind that, in finish.
 */
#include "api/jobfile/jobfile.h"

#include <stdio.h>
#include <string.h>

#include "api/jobfile/jobfile_reading.h"
#include "base/arena.h"
#include "base/check.h"
#include "base/digest.h"
#include "base/parse.h"
#include "core/model/facts.h"
#include "core/scheduling/life/interval.h"

enum { BODY_BYTES_USUAL = 2000 };

int jobfile_key_error(struct reading *r, const struct conf *c, const char *format, ...)
{
	struct err story;
	va_list args;

	va_start(args, format);
	err_setv(&story, ERR_INVALID, format, args);
	va_end(args);
	return err_at(r->err, ERR_INVALID, r->file, c->key_line, c->key_column, "%s", story.text);
}

int jobfile_unknown_key(struct reading *r, const struct conf *item, const char *prefix)
{
	const char *candidates[JOBFILE_FIELDS_MAX], *hint,
		*later = prefix[0] ? NULL : jobfile_later(item->key);
	const struct jobfile_field *fields;
	size_t count, known = 0, length = strlen(prefix);

	if (later)
		return jobfile_key_error(r, item, "\"%.60s\" is not a field: %s", item->key, later);
	fields = jobfile_fields(&count);
	for (size_t i = 0; i < count; i++)
		if (strncmp(fields[i].name, prefix, length) == 0 &&
		    !strchr(fields[i].name + length, '.'))
			candidates[known++] = fields[i].name + length;
	hint = spelling_hint(item->key, candidates, known);
	return jobfile_key_error(r, item,
				 hint ? "%s%.*s has no field \"%.100s\"; did you mean \"%s\"?"
				      : "%s%.*s has no field \"%.100s\"",
				 length ? "" : "a job", length ? (int)length - 1 : 0, prefix,
				 item->key, hint);
}

int jobfile_read_fields(struct reading *r, const struct conf *map, const char *prefix)
{
	const struct jobfile_field *fields;
	size_t count, at;
	int rc;

	fields = jobfile_fields(&count);
	for (size_t i = 0; i < map->count; i++) {
		const struct conf *item = map->items[i];

		if (!jobfile_field_find(prefix, item->key, &at) || strchr(item->key, '.'))
			return jobfile_unknown_key(r, item, prefix);
		if (item->type == CONF_NULL)
			return jobfile_key_error(
				r, item, "%s is left empty; give it a value or leave it out",
				fields[at].name);
		rc = jobfile_readers[at](r, item, fields[at].name);
		if (rc < 0)
			return rc;
	}
	return 0;
}

/* The program's name as a job's name: "python3 train.py" -> "python3". */
static const char *default_name(struct reading *r)
{
	const char *text = r->body.script ? "script" : "job", *slash;
	char name[NAME_MAX_BYTES + 1];
	size_t size = 0, length;

	if (r->body.command)
		text = r->body.command->type == CONF_LIST
			       ? r->body.command->items[0]->text
			       : r->body.command->text + strspn(r->body.command->text, " \t\r\n");
	length = r->body.command && r->body.command->type == CONF_LIST
			 ? strlen(text)
			 : strcspn(text, " \t\r\n;|&<>()");
	slash = memrchr(text, '/', length);
	if (slash) {
		length -= (size_t)(slash + 1 - text);
		text = slash + 1;
	}
	for (size_t i = 0; i < length && size < NAME_MAX_BYTES; i++) {
		char c = text[i];
		bool alnum =
			(c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');

		if (alnum || (size && (c == '.' || c == '_' || c == '-')))
			name[size++] = c;
	}
	return size ? arena_strndup(r->arena, name, size) : "job";
}

/* Names in env and secrets together: how many, how long, none twice. */
static int check_environment(struct reading *r)
{
	size_t env = r->body.env ? r->body.env->count : 0,
	       secrets = r->body.secrets ? r->body.secrets->count : 0, total = 0;

	if (env + secrets > JOBFILE_ENV_MAX)
		return jobfile_key_error(r, r->body.env ? r->body.env : r->body.secrets,
					 "env and secrets have %zu variables; the limit is %d",
					 env + secrets, JOBFILE_ENV_MAX);
	for (size_t i = 0; i < env; i++)
		total += strlen(r->body.env->items[i]->key) + strlen(r->body.env->items[i]->text) +
			 2;
	for (size_t i = 0; i < secrets; i++) {
		const struct conf *item = r->body.secrets->items[i];

		if (r->body.env && conf_find(r->body.env, item->key))
			return jobfile_key_error(
				r, item,
				"%.60s stands in env and in secrets; leave one of them out",
				item->key);
		total += strlen(item->key) + strlen(conf_find(item, "value")->text) + 2;
	}
	if (total > JOBFILE_TOTAL_MAX)
		return jobfile_key_error(r, r->body.env ? r->body.env : r->body.secrets,
					 "env and secrets have %zu bytes; the limit is %d", total,
					 JOBFILE_TOTAL_MAX);
	return 0;
}

/* What needs more than one field. */
static int finish(struct reading *r)
{
	struct event_job_submitted *job = r->job;
	int rc;

	if (r->body.command && r->body.script)
		return jobfile_key_error(r, r->body.script,
					 "a job has a command or a script, not both");
	rc = jobfile_roles_finish(r);
	if (rc < 0)
		return rc;
	if (!r->body.command && !r->body.script && !r->roles)
		return conf_error(
			r->err, r->file, r->document,
			"the job has no command; add for example: command: python3 train.py");
	if (job->limit_ms && job->estimate_ms > job->limit_ms)
		return conf_error(
			r->err, r->file, r->estimate,
			"estimate is more than limit; then it would be stopped before its end");
	if (r->resize && job->tasks_min == job->tasks_max)
		return conf_error(
			r->err, r->file, r->resize,
			"resize is for a job whose tasks are a range; this one has %lld; write for example: tasks: 2..4",
			(long long)job->tasks_min);
	if (!r->rejoin)
		job->rejoins = job->tasks_min < job->tasks_max && job->resize == RESIZE_FREE;
	if (r->cost && !job->checkpoint_every_ms)
		job->checkpoint_every_ms = CHECKPOINT_AUTO;
	if (r->cost && job->checkpoint_every_ms != CHECKPOINT_AUTO)
		return conf_error(r->err, r->file, r->cost,
				  "checkpoint.cost is for checkpoint: {every: auto}");
	rc = check_environment(r);
	if (rc >= 0)
		rc = jobfile_sweep_finish(r);
	if (rc == 0)
		rc = jobfile_fit_finish(r);
	if (rc == 0)
		rc = jobfile_pods_finish(r);
	if (rc < 0)
		return rc;
	if (!job->checkpoint)
		r->body.checkpoint_signal = NULL;
	if (!job->name[0])
		job->name = default_name(r);
	return 0;
}

/* Uses up both. */
static void lasting_write(struct reading *r, struct buf *body, struct job_request *ret)
{
	ret->lasting = ret->body;
	ret->lasting_size = ret->body_size;
	if (!job_git_is_known(&r->body.git) && !r->body.shell_env)
		return;
	r->body.git = JOB_GIT_NONE;
	r->body.shell_env = NULL;
	buf_clear(body);
	job_body_write(&r->body, body);
	ret->lasting = arena_strndup(r->arena, body->data, body->size);
	ret->lasting_size = body->size;
}

struct event jobfile_event(void)
{
	struct event event = event_make(EVENT_JOB_SUBMITTED, 0, "");

	event.job_submitted = (struct event_job_submitted){ .name = "",
							    .user = "",
							    .team = "",
							    .queue = "default",
							    .project = "",
							    .kind = KIND_TRAINING,
							    .tier = TIER_STANDARD,
							    .tasks_min = 1,
							    .tasks_max = 1,
							    .gpus = 1,
							    .models = "",
							    .require = "",
							    .prefer = "",
							    .spread = "",
							    .window = "",
							    .apart_level = "",
							    .apart_from = "",
							    .own_labels = "",
							    .data = "",
							    .min_driver = "",
							    .min_cuda = "",
							    .regions = "",
							    .labels = "",
							    .mask = "",
							    .role_masks = "",
							    .together = "",
							    .tolerates = "",
							    .roles = "",
							    .slice = "",
							    .preempts = 1,
							    .grace_ms = -1,
							    .array_count = 1,
							    .body = "",
							    .body_mac = "",
							    .client_key = "",
							    .uid = -1,
							    .gid = -1 };
	return event;
}

static int read_document(const char *file, const struct conf *document, bool for_pods,
			 struct arena *arena, struct job_request *ret, struct err *err)
{
	struct event event = jobfile_event();
	struct reading r = { .file = file,
			     .document = document,
			     .arena = arena,
			     .err = err,
			     .for_pods = for_pods,
			     .job = &event.job_submitted,
			     .body.git = JOB_GIT_NONE };
	AUTO_BUF body = BUF_INIT;
	const char **host_paths;
	int rc;

	if (document->type != CONF_MAP)
		return conf_error(err, file, document,
				  "a job file is a map of fields, such as name: and command:");
	rc = jobfile_read_fields(&r, document, "");
	if (rc >= 0)
		rc = finish(&r);
	if (rc < 0)
		return rc;
	buf_reserve(&body, BODY_BYTES_USUAL);
	job_body_write(&r.body, &body);
	if (body.size > JOBFILE_BODY_MAX)
		return err_at(
			err, ERR_TOO_LARGE, file, 0, 0,
			"command, environment and paths of the job take %zu bytes; the limit is %d",
			body.size, JOBFILE_BODY_MAX);
	host_paths = arena_new_array(arena, const char *, r.body.host_path_count + 1);
	for (uint32_t i = 0; i < r.body.host_path_count; i++)
		host_paths[i] = r.body.host_paths[i];
	*ret = (struct job_request){ .event = event,
				     .host_paths = host_paths,
				     .body = arena_strndup(arena, body.data, body.size),
				     .image = r.body.image,
				     .snapshot = r.body.snapshot,
				     .workdir = r.body.workdir,
				     .checkpoint_path = r.body.checkpoint_path,
				     .pod_field = r.body.pod_field,
				     .host_path_count = r.body.host_path_count,
				     .body_size = body.size,
				     .depend_arrays = r.depend_arrays };
	jobfile_masks_name(&r, ret);
	lasting_write(&r, &body, ret);
	return 0;
}

int jobfile_read(const char *file, const struct conf *document, struct arena *arena,
		 struct job_request *ret, struct err *err)
{
	return read_document(file, document, false, arena, ret, err);
}

int jobfile_read_for_pods(const char *file, const struct conf *document, struct arena *arena,
			  struct job_request *ret, struct err *err)
{
	return read_document(file, document, true, arena, ret, err);
}

int jobfile_read_text(const char *file, const char *text, size_t size, struct arena *arena,
		      struct conf **ret, struct err *err)
{
	struct conf **documents;
	size_t count;
	int rc = conf_parse(file, text, size, arena, &documents, &count, err);

	if (rc < 0)
		return rc;
	if (!count || (count == 1 && documents[0]->type == CONF_NULL))
		return err_at(err, ERR_INVALID, file, 1, 1,
			      "the job file is empty; it needs at least a command");
	if (count > 1)
		return conf_error(err, file, documents[1],
				  "a second job starts here; a job file holds one");
	*ret = documents[0];
	return 0;
}

int jobfile_parse(const char *file, const char *text, size_t size, struct arena *arena,
		  struct job_request *ret, struct err *err)
{
	struct conf *document;
	int rc = jobfile_read_text(file, text, size, arena, &document, err);

	return rc < 0 ? rc : jobfile_read(file, document, arena, ret, err);
}
