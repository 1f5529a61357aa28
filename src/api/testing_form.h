/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Requests of tests whose answers are checked against the schemas (schemas.def). */
#include "api/testing.h"

/* The value has the form of that name: every field known and of its type, none missing. */
void form_check(const char *name, const json_t *value);
/* GET, 200, of that form. */
struct answer form_get(const char *user, const char *path, const char *schema);
/* The status, and of an error the form. */
struct answer form_sent(const char *user, const char *method, const char *path, const char *body,
			int status);
/* 200 and Done. */
void form_change(const char *user, const char *method, const char *path, const char *body);
/* An error of that status whose text has that part. */
void form_refused(const char *user, const char *method, const char *path, const char *body,
		  int status, const char *part);
int64_t answer_number(const struct answer *answer, const char *name);
const char *answer_text(const struct answer *answer,
			const char *name); /* "(none)" when there is none */
