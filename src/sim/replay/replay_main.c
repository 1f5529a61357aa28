/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/replay/replay_main.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/check.h"
#include "sim/replay/core_run.h"
#include "sim/replay/page.h"
#include "sim/replay/plain.h"
#include "sim/replay/replay_report.h"
#include "sim/scenario_file.h"
#include "sim/scenario_main.h"

enum { EXIT_BAD_INPUT = 2 };
#define MEMORY_CAP ((size_t)1 << 30)

static void progress(void *context, uint32_t ended, uint32_t all)
{
	fprintf(stderr, "\r%s: %3d %%", (const char *)context, (int)((uint64_t)ended * 100 / all));
}

static int policy_run(const struct replay_words *o, const char *policy, const struct scenario *site,
		      const struct workload *workload, const struct availability *availability,
		      struct arena *arena, struct outcome *ret, struct err *err)
{
	const struct plain_policy *plain;
	struct scenario ruled = *site;
	const bool own = strcmp(policy, "fairlead") == 0;
	const bool watched = isatty(STDERR_FILENO);
	int rc;

	if (strncmp(policy, "plain:", 6) == 0) {
		plain = plain_find(policy + 6);
		if (!plain)
			return err_set(err, ERR_INVALID,
				       "plain policy \"%.40s\" is not known; there are %s",
				       policy + 6, plain_names());
		return plain_run(plain, site, workload, availability, o->seed, ret, err);
	}
	if (!own && scenario_rules_file_read(policy, arena, &ruled, err) < 0)
		return -1;
	rc = core_run(policy, &ruled, workload,
		      &(struct core_run_options){ .foretell = o->foretell,
						  .availability = availability,
						  .progress = watched ? progress : NULL,
						  .context = (void *)(uintptr_t)policy },
		      ret, err);
	if (watched)
		fprintf(stderr, "\r\033[K");
	return rc;
}

static int file_write(const char *folder, const char *name, const struct buf *text, struct err *err)
{
	char path[4096];
	FILE *file;
	bool good;

	snprintf(path, sizeof path, "%s/%s", folder, name);
	file = fopen(path, "we");
	if (!file)
		return err_errno(err, ERR_IO, errno, "can't write %s", path);
	good = fwrite(text->data, 1, text->size, file) == text->size;
	good = fclose(file) == 0 && good;
	return good ? 0 : err_errno(err, ERR_IO, errno, "can't write %s", path);
}

static int report_write(const struct replay_words *o, const struct replay_result *results,
			const struct buf *json, struct err *err)
{
	AUTO_BUF page = BUF_INIT;
	int rc;

	if (mkdir(o->report, 0777) < 0 && errno != EEXIST)
		return err_errno(err, ERR_IO, errno, "can't make the folder %s", o->report);
	replay_page(&page, o->cluster, results, o->policy_count);
	rc = file_write(o->report, "replay.json", json, err);
	if (rc == 0)
		rc = file_write(o->report, "replay.html", &page, err);
	if (rc == 0 && !o->json)
		printf("\nReport: %s/replay.html\n", o->report);
	return rc;
}

static int results_tell(const struct replay_words *o, const struct replay_result *results,
			struct err *err)
{
	AUTO_BUF json = BUF_INIT;

	if (o->json || o->report)
		replay_json(&json, o->cluster, results, o->policy_count);
	if (o->json)
		fwrite(json.data, 1, json.size, stdout);
	else
		replay_table(stdout, results, o->policy_count);
	return o->report ? report_write(o, results, &json, err) : 0;
}

static int replay(const struct replay_words *o, struct err *err)
{
	struct replay_result *results = calloc(o->policy_count, sizeof *results);
	struct workload workload = { 0 };
	struct availability availability = { 0 };
	struct scenario site;
	struct arena arena;
	int rc;

	CHECK(results);
	arena_init(&arena, MEMORY_CAP);
	rc = scenario_site_file_read(o->cluster, &arena, &site, err);
	if (rc == 0)
		rc = workload_read(o->workload, &workload, err);
	if (rc == 0 && o->availability)
		rc = availability_read(o->availability, &availability, err);
	for (uint32_t i = 0; rc == 0 && i < o->policy_count; i++) {
		rc = policy_run(o, o->policies[i], &site, &workload,
				o->availability ? &availability : NULL, &arena, &results[i].outcome,
				err);
		if (rc == 0)
			figures_make(&results[i].outcome, &results[i].figures);
	}
	if (rc == 0)
		rc = results_tell(o, results, err);
	for (uint32_t i = 0; i < o->policy_count; i++)
		outcome_deinit(&results[i].outcome);
	free(results);
	workload_deinit(&workload);
	availability_deinit(&availability);
	arena_deinit(&arena);
	return rc;
}

int sim_replay_main(const char *command, const struct replay_words *words)
{
	struct err err = { 0 };

	if (replay(words, &err) < 0)
		return sim_complain(command, &err), EXIT_BAD_INPUT;
	return 0;
}
