/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * A job on its way from a file or from flags to the daemon. It stays the tree of base/conf.h until
 * it is sent, so that every complaint can name its line, or its flag. What only this side can know
 * is filled in: the current folder, and what is in the files of secrets.
 */
#include "base/conf.h"
#include "cli/client.h"

struct folder;

struct submission {
	struct conf *document;
	const char *file; /* name for messages; "" = made from flags */
	const char *text; /* of the file; NULL = made from flags, or not read */
	const char *const *flags; /* flag of each line of a document made from flags, from line 1 */
	size_t flag_count;
	struct folder *folder; /* its snapshot, to be sent first; NULL = none */
};

/* All of a file; one byte more than `limit` is too large. `what` names the file in messages. */
int file_read_whole(const char *path, const char *what, size_t limit, struct buf *out,
		    struct err *err) MUST_CHECK;
/* path "-" is standard input. When the file is read and is no YAML, file and text of *ret are set all the same. */
int submission_read(const struct invocation *in, const char *path, struct submission *ret,
		    struct err *err) MUST_CHECK;
/* From the flags of `fairlead run` and its command line. */
int submission_from_flags(const struct invocation *in, struct submission *ret, struct err *err)
	MUST_CHECK;
extern const struct flag submission_flags[]; /* these flags */
/* A change of a job from the flags of `fairlead change`: the document that the daemon is sent, read here once, so that complaints name the flag. */
int submission_changes(const struct invocation *in, struct submission *ret, struct err *err)
	MUST_CHECK;
extern struct flag job_change_flags
	[]; /* those of submission_flags that a job can be changed by; filled before main */
extern const struct flag shell_env_flags[]; /* which variables of the shell tasks get */
/* Fills in and checks all that can be checked here. */
int submission_check(const struct invocation *in, struct submission *submission, struct err *err)
	MUST_CHECK;
/* Whether its working folder can be entered here. Where jobs run as pods it need not be. */
int submission_check_folder(const struct submission *submission, struct err *err) MUST_CHECK;
/*
 * Sends it; tries once more with the same key when the connection broke, so that it is never there
 * twice.
 */
int submission_send(const struct invocation *in, struct client *client,
		    const struct submission *submission, bool dry_run, json_t **ret,
		    struct err *err) MUST_CHECK;
