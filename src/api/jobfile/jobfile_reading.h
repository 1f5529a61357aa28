/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* What jobfile.c (the walk over the document) and those with a reader for each field share. */
#include "api/jobfile/jobfile_table.h"
#include "base/conf.h"

/* What is being read: the document, and what was found in it so far. */
struct reading {
	const char *file;
	const struct conf *document;
	struct arena *arena;
	struct err *err;
	struct event_job_submitted *job;
	const struct conf *cost; /* of a checkpoint */
	const struct conf *estimate;
	const struct conf *resize, *rejoin; /* where they are said; NULL = not */
	struct body_source body;
	bool has_how;
	const int64_t *depend_arrays; /* see struct job_request */
	const struct conf *array;
	bool for_pods; /* a cluster takes it */
	bool has_count; /* of the array */
	int64_t sweep_jobs;
	const struct conf *throughput;
	const struct conf *tasks, *roles, *shm; /* where they are said; NULL = not */
	int64_t role_min; /* of the role at hand; 0 = not said */
	bool role_ends;
	struct body_source *role_bodies; /* those of `body` */
};

typedef int read_fn(struct reading *r, const struct conf *c, const char *what);

/* Reads the value of one field; `what` is its name for messages. Negative with the place in err. */
typedef int jobfile_reader(struct reading *r, const struct conf *c, const char *what);

/* jobfile_arrays.c */
jobfile_reader read_array, read_array_count, read_array_limit, read_depends_on;

/* jobfile_runs.c */
jobfile_reader read_command, read_script, read_env, read_secrets, read_shell_env, read_workdir,
	read_snapshot, read_image;
/* Whether the key is a name that a variable of a job may have. */
int jobfile_env_name(struct reading *r, const struct conf *item, const char *what) MUST_CHECK;

/* jobfile_pods.c, jobfile_overlay.c */
jobfile_reader read_volumes, read_node_resources, read_roles_resources, read_shm,
	read_service_account, read_pull_secrets, read_kubernetes;
/* When all fields have been read: what they say together. */
int jobfile_pods_finish(struct reading *r) MUST_CHECK;
/* Why a volume can't have that name, or be at that path of a container; NULL = it can. */
const char *jobfile_volume_name(const char *name);
const char *jobfile_mount_path(const char *path);
/* Whether an object of that name in Kubernetes is Fairlead's own. */
bool jobfile_is_ours(const char *object);

/* jobfile_fit.c */
jobfile_reader read_window, read_window_end;
jobfile_reader read_labels, read_apart_from, read_apart_level, read_apart_prefer;
/* A map of 1 to `most` labels as "key=value,key=value". */
int read_label_table(struct reading *r, const struct conf *c, const char *what, uint32_t most,
		     const char **ret);
jobfile_reader read_align, read_capacity, read_data, read_spread, read_throughput,
	read_min_throughput, read_mix_models;
/* When all fields have been read: accepted models and how fast they are belong together. */
int jobfile_fit_finish(struct reading *r) MUST_CHECK;

/* jobfile_git.c */
jobfile_reader read_git, read_git_commit, read_git_branch, read_git_changed, read_git_untracked,
	read_git_remote;

/* jobfile_roles.c */
jobfile_reader read_roles, read_roles_name, read_roles_min, read_roles_ends_job;
/* When all other fields have been read: what a role does not say is what the job says. */
int jobfile_roles_finish(struct reading *r) MUST_CHECK;

/* jobfile_values.c, also of a role */
jobfile_reader read_tasks, read_gpus, read_gpus_count, read_cpus, read_memory;
int jobfile_name(struct reading *r, const struct conf *c, const char *what, const char **ret)
	MUST_CHECK;

/* jobfile_sweep.c */
jobfile_reader read_sweep;
/* When all fields have been read: the array's size from its sweep. */
int jobfile_sweep_finish(struct reading *r) MUST_CHECK;

/* jobfile_values.c: an absolute path without control characters, of at most `max` bytes. */
int jobfile_path(struct reading *r, const struct conf *c, const char *what, size_t max,
		 const char **ret) MUST_CHECK;

/* In the order of jobfile_fields. */
extern jobfile_reader *const jobfile_readers[];

/* Reads a map whose fields are those of the table that start with prefix ("checkpoint."). */
int jobfile_read_fields(struct reading *r, const struct conf *map, const char *prefix) MUST_CHECK;
/* The submission of a job file that says nothing. */
struct event jobfile_event(void);
/* Complains about a key that is no field here. */
int jobfile_unknown_key(struct reading *r, const struct conf *item, const char *prefix);
/* An error at the place of a key, not of its value. */
int jobfile_key_error(struct reading *r, const struct conf *c, const char *format, ...)
	PRINTF_LIKE(3, 4);
