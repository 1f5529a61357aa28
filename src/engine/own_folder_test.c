/* SPDX-License-Identifier: Apache-2.0 */
/* Folders that are own or not, and paths that lead into a folder, in many spellings. */
#include "engine/own_folder.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/testing.h"

struct world {
	char top[64], data[80], home[80];
};

static int world_make(void **state)
{
	struct world *w = calloc(1, sizeof(*w));
	char path[PATH_MAX];

	assert_non_null(w);
	snprintf(w->top, sizeof(w->top), "/tmp/fairlead-own-XXXXXX");
	assert_non_null(mkdtemp(w->top));
	snprintf(w->data, sizeof(w->data), "%s/data", w->top);
	snprintf(w->home, sizeof(w->home), "%s/home", w->top);
	snprintf(path, sizeof(path), "%s/run", w->data);
	assert_int_equal(mkdir(w->data, 0700), 0);
	assert_int_equal(mkdir(path, 0711), 0);
	assert_int_equal(mkdir(w->home, 0700), 0);
	*state = w;
	return 0;
}

static int world_drop(void **state)
{
	struct world *w = *state;
	char command[128];

	snprintf(command, sizeof(command), "%s", w->top);
	assert_true(strncmp(command, "/tmp/fairlead-own-", 18) == 0);
	for (int pass = 0; pass < 3; pass++) {
		static const char *const names[] = { "data/run/5",
						     "data/run/6",
						     "data/run/file",
						     "data/run/link",
						     "data/run",
						     "data",
						     "home/to-run",
						     "home/to-data",
						     "home/chain",
						     "home",
						     "" };

		for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
			char path[PATH_MAX];

			snprintf(path, sizeof(path), "%s/%s", w->top, names[i]);
			(void)remove(path);
		}
	}
	free(w);
	return 0;
}

static void link_make(const struct world *w, const char *name, const char *to)
{
	char path[PATH_MAX];

	snprintf(path, sizeof(path), "%s/%s", w->home, name);
	assert_int_equal(symlink(to, path), 0);
}

static void paths_that_lead_in_are_known_in_every_spelling(void **state)
{
	const struct world *w = *state;
	const char *data = w->data, *home = w->home;
	char run[PATH_MAX], chain[PATH_MAX];
	const struct {
		const char *folder, *rest;
		bool leads;
	} cases[] = {
		{ data, "", true },
		{ data, "/", true },
		{ data, "/run/7", true },
		{ data, "/not/there/yet", true },
		{ data, "/../data/run", true },
		{ data, "//run", true },
		{ data, "/./run/.", true },
		{ home, "/../data", true },
		{ home, "/nothing/../../data/x", true },
		{ home, "/to-run", true },
		{ home, "/to-run/9", true },
		{ home, "/to-run/../run", true },
		{ home, "/to-data/keys", true },
		{ home, "/chain", true },
		{ home, "/chain/deep/er", true },
		{ home, "/none/../to-run/9", true },
		{ home, "/none/../chain", true },
		{ home, "/none/../../home/no/ne/../../to-data/x", true },
		{ home, "/none/../to-run/../..", false },
		{ data, "-2/run", false },
		{ data, "/..", false },
		{ home, "", false },
		{ home, "/to-run/../..", false },
		{ home, "/to-run/../../home", false },
		{ "", "/", false },
		{ "", "/etc/passwd", false },
	};

	snprintf(run, sizeof(run), "%s/run", data);
	snprintf(chain, sizeof(chain), "%s/to-run", home);
	link_make(w, "to-run", run);
	link_make(w, "to-data", data);
	link_make(w, "chain", chain);
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		char path[PATH_MAX];

		snprintf(path, sizeof(path), "%s%s", cases[i].folder, cases[i].rest);
		if (path_leads_into(data, path) != cases[i].leads)
			fail_msg("%s: %s", path, cases[i].leads ? "leads in" : "does not");
	}
}

static void folders_are_made_once_and_used_only_when_own(void **state)
{
	const struct world *w = *state;
	char run[PATH_MAX];
	struct err err;
	struct stat st;
	int parent, fd;

	snprintf(run, sizeof(run), "%s/run", w->data);
	parent = own_folder_open(run, &err);
	assert_true(parent >= 0);
	fd = own_folder_at(parent, "5", 0711, OWN_FOLDER_REFUSE, &err);
	assert_true(fd >= 0);
	assert_int_equal(fstat(fd, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0711);
	close(fd);
	assert_int_equal(own_folder_at(parent, "5", 0711, OWN_FOLDER_REFUSE, &err), -ERR_CONFLICT);
	fd = own_folder_at(parent, "5", 0711, OWN_FOLDER_KEEP, &err);
	assert_true(fd >= 0);
	close(fd);
	assert_int_equal(fchmodat(parent, "5", 0777, 0), 0);
	assert_int_equal(own_folder_at(parent, "5", 0711, OWN_FOLDER_KEEP, &err), -ERR_CONFLICT);
	assert_non_null(strstr(err.text, "chmod go-w"));
	assert_int_equal(symlinkat(w->home, parent, "link"), 0);
	assert_int_equal(own_folder_at(parent, "link", 0711, OWN_FOLDER_KEEP, &err), -ERR_CONFLICT);
	fd = openat(parent, "file", O_WRONLY | O_CREAT, 0600);
	assert_true(fd >= 0);
	close(fd);
	assert_int_equal(own_folder_at(parent, "file", 0711, OWN_FOLDER_KEEP, &err), -ERR_CONFLICT);
	close(parent);
}

static void a_folder_of_another_owner_is_refused(void **state)
{
	const struct world *w = *state;
	struct err err;

	if (geteuid() != 0)
		skip();
	assert_int_equal(chown(w->home, 12345, 12345), 0);
	assert_int_equal(own_folder_open(w->home, &err), -ERR_CONFLICT);
	assert_non_null(strstr(err.text, "belongs to uid 12345"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(paths_that_lead_in_are_known_in_every_spelling,
						world_make, world_drop),
		cmocka_unit_test_setup_teardown(folders_are_made_once_and_used_only_when_own,
						world_make, world_drop),
		cmocka_unit_test_setup_teardown(a_folder_of_another_owner_is_refused, world_make,
						world_drop),
	};

	return cmocka_run_group_tests_name("engine/own_folder", tests, NULL, NULL);
}
