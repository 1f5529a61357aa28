/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* What jobfile.c needs of the table of fields besides api/jobfile/jobfile.h. */
#include "api/jobfile/jobfile.h"

struct conf;

/* What of a job file goes into the body; NULL = not given. Checked by jobfile.c. */
struct body_source {
	const struct conf *command, *script; /* one of them */
	const struct conf *env, *secrets; /* maps */
	const struct conf *shell_env; /* a map */
	const struct conf *sweep; /* a map of lists */
	const char *workdir, *snapshot, *image, *checkpoint_path, *checkpoint_signal;
	const struct body_source
		*roles; /* command or script, env of each; none of them = the job's */
	uint32_t role_count;
	struct job_git git;
	/* Of its pods on a cluster. JSON: */
	const char *pod,
		*overlay; /* what they get besides: from fields of the job file; from `kubernetes` */
	const char *volumes, *mounts, *resources,
		*pull_secrets; /* members, without the brackets; of a role `resources` may be "": none */
	const char *service_account;
	int64_t shm_mib;
	bool locks_memory; /* it asks for what only works on memory that stays where it is */
	bool has_claims; /* not every node will do: a claim's volume is somewhere, as resources are not everywhere */
	const char *pod_field; /* the first field that only means something there; NULL = none */
	const char *host_paths[JOBFILE_VOLUMES_MAX]; /* folders of nodes that it mounts */
	uint32_t host_path_count;
};
struct json_reader;
struct job_body;
void jobfile_sweep_write(const struct conf *sweep, struct buf *out);
void jobfile_sweep_read(struct json_reader *json, struct arena *arena, struct job_body *body);
void job_git_write(const struct job_git *git, struct buf *out);
void job_git_read(struct json_reader *json, struct arena *arena, struct job_git *git);
void job_body_write(const struct body_source *from, struct buf *out);
struct reading;
struct job_request;
void jobfile_masks_name(const struct reading *r, struct job_request *ret); /* jobfile_own.c */

enum { JOBFILE_FIELDS_MAX = 96 };

/* The place in jobfile_fields of the field whose name is prefix and key together; false = there is none. */
bool jobfile_field_find(const char *prefix, const char *key, size_t *ret);

/*
 * Why a name that people may know from elsewhere is no field yet; NULL when it is not one of these.
 */
const char *jobfile_later(const char *name);
/* Number of a signal by the name in a body; 0 = not one of those a job may name. */
int jobfile_signal(const char *name);
/* Its name; "" for any other number. */
const char *jobfile_signal_name(int number);
