#include "calls/hints.hpp"

#include <mpi.h>

#include <cstdio>
#include <cstring>

#include "obj/info.hpp"
#include "obj/process.hpp"

namespace weft::calls {

namespace {

// Promises of the process; all are "true" or "false".
constexpr const char* assertions[] = {
    "mpi_assert_no_any_tag", "mpi_assert_no_any_source", "mpi_assert_exact_length", "mpi_assert_allow_overtaking",
    "mpi_assert_strict_persistent_collective_ordering",
};

// The value that `info` gives the key, if it is one that an assertion can have.
bool truth(Info* info, const char* key, char (&value)[8]) {
    return obj::info_lookup(info, key, value, sizeof value) && (strcmp(value, "true") == 0 || strcmp(value, "false") == 0);
}

}  // namespace

Err comm_set_info(Process& p, Comm& c, Info* info) {
    if (info == nullptr) return Err::ok;
    if (c.info == nullptr) WEFT_TRY(obj::make_info(p, &c.info));
    char value[8];
    for (const char* key : assertions)
        if (truth(info, key, value)) WEFT_TRY(obj::info_put(*c.info, key, value));
    return Err::ok;
}

Err comm_get_info(Process& p, Comm& c, Info** out) {
    Info* i = nullptr;
    WEFT_TRY(obj::make_info(p, &i));
    Err e = obj::info_put(*i, "mpi_memory_alloc_kinds", "mpi,system");
    for (const char* key : assertions) {
        char value[8];
        if (e == Err::ok) e = obj::info_put(*i, key, truth(c.info, key, value) ? value : "false");
    }
    if (p.lane_count > 1) {
        char lane[16];
        snprintf(lane, sizeof lane, "%u", p.contexts.lane_of(c.context));
        if (e == Err::ok) e = obj::info_put(*i, "weft_lane", lane);
    }
    if (e != Err::ok) {
        obj::free_info(p, *i);
        return e;
    }
    *out = i;
    return Err::ok;
}

}  // namespace weft::calls
