/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Users as a file of comma-separated values, such as spreadsheets write it. The first line names the columns, in any order:
 *
 *	name,team,role,uid,gid,default_queue
 *	alice,vision,lead,,,
 *	"bob",vision,,1002,1002,vision-night
 *
 * Only `name` is needed. An empty value is one that is not given. A value in quotation marks may hold commas, and a quotation mark as two.
 * Empty lines are passed over. At most USER_FILE_BYTES and USER_FILE_ROWS. What is wrong is said with file, line and column.
 */
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/err.h"

enum { USER_FILE_BYTES = 16 << 20, USER_FILE_ROWS = 100000 };
enum user_column { USER_NAME, USER_TEAM, USER_ROLE, USER_UID, USER_GID, USER_QUEUE, USER_COLUMNS };

struct user_row {
	const char *value[USER_COLUMNS]; /* NULL = not given */
	uint32_t line;
};

/* "team": as the column is called, and the field of the API. */
const char *user_column_name(enum user_column column);
/* Rows in the arena, of which no two have one name. `text` has `size` bytes and is not changed. */
int user_file_read(const char *file, const char *text, size_t size, struct arena *arena,
		   struct user_row **ret, uint32_t *ret_count, struct err *err) MUST_CHECK;
