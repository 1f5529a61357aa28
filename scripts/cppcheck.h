/* SPDX-License-Identifier: Apache-2.0 */
/* Loops of the libraries' headers, which cppcheck does not read: in plain C, for scripts/check. */
#pragma once
#define json_array_foreach(array, index, value) \
	for (index = 0; index < json_array_size(array) && (value = json_array_get(array, index)); index++)
#define json_object_foreach(object, key, value) \
	for (key = 0, value = 0; (key = json_next(object, key)) && (value = json_object_get(object, key));)
#define HASH_ITER(hh, head, element, next) for (element = head, next = 0; element; element = next)
#define LL_FOREACH(head, element) for (element = head; element; element = element->next)
#define DL_FOREACH(head, element) for (element = head; element; element = element->next)
#define DL_FOREACH_SAFE(head, element, after) for (element = head, after = 0; element; element = after)
