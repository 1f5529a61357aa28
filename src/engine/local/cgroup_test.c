/* SPDX-License-Identifier: Apache-2.0 */
#include "base/testing.h"

#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "engine/local/cgroup.h"

static void a_machine_with_version_2_alone_is_understood(void **state)
{
	struct cgroup_set set;

	(void)state;
	cgroup_parents_read(
		"0::/system.slice/fairlead.service\n",
		"29 23 0:26 / /sys/fs/cgroup rw,nosuid shared:9 - cgroup2 cgroup2 rw,nsdelegate\n",
		&set);
	assert_string_equal(set.tree, "/sys/fs/cgroup/system.slice/fairlead.service");
	assert_true(set.tree_v2);
	assert_string_equal(set.memory, "");
	assert_string_equal(set.pids, "");
}

static void a_hybrid_machine_is_understood(void **state)
{
	struct cgroup_set set;

	(void)state;
	cgroup_parents_read(
		"9:name=systemd:/\n8:pids:/\n5:cpu,cpuacct:/x\n4:memory:/box/one\n0::/\n",
		"30 29 0:27 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n"
		"31 29 0:28 / /sys/fs/cgroup/pids rw - cgroup cgroup rw,pids\n"
		"32 29 0:29 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n",
		&set);
	assert_string_equal(set.tree, "/sys/fs/cgroup/unified");
	assert_true(set.tree_v2);
	assert_string_equal(set.memory, "/sys/fs/cgroup/memory/box/one");
	assert_false(set.memory_v2);
	assert_string_equal(set.pids, "/sys/fs/cgroup/pids");
}

static void without_version_2_the_freezer_or_pids_group_holds_the_tree(void **state)
{
	struct cgroup_set set;

	(void)state;
	cgroup_parents_read(
		"6:freezer:/f\n8:pids:/p\n",
		"30 29 0:27 / /cg/freezer rw - cgroup cgroup rw,freezer\n31 29 0:28 / /cg/pids rw - cgroup cgroup rw,pids\n",
		&set);
	assert_string_equal(set.tree, "/cg/freezer/f");
	assert_false(set.tree_v2);
	cgroup_parents_read("8:pids:/p\n", "31 29 0:28 / /cg/pids rw - cgroup cgroup rw,pids\n",
			    &set);
	assert_string_equal(set.tree, "/cg/pids/p");
}

static void a_containers_view_of_a_part_of_the_tree_is_understood(void **state)
{
	struct cgroup_set set;

	(void)state;
	cgroup_parents_read(
		"4:memory:/docker/abc/in\n",
		"30 29 0:27 /docker/abc /sys/fs/cgroup/memory ro - cgroup cgroup rw,memory\n",
		&set);
	assert_string_equal(set.memory, "/sys/fs/cgroup/memory/in");
	/* The mount shows another part than the one we are in: no use. */
	cgroup_parents_read(
		"4:memory:/docker/abcd\n",
		"30 29 0:27 /docker/abc /sys/fs/cgroup/memory ro - cgroup cgroup rw,memory\n",
		&set);
	assert_string_equal(set.memory, "");
}

static void nonsense_means_no_groups(void **state)
{
	static const char *const texts[] = { "",    "\n\n",     ":",           "::",     "0:",
					     "0::", "4:memory", "x:memory:/a", "a\nb\nc" };
	struct cgroup_set set;

	(void)state;
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
		for (size_t j = 0; j < sizeof(texts) / sizeof(texts[0]); j++) {
			cgroup_parents_read(texts[i], texts[j], &set);
			assert_true(cgroup_set_is_empty(&set));
		}
}

/* With real groups, where this machine and user have them. */
static void a_group_lists_owns_kills_and_goes(void **state)
{
	struct cgroup_set parents, set;
	struct pid_list members = { 0 };
	int fds[CGROUP_FOLDERS_MAX], go[2], status;
	char name[64];
	bool enforced;
	struct err err;

	(void)state;
	cgroup_find(&parents);
	if (!parents.tree[0])
		skip();
	snprintf(name, sizeof(name), "fairlead-test-%d", getpid());
	cgroup_set_name(&parents, name, &set);
	assert_int_equal(cgroup_make(&set, 64, &enforced, &err), 0);
	assert_int_equal(enforced, set.memory[0] != '\0');
	int count = cgroup_open(&set, fds, &err);
	assert_true(count > 0);
	assert_int_equal(pipe(go), 0);
	pid_t pid = fork();
	if (pid == 0) {
		for (int i = 0; i < count; i++)
			if (write(fds[i], "0", 1) != 1)
				_exit(1);
		if (write(go[1], "!", 1) != 1)
			_exit(1);
		for (;;)
			pause();
	}
	char byte;
	assert_int_equal(read(go[0], &byte, 1), 1);
	cgroup_members(&set, &members);
	assert_int_equal(members.count, 1);
	assert_int_equal(members.pids[0], pid);
	assert_true(cgroup_owns(&set, pid));
	assert_false(cgroup_owns(&set, getpid()));
	assert_int_equal(cgroup_remove(&set), 1);
	if (!cgroup_kill(&set))
		kill(pid, SIGKILL);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
	for (int i = 0; i < 1000 && cgroup_remove(&set) != 0; i++)
		usleep(10000);
	assert_int_equal(access(set.tree, F_OK), -1);
	for (int i = 0; i < count; i++)
		close(fds[i]);
	close(go[0]);
	close(go[1]);
	pid_list_deinit(&members);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_machine_with_version_2_alone_is_understood),
		cmocka_unit_test(a_hybrid_machine_is_understood),
		cmocka_unit_test(without_version_2_the_freezer_or_pids_group_holds_the_tree),
		cmocka_unit_test(a_containers_view_of_a_part_of_the_tree_is_understood),
		cmocka_unit_test(nonsense_means_no_groups),
		cmocka_unit_test(a_group_lists_owns_kills_and_goes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
