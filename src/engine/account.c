/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/account.h"

#include <grp.h>
#include <pwd.h>
#include <stdlib.h>

#include "base/check.h"

enum { ACCOUNT_ROOM = 65536 };

int account_groups(uid_t uid, gid_t gid, gid_t groups[ACCOUNT_GROUPS_MAX])
{
	struct passwd record, *found = NULL;
	char *room = malloc(ACCOUNT_ROOM);
	int count = ACCOUNT_GROUPS_MAX;

	CHECK(room);
	if (getpwuid_r(uid, &record, room, ACCOUNT_ROOM, &found) != 0 || !found ||
	    getgrouplist(found->pw_name, gid, groups, &count) < 0) {
		groups[0] = gid;
		count = 1;
	}
	free(room);
	return count;
}
