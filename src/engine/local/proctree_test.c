/* SPDX-License-Identifier: Apache-2.0 */
#include "base/testing.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "engine/local/proctree.h"

/* A process that says so through the pipe, then waits. prepare runs in it first. */
static pid_t child(void (*prepare)(void *), void *argument)
{
	int ready[2];
	char byte;

	assert_int_equal(pipe(ready), 0);
	pid_t pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		if (prepare)
			prepare(argument);
		if (write(ready[1], "!", 1) != 1)
			_exit(1);
		for (;;)
			pause();
	}
	close(ready[1]);
	assert_int_equal(read(ready[0], &byte, 1), 1);
	close(ready[0]);
	return pid;
}

static void end(pid_t pid)
{
	kill(pid, SIGKILL);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
}

static bool has(const struct pid_list *list, pid_t pid)
{
	for (size_t i = 0; i < list->count; i++)
		if (list->pids[i] == pid)
			return true;
	return false;
}

static void put_brand(void *brand)
{
	if (!proctree_put_brand(*(uint64_t *)brand))
		_exit(1);
	if (setsid() < 0)
		_exit(1);
}

static void a_brand_is_found_and_no_other(void **state)
{
	uint64_t one = proctree_brand(1, 10, 0, 0), two = proctree_brand(1, 10, 1, 0);
	pid_t first = child(put_brand, &one), second = child(put_brand, &two);
	struct proctree tree = { .brand = one };
	AUTO_PIDS list = { 0 };

	(void)state;
	assert_true(one != two);
	proctree_members(&tree, true, &list);
	assert_true(has(&list, first));
	assert_false(has(&list, second));
	assert_false(has(&list, getpid()));
	assert_int_equal(proctree_signal(&tree, true, SIGKILL), 1);
	assert_int_equal(waitpid(first, NULL, 0), first);
	assert_int_equal(waitpid(second, NULL, WNOHANG), 0);
	end(second);
}

static void brands_of_neighbours_differ(void **state)
{
	(void)state;
	for (uint64_t attempt = 1; attempt < 200; attempt++)
		for (uint32_t rank = 0; rank < 50; rank++) {
			assert_true(proctree_brand(7, attempt, rank, 0) !=
				    proctree_brand(7, attempt, rank + 1, 0));
			assert_true(proctree_brand(7, attempt, rank, 0) !=
				    proctree_brand(7, attempt + 1, rank, 0));
			assert_true(proctree_brand(7, attempt, rank, 0) !=
				    proctree_brand(8, attempt, rank, 0));
		}
}

static void leave_orphan(void *pipe_end)
{
	if (fork() != 0)
		return;
	setsid();
	pid_t deep = fork();
	if (deep != 0)
		_exit(0); /* the middle one is gone: its child is an orphan */
	pid_t own = getpid();
	if (write(*(int *)pipe_end, &own, sizeof(own)) != (ssize_t)sizeof(own))
		_exit(1);
	for (;;)
		pause();
}

static void orphans_descend_from_the_subreaper(void **state)
{
	int ends[2];
	pid_t orphan;
	AUTO_PIDS list = { 0 };

	(void)state;
	prctl(PR_SET_CHILD_SUBREAPER, 1);
	assert_int_equal(pipe(ends), 0);
	pid_t first = child(leave_orphan, &ends[1]);
	assert_int_equal(read(ends[0], &orphan, sizeof(orphan)), (int)sizeof(orphan));
	struct proctree tree = { .root = getpid() };
	/* While the one between goes, the orphan changes hands and a single look may miss it; whoever
	 * kills a tree looks again until nothing is left. */
	do
		proctree_members(&tree, false, &list);
	while (!has(&list, orphan));
	assert_true(has(&list, first));
	assert_true(proctree_owns(&tree, orphan));
	assert_false(proctree_owns(&tree, 1));
	/* The kill loop of the shepherd: until no child is left. */
	do
		(void)proctree_signal(&tree, false, SIGKILL);
	while (waitpid(-1, NULL, 0) > 0);
	proctree_members(&tree, false, &list);
	assert_int_equal(list.count, 0);
	prctl(PR_SET_CHILD_SUBREAPER, 0);
	close(ends[0]);
	close(ends[1]);
}

/* A pid that belongs to somebody else now is not signalled, whatever list it stands in. */
static void what_has_no_mark_is_never_signalled(void **state)
{
	pid_t stranger = child(NULL, NULL);
	struct proctree tree = { .brand = proctree_brand(1, 2, 3, 0),
				 .marker = "FAIRLEAD_REPORT_SOCKET=/none" };

	(void)state;
	assert_false(proctree_signal_one(&tree, stranger, SIGKILL));
	assert_int_equal(waitpid(stranger, NULL, WNOHANG), 0);
	end(stranger);
}

static void ignore_signal(int sig)
{
	(void)sig;
}

static void catch_usr1(void *nothing)
{
	(void)nothing;
	signal(SIGUSR1, ignore_signal);
}

static void a_notice_goes_only_to_who_waits_for_it(void **state)
{
	pid_t without = child(NULL, NULL);
	struct proctree tree = { .root = getpid() };

	(void)state;
	assert_int_equal(proctree_notify(&tree, SIGUSR1), 0);
	pid_t with = child(catch_usr1, NULL);
	assert_int_equal(proctree_notify(&tree, SIGUSR1), 1);
	assert_int_equal(waitpid(without, NULL, WNOHANG), 0);
	end(with);
	end(without);
}

static void grow(void *mib)
{
	size_t size = (size_t)(*(int *)mib) << 20;
	volatile char *data = malloc(size); /* the stores must happen */

	for (size_t i = 0; data && i < size; i += 4096)
		data[i] = 1;
}

static void memory_of_the_tree_is_summed(void **state)
{
	int mib = 48;
	pid_t one = child(grow, &mib), two = child(grow, &mib);
	struct proctree tree = { .root = getpid() };

	(void)state;
	for (int exact = 0; exact < 2; exact++) {
		assert_true(proctree_memory_mib(&tree, exact) >= 2 * mib);
		assert_true(proctree_memory_mib(&tree, exact) < 16 * mib);
	}
	end(one);
	end(two);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_brand_is_found_and_no_other),
		cmocka_unit_test(brands_of_neighbours_differ),
		cmocka_unit_test(orphans_descend_from_the_subreaper),
		cmocka_unit_test(what_has_no_mark_is_never_signalled),
		cmocka_unit_test(a_notice_goes_only_to_who_waits_for_it),
		cmocka_unit_test(memory_of_the_tree_is_summed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
