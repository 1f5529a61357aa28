/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Folders that belong to the daemon, and paths of users that lead into its data folder.
 *
 * The daemon and its shepherds work as root in folders that other accounts must not be able to exchange. Such a folder is opened once, checked
 * through its descriptor, and used through that descriptor: what is under its name later does not matter.
 *
 *	own		a folder (no link) whose owner is the account of this process, and that nobody else may write to
 *	data folder	attempts/, run/, logs/, journal/, snapshots/, keys/: own all the way; checkpoints/ID alone belongs to a job's user
 */
#include <stdbool.h>
#include <sys/types.h>

#include "base/err.h"

/* Opens an own folder. The descriptor, which the caller closes; negative: it is not there, or not own (ERR_CONFLICT). */
int own_folder_open(const char *path, struct err *err) MUST_CHECK;

/* What is done when there is something under the name already. */
enum own_folder_old {
	OWN_FOLDER_REFUSE, /* ERR_CONFLICT: the name was claimed before */
	OWN_FOLDER_KEEP /* an own folder is used as it is */
};
/* Makes an own folder below another one, whatever the umask. The descriptor, which the caller closes; negative = error. */
int own_folder_at(int parent, const char *name, mode_t mode, enum own_folder_old old,
		  struct err *err) MUST_CHECK;

/*
 * Does a path that a user names lead to the folder, or to something in it? Both are absolute. Two readings, either of which is enough: the text
 * with its `.` and `..` taken out, and where the part of it that exists leads, symbolic links included. A file server that does not answer holds
 * up the caller for 200 ms at most, and no more than four times until it answers; what nobody knows by then counts as elsewhere. So whoever uses
 * the path later does so with the user's rights and not with those of the daemon.
 */
bool path_leads_into(const char *folder, const char *path);
