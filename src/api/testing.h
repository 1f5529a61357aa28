/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * A small daemon for the API's tests: the real core, journal and history in memory, a thread per piece of work, the real
 * server on a Unix socket and a TCP port. And the client's side: one request, one answer.
 *
 * People (token of each: testing_token):  team red: vera (viewer), rita (researcher), sam (service), lena (lead),
 * rob (researcher);  team blue: bob (researcher), lars (lead);  ada (admin, no team).  root = uid 0 is "root", an admin.
 * Queues: default (everybody), red (team red), red-low (below red), blue (team blue). Nodes: n0, n1 with 4 GPUs each, simulated.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <jansson.h>

#include "api/backend.h"
#include "api/http/http.h"

struct answer {
	int status;
	char *text; /* body, NUL behind it; owned */
	size_t size;
	json_t *json; /* NULL when it is none; owned */
	char *head; /* owned */
};

void testing_start(void);
void testing_stop(void);
void testing_reset(void); /* the world as at the start; connections stay */
const char *testing_token(const char *user);
const struct facts *testing_facts(void); /* of the moment; no request may be under way */
void testing_apply(const struct event *event); /* as admitted; decides nothing */
/* admitted; decided */
uint32_t testing_job(const char *user, const char *team, const char *queue, int64_t gpus);
void testing_decide(void);
void testing_engine(uint32_t job); /* its ranks become ready and start */
const char *testing_logs(void);
int testing_port(void);
const char *testing_socket(void);
void testing_refuse(bool refuse); /* commands are refused as on a full disk */
uint64_t testing_last_seq(void);

/* user NULL: over the Unix socket (uid of the test); "": over TCP without a token; else over TCP with that user's token. headers:
 * more lines, each with CR LF; NULL = none. Free with answer_free. */
struct answer testing_call(const char *user, const char *method, const char *path,
			   const char *headers, const char *body);
void answer_free(struct answer *answer);
/* testing_call without body, the status checked. */
struct answer testing_get(const char *user, const char *path, int status);
int testing_dial(bool local);
