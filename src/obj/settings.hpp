// Control variables: one table of what can be set by WEFT_* in the environment. Included by comm/world.cpp and by those
// who list them. Read once per start; no lock.
// WEFT_TUNED names a file with values for those that the environment leaves alone: lines of NAME=VALUE, and whatever follows a #
// (`weft tune` writes such files).
#pragma once
#include <cstddef>
#include <cstdint>

#include "base/err.hpp"

namespace weft::obj {

struct Settings {
    int64_t inline_max, eager_max, fragment, block, mapped, mapped_min, mapped_both, mapped_block;
    int64_t large, claim, credit, spin_polls, sleep_ms, cma, coll, node_ranks, wire, null_size, rma, log, counters, lanes;
    int64_t pool, pool_cap, guard, part, progress, rma_helper;   // policies
};

struct Setting {
    const char* name;         // WEFT_...; of a policy, WEFT_POLICY. and its name in WEFT_POLICY=name=value,...
    int64_t Settings::*field;
    int64_t initial, least, most;
    const char* words;        // "a|b": value 0 is written a, 1 is written b; null: a number of bytes (K, M allowed) or a count
    const char* what;         // one sentence
    const char* evidence;     // where its default was measured
};

extern const Setting settings_table[];
extern const int settings_count;

// What setting `i` is now and where that comes from ("default", "file" or "environment"), as the library would read it. A bad value
// is reported as such. `value` holds at least 32 characters.
Err describe_setting(int i, char* value, const char** origin);

// Defaults, then the file, then the environment. A bad value is an error that names the variable, the value and what is allowed; so is a
// file that cannot be read, or has a line that sets nothing.
Err read_settings(Settings* s);

}  // namespace weft::obj
