/* SPDX-License-Identifier: Apache-2.0 */
/* The body of a job as the daemon reads it back to launch it: sealed, but it may have been sealed by a later release. */
#include "fuzz/fuzz.h"

#include <string.h>

#include "api/jobfile/jobfile.h"
#include "base/arena.h"
#include "base/check.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct job_body body;
	struct err err = { 0 };
	struct arena arena;
	size_t secrets = 0;
	int rc;

	arena_init(&arena, 256 << 20);
	rc = job_body_parse((const char *)data, size, &arena, &body, &err);
	fuzz_accepted = rc == 0;
	if (rc < 0) {
		fuzz_check_refusal(rc, &err);
	} else {
		CHECK(!body.argv != !body.script || body.role_count);
		CHECK(!body.argv || body.argv[0]);
		CHECK(!body.workdir || body.workdir[0] == '/');
		CHECK(!body.checkpoint_path || body.checkpoint_path[0] == '/');
		CHECK(body.checkpoint_signal >= 0 && body.checkpoint_signal < 65);
		for (const char *const *word = job_git_env(&body.git, &arena); *word; word++)
			CHECK(strncmp(*word, "FAIRLEAD_GIT_", 13) == 0 && strchr(*word, '=') &&
			      !strpbrk(*word, "\n\r"));
		for (const char *const *env = body.env; *env; env++)
			CHECK(strchr(*env, '=') != NULL);
		for (const char *const *secret = body.secrets; *secret; secret++)
			secrets += strlen(*secret);
		CHECK(secrets <= size);
	}
	arena_deinit(&arena);
	return 0;
}
