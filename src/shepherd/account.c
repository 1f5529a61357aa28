/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <grp.h>
#include <pwd.h>
#include <unistd.h>

#include "shepherd/shepherd.h"

enum { GROUPS_MAX = 4096 };

static void find_groups(const char *name, gid_t gid, struct arena *arena, struct account *ret)
{
	int count = 64;

	for (;;) {
		int room = count;

		ret->groups = arena_new_array(arena, gid_t, (size_t)room);
		if (getgrouplist(name, gid, ret->groups, &count) >= 0 || count > GROUPS_MAX) {
			ret->group_count = count < room ? count : room;
			return;
		}
		if (count <= room)
			count = room * 2;
	}
}

void account_find(const struct task_spec *spec, struct arena *arena, struct account *ret)
{
	struct account account = { .home = "/", .shell = "/bin/sh" };
	struct passwd record, *found = NULL;
	char *room = arena_alloc(arena, 65536);

	account.groups = arena_new_array(arena, gid_t, 1);
	account.groups[0] = spec->gid;
	account.group_count = 1;
	if (getpwuid_r(spec->uid, &record, room, 65536, &found) == 0 && found) {
		if (found->pw_dir && found->pw_dir[0] == '/')
			account.home = arena_strdup(arena, found->pw_dir);
		if (found->pw_shell && found->pw_shell[0] == '/')
			account.shell = arena_strdup(arena, found->pw_shell);
		if (geteuid() == 0)
			find_groups(found->pw_name, spec->gid, arena, &account);
	}
	*ret = account;
}
