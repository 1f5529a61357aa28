/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The job file (YAML or JSON): the same form for `fairlead submit FILE`, for flags of `fairlead run` (turned into JSON by
 * the command), and for POST /api/v1/jobs. One table of fields (jobfile_fields) gives the validation, the hints, the
 * documentation page and the schema in the OpenAPI document.
 *
 * A field or key that nothing acts on yet is refused by name. Everything wrong is said with file, line and column.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "base/buf.h"
#include "base/err.h"
#include "core/model/event.h"

struct arena;

struct job_request {
	struct event event;	/* JOB_SUBMITTED as proposed: names, numbers; user, uid, body, keys are filled by the API */
	const char *body;	/* JSON: command or script, env, workdir, checkpoint path and signal ...: what the engine needs, may hold secrets */
	size_t body_size;
};

/* One document = one job. `type`: "application/yaml" or "application/json" only changes the messages; file is used in them. */
int jobfile_parse(const char *file, const char *text, size_t size, struct arena *arena,
		  struct job_request *ret, struct err *err) MUST_CHECK;

/* The body, read back by the daemon to launch an attempt. Texts in the arena. */
struct job_body {
	const char *const *argv;	/* NULL-terminated, or NULL with script */
	const char *script;
	const char *const *env;		/* "NAME=value" */
	const char *workdir;		/* absolute */
	const char *checkpoint_path;	/* absolute or NULL = a folder of the daemon's */
	int checkpoint_signal;		/* number; 0 = none */
	const char *const *secrets;	/* names of secrets, "NAME=secret-name" */
};
int job_body_parse(const char *json, size_t size, struct arena *arena, struct job_body *ret, struct err *err) MUST_CHECK;

struct jobfile_field {
	const char *name;	/* "checkpoint.every" for nested ones */
	const char *type;	/* "text", "integer", "integer or range", "duration", "size", "list of text", ... */
	const char *standard;	/* default, in words */
	const char *doc;	/* one or two sentences */
	const char *example;	/* YAML */
};
const struct jobfile_field *jobfile_fields(size_t *ret_count);
void jobfile_schema(struct buf *out);	/* JSON schema object for the OpenAPI document */
