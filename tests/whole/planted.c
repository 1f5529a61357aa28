/* SPDX-License-Identifier: Apache-2.0 */
/* Which of the planted defects acts (planted.txt); 0 = none. */
#include <stdlib.h>

extern int planted_number;
int planted_number;

__attribute__((constructor)) static void planted_read(void)
{
	const char *given = getenv("PLANTED");

	planted_number = given ? (int)strtol(given, NULL, 10) : 0;
}
