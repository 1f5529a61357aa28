/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The job file (YAML or JSON): the same form for `fairlead submit FILE`, for flags of `fairlead
 * run` (turned into JSON by the command), and for POST /api/v1/jobs. One table of fields
 * (jobfile_fields) gives the validation, the hints, the documentation page and the schema in the
 * OpenAPI document.
 *
 * A field or key that nothing acts on yet is refused by name. Everything wrong is said with file,
 * line and column.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "base/buf.h"
#include "base/err.h"
#include "core/model/event.h"

struct arena;
struct conf;

struct job_request {
	struct event
		event; /* JOB_SUBMITTED as proposed: names, numbers; user, uid, body, keys are filled by the API */
	const char *
		body; /* JSON: command or script, env, workdir, checkpoint path and signal ...: what the engine needs, may hold secrets */
	size_t body_size;
	/* The body without what a second try of the same job may say differently: the state of git and the variables of the shell. The same text
	 * where nothing is said of them. */
	const char *lasting;
	size_t lasting_size;
	const char *image; /* also in the body; NULL = not said */
	const char *snapshot; /* likewise */
	const char *workdir, *checkpoint_path; /* likewise, absolute */
	/* What its pods get on a cluster, also in the body: the first field of it, NULL = none; folders of nodes; whether some nodes can't give it. */
	const char *pod_field;
	const char *const *host_paths;
	uint32_t host_path_count;
	/* Masks of nodes that can, as in job-submitted: of all its pods, of each role's, for several roles; "" = any node can. They are named before
	 * they are there, so the event does not name them yet. */
	const char *mask, *role_masks, *together;
	/* Where depends[i] was written as 17_3: the number of the array, else 0. That it is one has to be seen. */
	const int64_t *depend_arrays; /* NULL when it depends on none */
};

/* GPUs of each task; of unlike tasks, the most. */
int64_t jobfile_gpus_most(const struct event_job_submitted *job);

/*
 * One document = one job; JSON is read as JSON, everything else as YAML. `file` is used in
 * messages. Limits: see below.
 */
int jobfile_parse(const char *file, const char *text, size_t size, struct arena *arena,
		  struct job_request *ret, struct err *err) MUST_CHECK;
/*
 * The two halves of it, for the command, which fills in a folder and the content of secrets' files
 * in between.
 */
int jobfile_read_text(const char *file, const char *text, size_t size, struct arena *arena,
		      struct conf **ret, struct err *err) MUST_CHECK;
int jobfile_read(const char *file, const struct conf *document, struct arena *arena,
		 struct job_request *ret, struct err *err) MUST_CHECK;
/* What a job file with some of its keys says of a job that is there (jobfile_change.c). */
struct job_change_request {
	uint64_t set; /* words that change: bits of enum job_change */
	struct event_job_submitted
		job; /* their values; all else is as a job file has it that says nothing */
	bool memory_alone; /* gpus: {memory: ...} without a count: of a job that takes a part of a GPU by its memory, that part */
	bool says_how,
		wants_signal; /* checkpoint.how, and that it is a signal: what the job runs must agree */
};
int jobfile_read_change(const char *file, const struct conf *document, struct arena *arena,
			struct job_change_request *ret, struct err *err) MUST_CHECK;
/* As a cluster takes it: a slice by its name is a resource of pods, which the device plugin counts (nvidia.com/mig-1g.10gb). */
int jobfile_read_for_pods(const char *file, const struct conf *document, struct arena *arena,
			  struct job_request *ret, struct err *err) MUST_CHECK;
/*
 * The document in one line: JSON, but for plain numbers that JSON does not know (007), which stay
 * as written. Reads back the same.
 */
void jobfile_write(const struct conf *document, struct buf *out);

/* How names of masks begin that own jobs name (docs/decisions/0021). */
#define JOBFILE_OWN_MASK "pods-own-"

enum {
	JOBFILE_COMMAND_MAX =
		131071, /* bytes of one argument, of `command` as text, of NAME=value: Linux takes no more */
	JOBFILE_SCRIPT_MAX = 1 << 20,
	JOBFILE_ARGUMENTS_MAX = 1024,
	JOBFILE_ENV_MAX = 1000, /* entries of env and secrets together */
	JOBFILE_SHELL_ENV_BYTES_MAX = 256 << 10, /* of names and values of shell_env */
	JOBFILE_TOTAL_MAX = 1 << 20, /* bytes of all arguments, and of all env and secrets */
	JOBFILE_BODY_MAX =
		(4 << 20) - 4096, /* of the body made of all that: it becomes one sealed blob */
	JOBFILE_CHECKPOINT_PATH_MAX = 400, /* leaves room for the names of checkpoints below it */
	JOBFILE_WORKDIR_MAX = 4000,
	JOBFILE_IMAGE_MAX = 400,
	JOBFILE_BRANCH_MAX = 255,
	JOBFILE_REMOTE_MAX = 1000,
	JOBFILE_CHANGED_MAX = 1000000, /* files that are told as changed; of more, so many */
	JOBFILE_RETRIES_MAX = 100,
	JOBFILE_PRIORITY_MAX = 1000,
	JOBFILE_CPUS_MAX = 4096,
	SWEEP_NAMES_MAX = 16,
	JOBFILE_VOLUMES_MAX = 32,
	JOBFILE_RESOURCES_MAX = 16,
	JOBFILE_RESOURCE_MAX = 1000000, /* of one of them */
	JOBFILE_PULL_SECRETS_MAX = 8,
	JOBFILE_OVERLAY_MAX = 64 << 10, /* bytes of `kubernetes` as JSON */
	JOBFILE_OVERLAY_VALUES_MAX = 2000
};

/* The state of git where a job was submitted (docs/decisions/0029). What is not known, or not there, is NULL or -1. */
struct job_git {
	const char *commit; /* 40 or 64 hexadecimal digits; NULL = none yet */
	const char *branch; /* NULL = none is checked out */
	const char *remote; /* its address, without user and password */
	int64_t changed; /* files that differ from the commit */
	int64_t untracked; /* files and folders that git does not know */
	bool is_broken; /* the body says what can't be of it; then nothing of it is known */
};
#define JOB_GIT_NONE ((struct job_git){ .changed = -1, .untracked = -1 })
bool job_git_is_known(const struct job_git *git);
/*
 * An address of a remote without user, password, query and fragment, in the arena: git@host:path as host:path. NULL when it is not sure that
 * none of them is left, or it is no text.
 */
const char *job_git_remote(const char *address, struct arena *arena);
/* FAIRLEAD_GIT_COMMIT=... and so on, of what is known. NULL-terminated, in the arena. */
const char *const *job_git_env(const struct job_git *git, struct arena *arena);

/* Values of one variable in a sweep. */
struct sweep_axis {
	const char *name;
	const char *const *values;
	uint32_t count;
};

/* What tasks of one role run. */
struct job_role {
	const char *const *argv; /* NULL-terminated, or NULL: script, or without one the job's */
	const char *script; /* NULL = none */
	const char *const *env; /* "NAME=value"; NULL-terminated, never NULL */
	const char *
		overlay; /* JSON, of its pods: merged into them behind the first of the job's; NULL = none */
};

/* A pod that somebody else made: one task. */
struct job_pod {
	const char *namespace, *name, *uid;
};

/* The body, read back by the daemon to launch an attempt. Texts in the arena. */
struct job_body {
	const char *const *argv; /* NULL-terminated, or NULL with script */
	const char *script; /* run by /bin/sh */
	const char *const *env; /* "NAME=value", secrets included; NULL-terminated, never NULL */
	const char *const *
		shell_env; /* "NAME=value" of the submitter's shell; NULL-terminated, never NULL; env wins */
	const char *workdir; /* absolute or NULL */
	const char *snapshot; /* id of what its tasks start in, in place of that; NULL = none */
	const char *image; /* of its containers; NULL = not said */
	struct job_git git; /* where it was submitted */
	const char
		*overlays[2]; /* JSON, of its pods: merged into them in this order; NULL = none */
	const char *checkpoint_path; /* absolute or NULL = a folder of the daemon's */
	int checkpoint_signal; /* number; 0 = none */
	const char *const *
		secrets; /* names of those in env whose values are secrets; NULL-terminated, never NULL */
	const struct sweep_axis *sweep; /* as written; the last one changes fastest */
	uint32_t sweep_count; /* 0 = no sweep */
	const struct job_role *roles; /* in their order; NULL = its tasks are alike */
	uint32_t role_count;
	const struct job_pod
		*pods; /* by rank: what its tasks are, in place of a command; NULL = none */
	uint32_t pod_count;
};
/* The body of a job of pods that others made. */
void job_body_pods(const struct job_pod *pods, uint32_t count, struct buf *out);
/* Env of the job, and what the role says instead of it and besides. NULL-terminated, in the arena. */
const char *const *job_body_role_env(const char *const *env, const struct job_role *role,
				     struct arena *arena);
/* The variables of number `index` of the array: env, and the values of its combination. NULL-terminated, in the arena. */
const char *const *job_body_env(const struct job_body *body, uint32_t index, struct arena *arena);
/*
 * Whether `run` and `submit` pass a variable of the submitter's shell on. Never: names that Fairlead sets for each task or that start
 * with FAIRLEAD_, names that a job file can't have, and what a shell keeps about itself (PWD, OLDPWD, SHLVL, _). Without `all` only PATH,
 * VIRTUAL_ENV, CONDA_*, LD_LIBRARY_PATH and PYTHONPATH.
 */
bool jobfile_shell_env_passes(const char *name, bool all);
/* What it runs, without folders, values and digits, as jobfile_program.c has it: a line for the job and one for each role. */
void job_body_program_say(const struct job_body *body, struct buf *out);
/* The hash of that: jobs with another one are not alike (core/model/likes.h). Part of the journal's format. 0 = pods that others made. */
int64_t job_body_program(const struct job_body *body);
int job_body_parse(const char *json, size_t size, struct arena *arena, struct job_body *ret,
		   struct err *err) MUST_CHECK;

struct jobfile_field {
	const char *name; /* "checkpoint.every" for nested ones */
	const char *
		type; /* "text", "integer", "integer or range", "duration", "size", "list of text", ... */
	const char *range; /* what its values may be, in words; "-" = what the type says */
	const char *standard; /* default, in words */
	const char *doc; /* one or two sentences */
	const char *example; /* YAML */
};
const struct jobfile_field *jobfile_fields(size_t *ret_count);
void jobfile_schema(struct buf *out); /* JSON schema object for the OpenAPI document */
void jobfile_change_schema(struct buf *out); /* the same of a change */
