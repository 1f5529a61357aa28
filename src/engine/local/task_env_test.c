/* SPDX-License-Identifier: Apache-2.0 */
#include "base/testing.h"

#include "base/arena.h"
#include "base/buf.h"
#include "engine/local/task_env.h"

static const struct engine_gpu_place places[] = {
	{ .rank = 0,
	  .node = "a",
	  .gpu_mask = 0x8000000000000001,
	  .local_rank = 0,
	  .local_size = 2 },
	{ .rank = 1, .node = "b", .local_rank = 0, .local_size = 1, .cpu_milli = 500 },
	{ .rank = 2, .node = "a", .gpu_mask = 6, .local_rank = 1, .local_size = 2 },
};

static const char **build(const char *const *env, uint32_t rank, struct arena *arena)
{
	static const char *const made_from[] = { "FAIRLEAD_GIT_COMMIT=a=b", NULL };
	struct engine_start start = { .made_from = made_from,
				      .job = 3,
				      .attempt = 4,
				      .job_name = "name",
				      .user = "u",
				      .env = env,
				      .place_count = 3,
				      .places = places };
	static struct task_env_nodes nodes;

	task_env_nodes(&start, arena, &nodes);
	struct task_env_place place = {
		.nodes = &nodes, .report_socket = "/r", .hostfile = "/h", .port = 1234
	};
	return task_env_build(&start, rank, &place, arena);
}

static void unlike_tasks_are_told_their_role_and_where_the_others_are(void **state)
{
	static const struct engine_gpu_place of_roles[] = {
		{ .rank = 0, .node = "a" },
		{ .rank = 1, .node = "a", .gpu_mask = 1, .role = 1 },
		{ .rank = 2, .node = "b", .gpu_mask = 1, .role = 1, .role_rank = 1 },
	};
	const char *const own[] = { "WHO=server", "FAIRLEAD_ROLE=stale", NULL }, *const all[] = {
		"WHO=job", NULL
	};
	const struct engine_role roles[] = { { .name = "server", .size = 1, .env = own },
					     { .name = "actor-2", .size = 2, .env = all } };
	struct engine_start start = {
		.env = all, .place_count = 3, .places = of_roles, .roles = roles, .role_count = 2
	};
	struct task_env_nodes nodes;
	struct arena arena;
	const char **env;

	(void)state;
	arena_init(&arena, 1 << 20);
	task_env_nodes(&start, &arena, &nodes);
	const struct task_env_place place = { .nodes = &nodes, .port = 1 };
	env = task_env_build(&start, 0, &place, &arena);
	assert_string_equal(task_env_find(env, "FAIRLEAD_ROLE"), "server");
	assert_string_equal(task_env_find(env, "FAIRLEAD_ROLE_SIZE"), "1");
	assert_string_equal(task_env_find(env, "WHO"), "server");
	env = task_env_build(&start, 2, &place, &arena);
	assert_string_equal(task_env_find(env, "FAIRLEAD_ROLE"), "actor-2");
	assert_string_equal(task_env_find(env, "FAIRLEAD_ROLE_RANK"), "1");
	assert_string_equal(task_env_find(env, "FAIRLEAD_ROLES"), "server:1,actor-2:2");
	assert_string_equal(task_env_find(env, "FAIRLEAD_HOSTS_ACTOR_2"), "127.0.0.1,127.0.0.1");
	assert_string_equal(task_env_find(env, "WHO"), "job");
	arena_deinit(&arena);
}

static void fairleads_names_win_over_the_jobs(void **state)
{
	const char *const mine[] = { "RANK=9",
				     "FAIRLEAD_GIT_COMMIT=stale",
				     "FAIRLEAD_RESUME_FROM=/stale",
				     "FAIRLEAD_SIMULATED_GPUS=1",
				     "FAIRLEAD_CHECKPOINT_EVERY_SECONDS=5",
				     "CUDA_VISIBLE_DEVICES=0,1,2",
				     "MINE=1",
				     "RANKING=2",
				     NULL };
	struct arena arena;

	(void)state;
	arena_init(&arena, 1 << 20);
	const char **env = build(mine, 1, &arena);
	assert_string_equal(task_env_find(env, "RANK"), "1");
	assert_string_equal(task_env_find(env, "FAIRLEAD_GIT_COMMIT"), "a=b");
	assert_string_equal(task_env_find(env, "RANKING"), "2");
	assert_string_equal(task_env_find(env, "MINE"), "1");
	assert_string_equal(task_env_find(env, "CUDA_VISIBLE_DEVICES"), "");
	assert_null(task_env_find(env, "FAIRLEAD_RESUME_FROM"));
	assert_null(task_env_find(env, "FAIRLEAD_SIMULATED_GPUS"));
	assert_null(task_env_find(env, "FAIRLEAD_CHECKPOINT_EVERY_SECONDS"));
	for (size_t i = 0; env[i]; i++)
		for (size_t j = 0; j < i; j++)
			assert_false(strcmp(env[i], env[j]) == 0);
	arena_deinit(&arena);
}

static void nodes_count_in_order_of_their_first_rank(void **state)
{
	struct arena arena;

	(void)state;
	arena_init(&arena, 1 << 20);
	assert_string_equal(task_env_find(build(NULL, 0, &arena), "NODE_RANK"), "0");
	assert_string_equal(task_env_find(build(NULL, 1, &arena), "NODE_RANK"), "1");
	assert_string_equal(task_env_find(build(NULL, 2, &arena), "NODE_RANK"), "0");
	assert_string_equal(task_env_find(build(NULL, 0, &arena), "CUDA_VISIBLE_DEVICES"), "0,63");
	assert_string_equal(task_env_find(build(NULL, 2, &arena), "CUDA_VISIBLE_DEVICES"), "1,2");
	assert_string_equal(task_env_find(build(NULL, 1, &arena), "OMP_NUM_THREADS"), "1");
	assert_null(task_env_find(build(NULL, 0, &arena), "OMP_NUM_THREADS"));
	assert_string_equal(task_env_find(build(NULL, 0, &arena), "FAIRLEAD_HOSTS"),
			    "127.0.0.1,127.0.0.1");
	arena_deinit(&arena);
}

static void the_host_file_names_a_host_once_with_a_slot_for_each_process_of_a_launcher(void **state)
{
	struct engine_start start = { .place_count = 3, .places = places };
	struct task_env_nodes nodes;
	struct arena arena;
	AUTO_BUF hosts = BUF_INIT;

	(void)state;
	arena_init(&arena, 1 << 20);
	task_env_nodes(&start, &arena, &nodes);
	assert_int_equal(nodes.count, 2);
	assert_int_equal(nodes.slots[0], 4); /* two GPUs in each of its two tasks */
	assert_int_equal(nodes.slots[1], 1); /* a task without a GPU */
	task_env_hostfile(&hosts, &nodes);
	assert_string_equal(buf_text(&hosts), "127.0.0.1 slots=5\n");
	assert_string_equal(task_env_find(build(NULL, 2, &arena), "FAIRLEAD_GPUS"), "2");
	assert_string_equal(task_env_find(build(NULL, 1, &arena), "FAIRLEAD_GPUS"), "0");
	arena_deinit(&arena);
}

static void a_task_that_shares_its_gpu_is_told_its_part(void **state)
{
	const char *const stale[] = { "FAIRLEAD_GPU_SHARE=1", "FAIRLEAD_GPU_MEMORY_MIB=9", NULL };
	static const struct engine_gpu_place sharing[] = {
		{ .node = "a", .gpu_mask = 8, .gpu_share_micro = 142857, .gpu_memory_mib = 6582 },
		{ .rank = 1, .node = "a", .gpu_mask = 16, .gpu_share_micro = 500000 },
		{ .rank = 2, .node = "a", .gpu_mask = 32 },
		{ .rank = 3,
		  .node = "a",
		  .gpu_mask = 64,
		  .gpu_share_micro = 285714,
		  .gpu_memory_mib = 20096,
		  .gpu_slice = "2g.20gb",
		  .gpu_slice_start = 4 },
	};
	struct engine_start start = { .env = stale, .place_count = 4, .places = sharing };
	struct task_env_place place = { 0 };
	struct task_env_nodes nodes;
	struct arena arena;
	const char **env;

	(void)state;
	arena_init(&arena, 1 << 20);
	task_env_nodes(&start, &arena, &nodes);
	place.nodes = &nodes;
	env = task_env_build(&start, 0, &place, &arena);
	assert_string_equal(task_env_find(env, "CUDA_VISIBLE_DEVICES"), "3");
	assert_string_equal(task_env_find(env, "FAIRLEAD_GPUS"), "1");
	assert_string_equal(task_env_find(env, "FAIRLEAD_GPU_SHARE"), "0.142857");
	assert_string_equal(task_env_find(env, "FAIRLEAD_GPU_MEMORY_MIB"), "6582");
	env = task_env_build(&start, 1, &place, &arena);
	assert_string_equal(task_env_find(env, "FAIRLEAD_GPU_SHARE"), "0.5");
	assert_null(task_env_find(env, "FAIRLEAD_GPU_MEMORY_MIB"));
	env = task_env_build(&start, 3, &place, &arena);
	assert_string_equal(task_env_find(env, "CUDA_VISIBLE_DEVICES"), "MIG-simulated-a-6-4");
	assert_string_equal(task_env_find(env, "FAIRLEAD_GPU_SLICE"), "2g.20gb");
	assert_string_equal(task_env_find(env, "FAIRLEAD_GPU_MEMORY_MIB"), "20096");
	env = task_env_build(&start, 2, &place, &arena);
	assert_null(task_env_find(env, "FAIRLEAD_GPU_SLICE"));
	assert_null(task_env_find(env, "FAIRLEAD_GPU_SHARE"));
	assert_null(task_env_find(env, "FAIRLEAD_GPU_MEMORY_MIB"));
	arena_deinit(&arena);
}

static void the_shell_fills_what_the_job_does_not_say_and_fairlead_wins(void **state)
{
	static const struct engine_gpu_place alone[] = { { .node = "a", .gpu_mask = 1 } };
	static const char *const mine[] = { "PYTHONPATH=/own", NULL };
	static const char *const shell[] = { "PATH=/venv/bin:/usr/bin", "PYTHONPATH=/shell",
					     "VIRTUAL_ENV=/venv", "CUDA_VISIBLE_DEVICES=7", NULL };
	struct engine_start start = {
		.env = mine, .shell_env = shell, .place_count = 1, .places = alone
	};
	struct task_env_place place = { 0 };
	struct task_env_nodes nodes;
	struct arena arena;
	const char **env, *path, *bin;

	(void)state;
	arena_init(&arena, 1 << 20);
	task_env_nodes(&start, &arena, &nodes);
	place.nodes = &nodes;
	env = task_env_build(&start, 0, &place, &arena);
	path = task_env_find(env, "PATH");
	bin = task_env_find(env, "FAIRLEAD_BIN");
	assert_string_equal(path, arena_printf(&arena, "/venv/bin:/usr/bin:%s", bin));
	assert_string_equal(task_env_find(env, "PYTHONPATH"), "/own");
	assert_string_equal(task_env_find(env, "VIRTUAL_ENV"), "/venv");
	assert_string_equal(task_env_find(env, "CUDA_VISIBLE_DEVICES"), "0");
	arena_deinit(&arena);
}

static void the_account_fills_only_what_is_missing(void **state)
{
	const char *const mine[] = { "HOME=/elsewhere", "PATH=/opt", NULL };
	struct arena arena;

	(void)state;
	arena_init(&arena, 1 << 20);
	const char **env =
		task_env_add_account(mine, "alice", "/home/alice", "/bin/zsh", false, &arena);
	assert_string_equal(task_env_find(env, "HOME"), "/elsewhere");
	assert_string_equal(task_env_find(env, "PATH"), "/opt");
	assert_string_equal(task_env_find(env, "USER"), "alice");
	assert_string_equal(task_env_find(env, "SHELL"), "/bin/zsh");
	assert_string_equal(task_env_find(env, "LANG"), "C.UTF-8");
	arena_deinit(&arena);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(fairleads_names_win_over_the_jobs),
		cmocka_unit_test(unlike_tasks_are_told_their_role_and_where_the_others_are),
		cmocka_unit_test(nodes_count_in_order_of_their_first_rank),
		cmocka_unit_test(
			the_host_file_names_a_host_once_with_a_slot_for_each_process_of_a_launcher),
		cmocka_unit_test(a_task_that_shares_its_gpu_is_told_its_part),
		cmocka_unit_test(the_shell_fills_what_the_job_does_not_say_and_fairlead_wins),
		cmocka_unit_test(the_account_fills_only_what_is_missing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
