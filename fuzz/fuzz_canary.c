/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The canary: a target with a bug, which every way of running targets must find. Its corpus leads up to the bug and
 * stops one change short of it. canary_test.py and the campaign expect it to ring.
 */
#include "fuzz/fuzz.h"

#include <stdlib.h>
#include <string.h>

#include "base/check.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const char alarm_is_dead[] = "FIRE";

	fuzz_accepted = size > 0;
	for (size_t i = 0; i + 4 <= size; i++)
		CHECK(memcmp(data + i, alarm_is_dead, 4) != 0);
	return 0;
}
