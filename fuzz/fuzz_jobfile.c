/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A job file from a stranger. What is taken keeps inside its limits, its event goes through the journal's codec unchanged, its
 * body can be launched, and written again it reads the same.
 */
#include "fuzz/fuzz.h"

#include <string.h>

#include "api/jobfile/jobfile.h"
#include "base/arena.h"
#include "base/check.h"
#include "base/conf.h"
#include "base/parse.h"
#include "core/model/facts.h"

static void check_name(const char *text)
{
	CHECK(strlen(text) <= NAME_MAX_BYTES);
	for (const char *p = text; *p; p++)
		CHECK((unsigned char)*p >= 0x20 && *p != 0x7f && *p != '/');
}

static void check_numbers(const struct event_job_submitted *job)
{
	CHECK(job->tasks_min >= 1 && job->tasks_min <= job->tasks_max &&
	      job->tasks_max <= TASKS_MAX);
	CHECK(job->gpus >= 0 && job->gpus <= NODE_GPUS_MAX);
	CHECK(job->gpu_memory_mib >= 0 && job->memory_mib >= 0);
	CHECK(job->cpu_milli >= 0 && job->cpu_milli <= JOBFILE_CPUS_MAX * 1000);
	CHECK(job->priority >= -JOBFILE_PRIORITY_MAX && job->priority <= JOBFILE_PRIORITY_MAX);
	CHECK(job->limit_ms >= 0 && job->estimate_ms >= 0 && job->grace_ms >= -1 &&
	      job->checkpoint_every_ms >= 0);
	CHECK(job->retries >= 0 && job->retries <= JOBFILE_RETRIES_MAX);
	CHECK(job->array_count >= 1 && job->array_count <= ARRAY_MAX);
	CHECK(job->depends_count <= DEPENDS_MAX);
	CHECK(job->job == 0 && job->uid <= 0 && !*job->user &&
	      !*job->body); /* nobody says from outside who he is */
}

static void check_body(const struct job_request *request, struct arena *arena)
{
	struct job_body body;
	struct err err;

	CHECK(request->body_size <= JOBFILE_BODY_MAX &&
	      strlen(request->body) == request->body_size);
	CHECK(job_body_parse(request->body, request->body_size, arena, &body, &err) == 0);
	/* One of the two; of unlike tasks each role has one, its own or the job's. */
	CHECK(!body.argv || !body.script);
	CHECK(body.argv || body.script || body.role_count);
	for (uint32_t i = 0; i < body.role_count; i++) {
		const struct job_role *role = &body.roles[i];

		CHECK(!role->argv || !role->script);
		CHECK(role->argv || role->script || body.argv || body.script);
	}
	CHECK(!body.git.remote ||
	      strcmp(job_git_remote(body.git.remote, arena), body.git.remote) == 0);
	CHECK(!body.workdir || body.workdir[0] == '/');
	CHECK(!body.checkpoint_path || body.checkpoint_path[0] == '/');
	for (const char *const *env = body.env; *env; env++)
		CHECK(strchr(*env, '=') != NULL && **env != '=' &&
		      strncmp(*env, "FAIRLEAD_", 9) != 0);
}

static void check_codec(const struct event *event, struct arena *arena, struct buf *ret_text)
{
	struct event back;
	struct err err;
	AUTO_BUF again = BUF_INIT;

	event_encode(event, ret_text);
	CHECK(event_decode(EVENT_JOB_SUBMITTED, 1, 0, ret_text->data, ret_text->size, arena, &back,
			   &err) == 0);
	event_encode(&back, &again);
	CHECK(strcmp(again.data, ret_text->data) == 0);
}

/* Written in one line it is the same job. */
static void check_rewritten(const char *text, size_t size, const struct job_request *request,
			    const char *event, struct arena *arena)
{
	struct conf *document;
	struct job_request again;
	struct err err;
	AUTO_BUF line = BUF_INIT;
	AUTO_BUF second = BUF_INIT;

	CHECK(jobfile_read_text("job.yaml", text, size, arena, &document, &err) == 0);
	jobfile_write(document, &line);
	CHECK(jobfile_parse("job.yaml", line.data, line.size, arena, &again, &err) == 0);
	event_encode(&again.event, &second);
	CHECK(strcmp(second.data, event) == 0);
	CHECK(again.body_size == request->body_size &&
	      memcmp(again.body, request->body, again.body_size) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const char *text = (const char *)data;
	struct job_request request;
	struct err err = { 0 };
	struct arena arena;
	AUTO_BUF event = BUF_INIT;
	int rc;

	arena_init(&arena, 256 << 20);
	rc = jobfile_parse("job.yaml", text, size, &arena, &request, &err);
	fuzz_accepted = rc == 0;
	if (rc < 0) {
		fuzz_check_place(rc, &err, text, size);
	} else {
		check_name(request.event.job_submitted.name);
		check_name(request.event.job_submitted.queue);
		check_numbers(&request.event.job_submitted);
		check_body(&request, &arena);
		check_codec(&request.event, &arena, &event);
		check_rewritten(text, size, &request, event.data, &arena);
	}
	arena_deinit(&arena);
	return 0;
}
