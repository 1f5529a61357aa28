/* SPDX-License-Identifier: Apache-2.0 */
#include "api/order.h"

#include <stdlib.h>
#include <string.h>

static int named_compare(const void *a, const void *b)
{
	const struct named *x = a, *y = b;
	const int order = strverscmp(x->name, y->name); /* node2 before node10 */

	return order ? order : (x->id > y->id) - (x->id < y->id);
}

void named_sort(struct named *list, size_t count)
{
	if (count)
		qsort(list, count, sizeof *list, named_compare);
}
