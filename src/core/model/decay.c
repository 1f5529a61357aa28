/* SPDX-License-Identifier: Apache-2.0 */
/*
 * 2^-x for x = whole + fraction: the whole part is a shift, the fraction a product of powers 2^(-1/2), 2^(-1/4), ...,
 * one for each bit of it that is set.
 */
#include "core/model/decay.h"

#include "base/check.h"
#include "core/model/facts.h"

__extension__ typedef unsigned __int128 wide;

enum { FRACTION_BITS = 32, POWER_BITS = 62, FINE_BITS = 10 };

/* 2^(-2^-(i + 1)) in 2^-62. */
static const uint64_t power[FRACTION_BITS] = {
	UINT64_C(3260954456333195553), UINT64_C(3877950241171266237), UINT64_C(4228934724888366668),
	UINT64_C(4416165660797809419), UINT64_C(4512867096753504463), UINT64_C(4562008997483360349),
	UINT64_C(4586780255215411731), UINT64_C(4599216278082138665), UINT64_C(4605446927862164404),
	UINT64_C(4608565417332308035), UINT64_C(4610125453837388245), UINT64_C(4610905670110601999),
	UINT64_C(4611295827762151833), UINT64_C(4611490918967884501), UINT64_C(4611588467665893036),
	UINT64_C(4611637242788701951), UINT64_C(4611661630543559956), UINT64_C(4611673824469352645),
	UINT64_C(4611679921444339948), UINT64_C(4611682969934856344), UINT64_C(4611684494180870228),
	UINT64_C(4611685256304066092), UINT64_C(4611685637365711255), UINT64_C(4611685827896545643),
	UINT64_C(4611685923161965790), UINT64_C(4611685970794676601), UINT64_C(4611685994611032191),
	UINT64_C(4611686006519210032), UINT64_C(4611686012473298964), UINT64_C(4611686015450343433),
	UINT64_C(4611686016938865668), UINT64_C(4611686017683126786)
};

static const uint64_t one = UINT64_C(1) << POWER_BITS;
static const uint64_t inverse_ln2 = UINT64_C(6196328019); /* 1 / ln 2 in 2^-32 */

/* 2^(-for / half_life) in 2^-62. */
static uint64_t decay_factor(int64_t for_ms, int64_t half_life_ms)
{
	uint64_t halvings, fraction, factor = one;

	if (for_ms <= 0 || half_life_ms <= 0)
		return one;
	halvings = (uint64_t)(for_ms / half_life_ms);
	if (halvings >= POWER_BITS)
		return 0;
	fraction = (uint64_t)(((wide)(for_ms % half_life_ms) << FRACTION_BITS) /
			      (uint64_t)half_life_ms);
	for (int i = 0; i < FRACTION_BITS; i++)
		if (fraction >> (FRACTION_BITS - 1 - i) & 1)
			factor = (uint64_t)((wide)factor * power[i] >> POWER_BITS);
	return factor >> halvings;
}

static int64_t bounded(wide value)
{
	return value > INT64_MAX ? INT64_MAX : (int64_t)value;
}

int64_t decay_kept(int64_t amount, int64_t for_ms, int64_t half_life_ms)
{
	CHECK(amount >= 0);
	return (int64_t)((wide)amount * decay_factor(for_ms, half_life_ms) >> POWER_BITS);
}

int64_t decay_accrued(int64_t share, int64_t for_ms, int64_t half_life_ms)
{
	wide fine; /* ms in 2^-FINE_BITS that count */

	CHECK(share >= 0);
	if (for_ms <= 0)
		return 0;
	if (half_life_ms <= 0) {
		fine = (wide)for_ms << FINE_BITS;
	} else {
		fine = (wide)half_life_ms * inverse_ln2 >> (FRACTION_BITS - FINE_BITS);
		fine = fine * (one - decay_factor(for_ms, half_life_ms)) >> POWER_BITS;
	}
	return bounded(fine * (uint64_t)share / GPU_SHARE >> FINE_BITS);
}
