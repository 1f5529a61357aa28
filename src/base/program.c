/* SPDX-License-Identifier: Apache-2.0 */
#include "base/program.h"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>

#include "base/check.h"

int program_start(const char *path, char *const *argv, char *const *env, int out, int complaints,
		  pid_t *ret)
{
	posix_spawn_file_actions_t actions;
	posix_spawnattr_t attributes;
	sigset_t none, all;
	int rc;

	sigemptyset(&none);
	sigfillset(&all);
	CHECK(posix_spawn_file_actions_init(&actions) == 0);
	CHECK(posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0) == 0);
	CHECK(posix_spawn_file_actions_adddup2(&actions, out, 1) == 0);
	CHECK(posix_spawn_file_actions_adddup2(&actions, complaints, 2) == 0);
	CHECK(posix_spawnattr_init(&attributes) == 0);
	CHECK(posix_spawnattr_setsigmask(&attributes, &none) == 0);
	CHECK(posix_spawnattr_setsigdefault(&attributes, &all) == 0);
	CHECK(posix_spawnattr_setpgroup(&attributes, 0) == 0);
	CHECK(posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK |
							    POSIX_SPAWN_SETSIGDEF) == 0);
	rc = posix_spawnp(ret, path ? path : argv[0], &actions, &attributes, argv, env);
	posix_spawnattr_destroy(&attributes);
	posix_spawn_file_actions_destroy(&actions);
	return rc;
}
