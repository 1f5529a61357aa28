/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/fault.h"

#include <errno.h>
#include <string.h>

#include "base/err.h"
#include "base/testing.h"
#include "engine/engine.h"

static enum engine_fault fault_by(int errnum)
{
	struct err err = { .errnum = errnum };

	return fault_of(&err);
}

static void errors_of_the_system_name_what_the_machine_lacks(void **state)
{
	static const int passing[] = { ENOSPC, EDQUOT, EAGAIN, EMFILE, ENFILE,  ENOMEM,
				       ENOLCK, EIO,    ESTALE, ENXIO,  EUCLEAN, EROFS },
			 others[] = { 0, ENOENT, EACCES, EPERM, EINVAL, ENOTDIR, EEXIST, E2BIG };

	(void)state;
	for (size_t i = 0; i < sizeof(passing) / sizeof(passing[0]); i++)
		assert_int_not_equal(fault_by(passing[i]), ENGINE_FAULT_NONE);
	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
		assert_int_equal(fault_by(others[i]), ENGINE_FAULT_NONE);
	assert_int_equal(fault_of(NULL), ENGINE_FAULT_NONE);
	assert_int_equal(fault_cause(ENGINE_FAULT_NONE), ENGINE_CAUSE_START);
	assert_int_equal(fault_cause(ENGINE_FAULT_SPACE), ENGINE_CAUSE_NO_SPACE);
	assert_int_equal(fault_cause(ENGINE_FAULT_LOCKS), ENGINE_CAUSE_MACHINE);
}

static void used_up_watches_are_told_from_a_full_disk(void **state)
{
	struct err err;

	(void)state;
	assert_int_equal(fault_watches(&err, "/d"), -ERR_UNAVAILABLE);
	assert_int_equal(fault_of(&err), ENGINE_FAULT_WATCHES);
	assert_int_equal(fault_watches(NULL, "/d"), -ERR_UNAVAILABLE);
}

/* Nodes are known by these texts after a restart, and records have the words. */
static void each_fault_has_words_of_its_own(void **state)
{
	(void)state;
	for (int i = ENGINE_FAULT_NONE + 1; i < ENGINE_FAULTS; i++) {
		const enum engine_fault fault = (enum engine_fault)i;

		assert_true(*fault_word(fault) && *fault_reason(fault) && *fault_remedy(fault));
		for (int j = ENGINE_FAULT_NONE; j < i; j++) {
			assert_string_not_equal(fault_word(fault),
						fault_word((enum engine_fault)j));
			assert_string_not_equal(fault_reason(fault),
						fault_reason((enum engine_fault)j));
		}
	}
	assert_string_equal(fault_reason(ENGINE_FAULT_SPACE),
			    "its disk is full: nothing is started until there is room");
}

static void only_a_want_of_descriptors_memory_or_processes_blinds(void **state)
{
	static const struct {
		int errnum;
		bool blinds;
	} rows[] = { { EMFILE, true }, { ENFILE, true },  { ENOMEM, true }, { EAGAIN, true },
		     { EIO, false },   { ENOENT, false }, { ENOSPC, false } };

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct err err = { .errnum = rows[i].errnum };

		assert_int_equal(fault_blinds(&err), rows[i].blinds);
	}
	assert_false(fault_blinds(NULL));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(errors_of_the_system_name_what_the_machine_lacks),
		cmocka_unit_test(used_up_watches_are_told_from_a_full_disk),
		cmocka_unit_test(each_fault_has_words_of_its_own),
		cmocka_unit_test(only_a_want_of_descriptors_memory_or_processes_blinds),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
